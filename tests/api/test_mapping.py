"""What tensors and nodes of a source are called in the target, as the target's own reader says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from support.accuracy import Net
from support.pairs import recurrent_net

import serde
from serde.compat import import_mxnet
from serde.conversion.mapping import tensor_mapping
from serde.core.report import Report
from serde.errors import MissingDependency
from serde.mxnet.bridge import BRIDGE


@pytest.fixture(scope="module")
def mx() -> Any:
    """MXNet."""
    try:
        return import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))


def convolutions(mx: Any) -> Net:
    """A convolution with a batch norm, a split, and one of its halves beside a dense layer."""
    x = mx.sym.Convolution(mx.sym.var("data"), num_filter=4, kernel=(3, 3), name="conv0")
    x = mx.sym.BatchNorm(x, name="bn0", fix_gamma=False)
    left, right = mx.sym.split(x, num_outputs=2, axis=1, name="halves")
    fc = mx.sym.FullyConnected(left, num_hidden=3, name="fc1")
    symbol = mx.sym.Group([fc, right])
    shape = (2, 3, 6, 6)
    shapes, _, states = symbol.infer_shape(data=shape)
    args = {
        name: mx.nd.random.uniform(0.5, 1.0, shape=sizes)
        for name, sizes in zip(symbol.list_arguments(), shapes, strict=True)
        if name != "data"
    }
    aux = {
        name: mx.nd.random.uniform(0.5, 1.0, shape=sizes)
        for name, sizes in zip(symbol.list_auxiliary_states(), states, strict=True)
    }
    return Net(symbol, args, aux, shape)


def mapped(mx: Any, net: Net, target: Path, **options: Any) -> dict[str, Any]:
    source = str(net.save(mx, target.with_name("net"))[0])
    path = target.with_name("names.json")
    shapes = {"data": net.shape}
    serde.convert(source, target, tensor_mapping=path, input_shapes=shapes, **options)
    return json.loads(path.read_text(encoding="utf-8"))


def test_names_in_onnx(mx: Any, tmp_path: Path) -> None:
    found = mapped(mx, convolutions(mx), tmp_path / "m.onnx")
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert found["inputs"] == {"data": "data"}
    assert list(found["outputs"].values()) == [each.name for each in graph.output]
    assert list(found["outputs"]) == ["fc1_output", "halves_output1"]
    assert found["weights"]["bn0_gamma"] == []
    listed = [name for names in found["weights"].values() for name in names]
    # Lengths of the split, which are no weight of the source.
    assert sorted(listed) == sorted({each.name for each in graph.initializer} - {"const"})
    nodes = {node.name: node.op_type for node in graph.node}
    # The batch norm goes into the convolution, which then gives the result of the batch norm.
    assert found["nodes"]["conv0"] == []
    assert [nodes[name] for name in found["nodes"]["bn0"]] == ["Conv"]
    assert [nodes[name] for name in found["nodes"]["halves"]] == ["Split"]
    assert "Gemm" in [nodes[name] for name in found["nodes"]["fc1"]]


def test_names_in_mxnet(mx: Any, tmp_path: Path) -> None:
    found = mapped(mx, convolutions(mx), tmp_path / "m2-symbol.json", keep_batch_norm=True)
    symbol = mx.sym.load(str(tmp_path / "m2-symbol.json"))
    assert list(found["outputs"].values()) == symbol.list_outputs()
    listed = [name for names in found["weights"].values() for name in names]
    states = {*symbol.list_arguments(), *symbol.list_auxiliary_states()}
    assert set(listed) <= states
    assert found["weights"]["bn0_moving_mean"] == ["bn0_moving_mean"]
    assert found["nodes"]["bn0"] == ["bn0"]


def test_outputs_are_named_as_mxnet_names_them(mx: Any, tmp_path: Path) -> None:
    for net in (convolutions(mx), recurrent_net(mx)):
        path = str(net.save(mx, tmp_path / "n")[0])
        model = BRIDGE.load(path, None, BRIDGE.bind_import({}))
        assert list(BRIDGE.names(model).outputs) == net.symbol.list_outputs()


def test_names_in_relay(mx: Any, tmp_path: Path) -> None:
    found = mapped(mx, convolutions(mx), tmp_path / "m.relay")
    again = serde.to_relay(str(tmp_path / "m.relay"))
    assert tuple(found["outputs"].values()) == again.meta.outputs
    assert {name for names in found["weights"].values() for name in names} == set(again.params)


def test_numbered_names_belong_to_the_name_without() -> None:
    from support.toy_format import BRIDGE as TOY, MODEL

    from serde.bridge.summary import TensorNames
    from serde.relay.ir.model import ModelMeta, RelayModel

    source = TOY.to_relay(MODEL, TOY.bind_import({}), report=Report())
    model = RelayModel(source.mod, source.params, ModelMeta(("data",), ("out", "limited")))
    names = TensorNames(("x",), ("y", "z"), ("w_folded", "w_1", "b"), ("scaled_2", "out", "else"))
    found = tensor_mapping(model, names)
    assert found["inputs"] == {"data": "x"}
    assert found["outputs"] == {"out": "y", "limited": "z"}
    assert found["weights"] == {"w": ["w_folded", "w_1"], "b": ["b"]}
    assert found["nodes"] == {"scaled": ["scaled_2"], "shifted": [], "limited": [], "out": ["out"]}
