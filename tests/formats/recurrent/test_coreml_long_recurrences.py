"""Recurrent layers that MIL has no operator for become one loop, judged by ONNX Runtime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from support.mil_executor import execute
from support.runtime import open_session

import serde
from serde.compat import import_mxnet
from serde.coreml.model import operations
from serde.relay.op.recurrent.unrolling import UNROLLED

pytestmark = pytest.mark.wide

BATCH, WIDTH, HIDDEN = 2, 3, 4
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


def recurrent(
    kind: str, length: int | str, *, lengths: bool = False, batch: int | str = BATCH, **attrs: Any
) -> ModelProto:
    """One layer as a model of ONNX, its length open if it is a name."""
    rng = np.random.default_rng(3)
    ways = 2 if attrs.get("direction") == "bidirectional" else 1
    rows = GATES[kind] * HIDDEN
    shapes = {"w": (ways, rows, WIDTH), "r": (ways, rows, HIDDEN), "b": (ways, 2 * rows)}
    kept = [
        numpy_helper.from_array(rng.uniform(-0.8, 0.8, shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [length, batch, WIDTH])]
    given = ["x", "w", "r", "b"]
    if lengths:
        ends.append(helper.make_tensor_value_info("n", TensorProto.INT32, [batch]))
        given.append("n")
    results = ["y", "y_h", *(["y_c"] if kind == "LSTM" else [])]
    node = helper.make_node(kind, given, results, hidden_size=HIDDEN, **attrs)
    last = [helper.make_tensor_value_info(each, TensorProto.FLOAT, None) for each in results]
    graph = helper.make_graph([node], "g", ends, last, kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


LAYERS: dict[str, dict[str, Any]] = {
    "gru-of-pytorch": {"kind": "GRU", "linear_before_reset": 1},
    "gru-lengths": {"kind": "GRU", "lengths": True},
    "gru-reverse": {"kind": "GRU", "linear_before_reset": 1, "direction": "reverse"},
    "gru-both": {
        "kind": "GRU", "lengths": True, "linear_before_reset": 1, "direction": "bidirectional",
    },
    "gru-functions": {"kind": "GRU", "activations": ["HardSigmoid", "Softsign"]},
    "lstm-clip": {"kind": "LSTM", "clip": 0.3},
    "lstm-lengths": {"kind": "LSTM", "lengths": True, "direction": "bidirectional"},
    "lstm-reverse": {"kind": "LSTM", "lengths": True, "direction": "reverse"},
    "lstm-input-forget": {"kind": "LSTM", "input_forget": 1},
    "rnn-elu": {"kind": "RNN", "activations": ["Elu"]},
    "rnn-lengths": {"kind": "RNN", "lengths": True, "direction": "reverse"},
}  # fmt: skip


def inputs(steps: int, lengths: bool) -> dict[str, np.ndarray]:
    x = np.random.default_rng(steps).uniform(-1, 1, (steps, BATCH, WIDTH)).astype(np.float32)
    ends = {"n": np.array([steps, steps // 2 + 1], np.int32)} if lengths else {}
    return {"x": x, **ends}


@pytest.mark.sparse(2)
@pytest.mark.parametrize("target", ["iOS15", "iOS17", "iOS18"])
@pytest.mark.parametrize("length", [UNROLLED + 5, "T"], ids=["fixed", "open"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_becomes_a_loop_for_each_direction(
    name: str, length: int | str, target: str
) -> None:
    attrs = dict(LAYERS[name])
    model = recurrent(length=length, **attrs)
    native = serde.export_model(
        model, format="coreml", compute_precision="float32", minimum_deployment_target=target
    )
    loops = [op for op in _operations(native) if op.type == "while_loop"]
    assert len(loops) == (2 if attrs.get("direction") == "bidirectional" else 1)
    assert len(_operations(native)) < 110
    session = open_session(model.SerializeToString())
    for steps in (1, UNROLLED + 5) if isinstance(length, str) else (length,):
        given = inputs(steps, bool(attrs.get("lengths")))
        for found, wanted in zip(execute(native, given), session.run(None, given), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("length", [UNROLLED + 5, "T"], ids=["fixed", "open"])
@pytest.mark.parametrize("target", ["iOS14", "iOS16"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_loop_is_read_back(name: str, target: str, length: int | str, tmp_path: Path) -> None:
    attrs = dict(LAYERS[name])
    model = recurrent(length=length, **attrs)
    path = tmp_path / ("m.mlmodel" if target == "iOS14" else "m.mlpackage")
    back = tmp_path / "back.onnx"
    consent = {"int64-as-int32", "integers-as-float32"}
    serde.export_model(
        model, format="coreml", path=path, compute_precision="float32",
        minimum_deployment_target=target, allow=consent,
    )  # fmt: skip
    serde.convert(path, back, allow=consent)
    given = inputs(UNROLLED + 5, bool(attrs.get("lengths")))
    expected = open_session(model.SerializeToString()).run(None, given)
    for found, wanted in zip(open_session(back).run(None, given), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("length", [UNROLLED + 5, "T"], ids=["fixed", "open"])
@pytest.mark.parametrize("name", LAYERS)
def test_an_open_batch(name: str, length: int | str) -> None:
    """Written to Core ML and to MXNet, which has a loop for what its own layer does not do."""
    mx = import_mxnet()
    model = recurrent(length=length, batch="N", **LAYERS[name])
    given = inputs(UNROLLED + 5, bool(LAYERS[name].get("lengths")))
    expected = open_session(model.SerializeToString()).run(None, given)
    native = serde.export_model(model, format="coreml", compute_precision="float32")
    symbol, params = serde.import_model(model)
    args = {key: mx.nd.array(value, dtype=value.dtype) for key, value in given.items()}
    bound = symbol.bind(mx.cpu(), args={**params.arg, **args}, grad_req="null")
    of_mxnet = [each.asnumpy() for each in bound.forward()]
    for found in (execute(native, given), of_mxnet):
        for left, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["gru-of-pytorch", "gru-both", "lstm-clip", "rnn-elu"])
def test_a_loop_of_core_ml_goes_to_mxnet(name: str, tmp_path: Path) -> None:
    """Its count is constant, though a condition ends it: that of its counter."""
    mx = import_mxnet()
    attrs = {key: value for key, value in LAYERS[name].items() if key != "lengths"}
    model, path = recurrent(length=UNROLLED + 5, **attrs), tmp_path / "m.mlpackage"
    serde.export_model(model, format="coreml", path=path, compute_precision="float32")
    symbol, params = serde.import_model(path, allow={"int64-as-int32"})
    assert "_foreach" in {node["op"] for node in json.loads(symbol.tojson())["nodes"]}
    given = inputs(UNROLLED + 5, lengths=False)
    args = {**params.arg, "x": mx.nd.array(given["x"])}
    found = symbol.bind(mx.cpu(), args=args, grad_req="null").forward()
    expected = open_session(model.SerializeToString()).run(None, given)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left.asnumpy(), right, rtol=1e-5, atol=1e-6)


def test_a_loop_is_as_large_for_any_length(tmp_path: Path) -> None:
    """Neither operators nor the outputs, which begin as zeros, make the file larger."""
    sizes = []
    for length in (20, 2000):
        path, model = tmp_path / f"{length}.mlpackage", recurrent("GRU", length, clip=0.5)
        serde.export_model(model, format="coreml", path=path)
        files = [each.stat().st_size for each in path.rglob("*") if each.is_file()]
        sizes.append(sum(files))
    assert abs(sizes[1] - sizes[0]) < 100


def test_a_short_layer_is_unrolled() -> None:
    native = serde.export_model(recurrent("GRU", UNROLLED, linear_before_reset=1), format="coreml")
    assert not [op for op in _operations(native) if op.type == "while_loop"]


@pytest.mark.parametrize("stop", [2, 7], ids=["stopped", "full"])
def test_a_loop_of_an_open_limit_stacks(stop: int) -> None:
    """Row i is i times x; the loop ends at its limit, or behind `stop`."""
    scalar = [
        helper.make_tensor_value_info(name, kind, [])
        for name, kind in (("i", TensorProto.INT64), ("go", TensorProto.BOOL))
    ]
    ends = [helper.make_tensor_value_info("s", TensorProto.FLOAT, [3])]
    nodes = [
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "x"], ["row"]),
        helper.make_node("Add", ["s", "row"], ["s_out"]),
        helper.make_node("Less", ["i", "stop"], ["go_out"]),
    ]
    results = [
        helper.make_tensor_value_info("go_out", TensorProto.BOOL, []),
        helper.make_tensor_value_info("s_out", TensorProto.FLOAT, [3]),
        helper.make_tensor_value_info("row", TensorProto.FLOAT, [3]),
    ]
    body = helper.make_graph(nodes, "body", [*scalar, *ends], results)
    outer = helper.make_graph(
        [
            helper.make_node("Shape", ["n"], ["shape"]),
            helper.make_node("Squeeze", ["shape"], ["limit"]),
            helper.make_node("Loop", ["limit", "", "x"], ["last", "rows"], body=body),
        ],
        "g",
        [
            helper.make_tensor_value_info("n", TensorProto.FLOAT, ["N"]),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]),
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("last", "rows")],
        [numpy_helper.from_array(np.array(stop, np.int64), "stop")],
    )
    model = helper.make_model(outer, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    native = serde.export_model(model, format="coreml", compute_precision="float32")
    given = {"n": np.zeros(5, np.float32), "x": np.float32([0.5, -1, 2])}
    expected = open_session(model.SerializeToString()).run(None, given)
    for found, wanted in zip(execute(native, given), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def _operations(native: Any) -> list[Any]:
    return [op for op in operations(native.get_spec()) if op.type != "const"]
