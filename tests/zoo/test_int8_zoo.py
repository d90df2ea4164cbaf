"""The 22 int8 nets of gluoncv, and a small one, in ONNX Runtime against MXNet and its oneDNN.

Layer by layer, on the same numbers, a result is at most one step beside MXNet's, and seldom: the
requantisation multiplies in float32, MXNet by levels over ranges, ONNX by steps, and where the
products lie on two sides of a half, they are rounded apart. Measured: one result in 1e5 at most.

Through a whole net such a step is seen by all filters of the next layer, where it turns further
halves: each layer about doubles the share of results that are one step off. So a whole net is held
to a share of the spread of its results only.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from support.int8_nets import quantize_small_net
from support.int8_zoo import SHAPES, apart, drawn, every_node, symbol_text
from support.oracle import run_mxnet
from support.runtime import newest_runtime_opset, run_onnx

import serde
from serde.compat import import_mxnet

mx = import_mxnet()

NEWEST = newest_runtime_opset()
OPSETS = (13, 17, NEWEST)
SHARE = 1e-4
"""Of the results of a layer, at most so many are one step off; ten times what was measured."""
FLOAT = 1e-5
"""Bound of float layers, a share of the greatest result."""

WHOLE = 0.1
"""Bound of a whole net: the spread of the difference over that of the results; 0.052 at most was
measured, after 101 layers."""

needs_gluoncv = pytest.mark.skipif(
    importlib.util.find_spec("gluoncv") is None, reason="gluoncv, which has the symbols, is missing"
)


def run_in_onnx(symbol: Any, params: Any, inputs: dict[str, np.ndarray], opset: int) -> Any:
    """The results of ONNX Runtime, and how many nodes of each operator it had."""
    model = serde.to_relay(
        symbol,
        params,
        input_shapes={name: value.shape for name, value in inputs.items()},
        input_dtypes={name: value.dtype.name for name, value in inputs.items()},
    )
    proto = serde.from_relay(model, format="onnx", opset=opset)
    given = {name: inputs[name] for name in model.meta.inputs}
    return run_onnx(proto.SerializeToString(), given)[1], proto


def layers_agree(symbol: Any, params: Any, data: np.ndarray, opset: int) -> None:
    """Compare every node on what MXNet itself has there."""
    parts, names, read = apart(symbol)
    values = run_mxnet(every_node(symbol, names), params, {"data": data})
    known = dict(zip(names, values, strict=True))
    inputs = {"data": data, **{f"from_{name}": known[name] for name in read}}
    found, _ = run_in_onnx(parts, params, inputs, opset)
    faults = []
    for name, ours, theirs in zip(names, found, values, strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), name
        distance = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        if theirs.dtype.kind in "iu":
            share, most = float((distance > 0).mean()), float(distance.max())
            if most > 1 or share > SHARE + 1 / distance.size:
                faults.append((name, most, share))
        elif distance.max() > FLOAT * np.abs(theirs).max():
            faults.append((name, float(distance.max()), float(np.abs(theirs).max())))
    assert faults == []


@needs_gluoncv
@pytest.mark.slow
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", SHAPES)
def test_every_layer_of_an_int8_net(name: str, opset: int) -> None:
    symbol = mx.sym.load_json(symbol_text(name))
    params, data = drawn(symbol, SHAPES[name])
    layers_agree(symbol, {key: mx.nd.array(value) for key, value in params.items()}, data, opset)


@needs_gluoncv
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SHAPES if not name.startswith("ssd")])
def test_an_int8_net(name: str) -> None:
    """From image to result, the steps apart weigh little beside what the net tells."""
    symbol = mx.sym.load_json(symbol_text(name))
    drawn_params, data = drawn(symbol, SHAPES[name])
    params = {key: mx.nd.array(value) for key, value in drawn_params.items()}
    values = run_mxnet(symbol, params, {"data": data})
    found, _ = run_in_onnx(symbol, params, {"data": data}, NEWEST)
    for ours, theirs in zip(found, values, strict=True):
        assert theirs.std() > 0
        assert (ours - theirs).std() / theirs.std() < WHOLE


@pytest.fixture(scope="module", params=["naive", "none"])
def quantized_net(request: pytest.FixtureRequest) -> tuple[Any, dict[str, Any], np.ndarray]:
    """The small net as MXNet quantises it, with calibrated ranges or ranges taken at run time."""
    made = quantize_small_net(request.param)
    return made.symbol, made.params, made.data


@pytest.mark.exact_sums
@pytest.mark.wide
@pytest.mark.parametrize("opset", OPSETS)
def test_small_int8_net(quantized_net: Any, opset: int) -> None:
    symbol, params, data = quantized_net
    (expected,) = run_mxnet(symbol, params, {"data": data})
    (found,), _ = run_in_onnx(symbol, params, {"data": data}, opset)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


@pytest.mark.exact_sums
@pytest.mark.wide
def test_layers_of_a_small_int8_net(quantized_net: Any) -> None:
    symbol, params, data = quantized_net
    layers_agree(symbol, params, data, NEWEST)


calibrated = pytest.mark.parametrize("quantized_net", ["naive"], indirect=True)


@calibrated
def test_calibrated_ranges_become_constant_scales(quantized_net: Any) -> None:
    symbol, params, data = quantized_net
    _, proto = run_in_onnx(symbol, params, {"data": data}, NEWEST)
    kinds = [node.op_type for node in proto.graph.node]
    assert kinds.count("QLinearConv") == 3
    assert kinds.count("ConvInteger") == 4
    assert set(kinds) == {
        "Add", "AveragePool", "Cast", "Concat", "ConvInteger", "DequantizeLinear", "Flatten",
        "GlobalAveragePool", "MatMulInteger", "MaxPool", "QLinearConv", "QuantizeLinear", "Relu",
    }  # fmt: skip
    weights = {tensor.name for tensor in proto.graph.initializer}
    scales = [node.input[1] for node in proto.graph.node if node.op_type.endswith("quantizeLinear")]
    assert weights.issuperset(scales)


@pytest.mark.exact_sums
@calibrated
@pytest.mark.parametrize("form", ["qdq", "qlinear"])
def test_small_int8_net_on_floats(quantized_net: Any, form: str) -> None:
    symbol, params, data = quantized_net
    (expected,) = run_mxnet(symbol, params, {"data": data})
    model = serde.to_relay(symbol, params, input_shapes={"data": data.shape})
    proto = serde.from_relay(
        model, format="onnx", opset=17, quantized=form, allow={"quantised-as-qdq"}
    )
    kinds = [node.op_type for node in proto.graph.node]
    if form == "qdq":
        assert {"QLinearConv", "ConvInteger", "MatMulInteger"}.isdisjoint(kinds)
    (found,) = run_onnx(proto.SerializeToString(), {"data": data})[1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


@pytest.mark.exact_sums
@pytest.mark.wide
def test_small_int8_net_of_any_batch(quantized_net: Any) -> None:
    symbol, params, data = quantized_net
    model = serde.to_relay(symbol, params, input_shapes={"data": ("batch", *data.shape[1:])})
    proto = serde.from_relay(model, format="onnx", opset=NEWEST)
    for batch in (data, data[:1]):
        (expected,) = run_mxnet(symbol, params, {"data": batch})
        (found,) = run_onnx(proto.SerializeToString(), {"data": batch})[1]
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())
