"""Gluon blocks of ONNX models: inputs in the model's order, every dtype, and training."""

from __future__ import annotations

import types
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tiers import first_of

import serde
from serde.compat import import_mxnet, onnx2mx
from serde.errors import MissingDependency

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
node, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    try:
        return import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))


def model(
    nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], **weights: np.ndarray
) -> Any:
    graph = onnx.helper.make_graph(
        nodes, "net", inputs, outputs,
        [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    proto.ir_version = 8
    onnx.checker.check_model(proto, full_check=True)
    return proto


def run(proto: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    session = runtime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))


def called(mx: Any, block: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    found = block(*[mx.nd.array(each, dtype=each.dtype) for each in arrays])
    return [each.asnumpy() for each in (found if isinstance(found, (list, tuple)) else [found])]


def test_inputs_are_in_the_order_of_the_model(mx: Any, tmp_path: Path) -> None:
    """The symbol's own order is that of the graph: b before a."""
    proto = model(
        [node("Sub", ["b", "a"], ["y"])],
        [info("a", FLOAT, [1]), info("b", FLOAT, [1])],
        [info("y", FLOAT, [1])],
    )
    onnx.save(proto, tmp_path / "m.onnx")
    block = onnx2mx.import_to_gluon(tmp_path / "m.onnx", mx.cpu())
    assert block(mx.nd.array([1]), mx.nd.array([5])).asscalar() == 4
    assert serde.import_model(proto)[1].inputs == ("a", "b")


@pytest.mark.wide
def test_the_order_of_inputs_is_kept_in_files(mx: Any, tmp_path: Path) -> None:
    """MXNet reads the files, and they lead to the same model."""
    proto = model(
        [node("Sub", ["b", "a"], ["d"]), node("Mul", ["d", "c"], ["y"])],
        [info(name, FLOAT, [1]) for name in "cab"],
        [info("y", FLOAT, [1])],
    )
    onnx.save(proto, tmp_path / "m.onnx")
    serde.convert(tmp_path / "m.onnx", tmp_path / "m-symbol.json", check=True)
    assert mx.sym.load(str(tmp_path / "m-symbol.json")).list_arguments() == ["b", "a", "c"]
    arrays = [np.float32([each]) for each in (10, 1, 5)]
    block = serde.import_to_gluon(tmp_path / "m-symbol.json")
    np.testing.assert_array_equal(called(mx, block, arrays)[0], [40])
    again = serde.export_model(tmp_path / "m-symbol.json", format="onnx")
    assert [each.name for each in again.graph.input] == ["c", "a", "b"]
    np.testing.assert_array_equal(run(again, arrays)[0], [40])


def test_inputs_that_nothing_reads_and_that_are_outputs(mx: Any) -> None:
    proto = model(
        [node("Sub", ["b", "a"], ["y"]), node("Identity", ["u"], ["z"])],
        [info(name, FLOAT, [n]) for name, n in (("u", 2), ("a", 1), ("unused", 3), ("b", 1))],
        [info("y", FLOAT, [1]), info("z", FLOAT, [2])],
    )
    arrays = [np.float32(each) for each in ([7, 8], [1], [0, 0, 0], [5])]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The 2-th input to HybridBlock is not used")
        found = called(mx, serde.import_to_gluon(proto), arrays)
    for one, two in zip(found, run(proto, arrays), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("hybridize", [False, True])
def test_parameters_of_every_dtype(mx: Any, hybridize: bool) -> None:
    """Integers and constants of the graph are no parameters to train."""
    dtypes = ("int8", "uint8", "int32", "int64", "float64", "float16")
    lookups = [node("Gather", [d, "rows"], [f"{d}_rows"]) for d in dtypes]
    casts = [node("Cast", [f"{d}_rows"], [f"{d}_cast"], to=FLOAT) for d in dtypes]
    proto = model(
        [
            *lookups,
            *casts,
            node("Constant", [], ["c"], value_floats=[0.5, 0.25]),
            node("Sum", ["c", "w", "x", *(f"{d}_cast" for d in dtypes)], ["y"]),
        ],
        [info("x", FLOAT, [3, 2]), info("rows", INT64, [3])],
        [info("y", FLOAT, [3, 2])],
        w=np.ones((1, 2), np.float32),
        **{d: np.array([[1], [2], [3]], d) for d in dtypes},
    )
    block = serde.import_to_gluon(proto)
    if hybridize:
        block.hybridize()
    arrays = [np.arange(6, dtype=np.float32).reshape(3, 2), np.array([2, 0, 1])]
    np.testing.assert_array_equal(called(mx, block, arrays)[0], run(proto, arrays)[0])
    trained = {p.name for p in block.collect_params().values() if p.grad_req != "null"}
    assert trained == {"w", "float16", "float64"}


def test_integers_as_inputs(mx: Any) -> None:
    proto = model(
        [node("Gather", ["table", "tokens"], ["e"]), node("Mul", ["e", "scale"], ["y"])],
        [info("scale", FLOAT, [1, 2]), info("tokens", INT64, [3])],
        [info("y", FLOAT, [3, 2])],
        table=np.arange(8, dtype=np.float32).reshape(4, 2),
    )
    arrays = [np.float32([[1, 2]]), np.array([3, 0, 1])]
    found = called(mx, serde.import_to_gluon(proto), arrays)[0]
    np.testing.assert_array_equal(found, run(proto, arrays)[0])


def test_scalars(mx: Any) -> None:
    """Under NumPy's shapes, as the report asks for."""
    proto = model(
        [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Mul", ["s", "w"], ["y"])],
        [info("x", FLOAT, [2, 3])],
        [info("y", FLOAT, [])],
        w=np.array(2, np.float32),
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with mx.util.np_shape():
        found = called(mx, serde.import_to_gluon(proto), [x])[0]
    np.testing.assert_array_equal(found, run(proto, [x])[0])


NETS = {
    "mobilenetv2_0.25": (2, 3, 64, 64),
    "resnet18_v1": (2, 3, 64, 64),
    "resnet18_v2": (2, 3, 64, 64),
    "densenet121": (2, 3, 224, 224),
}


@pytest.mark.wide
@pytest.mark.parametrize("name", first_of(NETS, ["resnet18_v2"]))
def test_a_step_of_training_is_that_of_the_net_itself(mx: Any, name: str, tmp_path: Path) -> None:
    """Both lose alike, and weights and running statistics move alike."""
    mx.random.seed(3)
    net = mx.gluon.model_zoo.vision.get_model(name, classes=5)
    net.initialize(mx.init.Xavier())
    x = mx.nd.random.normal(shape=NETS[name])
    net(x)
    path = tmp_path / "net.onnx"
    serde.export_model(
        net, format="onnx", path=path, input_shapes={"data": ("N", *x.shape[1:])},
        keep_batch_norm=True,
    )  # fmt: skip
    block = serde.import_to_gluon(path)
    assert "BatchNorm" in block._cached_graph[1].tojson()
    before = {k: v.data().asnumpy() for k, v in block.collect_params().items()}
    losses = [train(mx, each, x) for each in (net, block)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    theirs, ours = net.collect_params(), block.collect_params()
    moves, apart = {}, {}
    for key, mine in ours.items():
        wanted, found = theirs[key].data().asnumpy(), mine.data().asnumpy()
        moves[key] = float(np.abs(wanted - before[key]).max())
        apart[key] = float(np.abs(found - wanted).max())
    moved = [key for key, step in moves.items() if step]
    assert len(moved) > 0.9 * len(moves)
    assert [key for key in moved if apart[key] > 0.02 * moves[key] + 1e-7] == []


def train(mx: Any, net: Any, x: Any) -> list[float]:
    """The loss before a step and after it."""
    rate = {"learning_rate": 1e-3, "momentum": 0.9, "wd": 1e-4}
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", rate)
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    label, losses = mx.nd.array([1, 3]), []
    with mx.autograd.record():
        value = loss(net(x), label).mean()
    losses.append(value.asscalar())
    value.backward()
    trainer.step(1)
    losses.append(loss(net(x), label).mean().asscalar())
    return losses


@pytest.mark.wide
def test_batch_norm_is_folded_on_request(mx: Any, tmp_path: Path) -> None:
    net = mx.gluon.model_zoo.vision.resnet18_v1(classes=5)
    net.initialize(mx.init.Xavier())
    path = tmp_path / "net.onnx"
    serde.export_model(
        net, format="onnx", path=path, input_shapes={"data": (1, 3, 64, 64)}, keep_batch_norm=True
    )
    folded = serde.import_to_gluon(path, keep_batch_norm=False)
    assert "BatchNorm" not in folded._cached_graph[1].tojson()
