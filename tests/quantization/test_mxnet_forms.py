"""MXNet's calibrated nets as pairs of linear operators that runtimes fuse.

ONNX Runtime tells by the graph that it makes of a file. TensorRT is not at hand: what its guide on
explicit quantisation asks for is checked node by node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support.int8_nets import QuantizedNet, quantize_small_net
from support.oracle import run_mxnet
from support.runtime import optimized_operators, run_onnx

import serde

ALLOW = {"quantised-as-qdq", "uint8-as-int8"}
FLOAT_LAYERS = {"Conv", "FusedConv", "MatMul", "Gemm", "FusedGemm", "FusedMatMul", "Add"}

NEAR = 0.08
"""Spread of what the further roundings change, over that of the results; 0.046 was measured."""


@pytest.fixture(scope="module")
def net() -> QuantizedNet:
    return quantize_small_net("naive")


def export(net: QuantizedNet, form: str, **options: Any) -> onnx.ModelProto:
    options.setdefault("opset", 17)
    made: onnx.ModelProto = serde.export_model(
        net.symbol, net.params, format="onnx", input_shapes={"data": net.data.shape},
        quantized=form, allow=ALLOW, **options,
    )  # fmt: skip
    return made


def results(net: QuantizedNet, proto: onnx.ModelProto) -> list[np.ndarray]:
    """What MXNet gives for the quantised net and for the float one, and what the file gives."""
    data = {"data": net.data}
    (quantized,) = run_mxnet(net.symbol, net.params, data)
    (floats,) = run_mxnet(net.float_symbol, net.float_params, data)
    (found,) = run_onnx(proto.SerializeToString(), data)[1]
    return [quantized, floats, found]


@pytest.mark.parametrize("opset", [13, 17, 21])
def test_onnx_runtime_fuses_all_layers(net: QuantizedNet, opset: int) -> None:
    found = optimized_operators(export(net, "onnxruntime", opset=opset).SerializeToString())
    assert not FLOAT_LAYERS & set(found)
    assert found["QLinearConv"] == 7
    assert found["QLinearAdd"] == 2
    assert found["QLinearConcat"] == 1
    assert found["QGemm"] == 2
    # That of the input, and one behind a pooling: a sum of int8 became uint8 in front of it.
    assert found["QuantizeLinear"] <= 2


def test_without_the_form_sums_are_left_in_floats(net: QuantizedNet) -> None:
    """What the form is for: the nodes that run the source's arithmetic are not all fused."""
    found = optimized_operators(export(net, "qdq").SerializeToString())
    assert found["Conv"] + found["FusedConv"] > 0
    assert found["Add"] == 2


@pytest.mark.exact_sums
@pytest.mark.parametrize("form", ["onnxruntime", "tensorrt"])
def test_results_stay_near_those_of_mxnet(net: QuantizedNet, form: str) -> None:
    """And are about as far from the float net as MXNet's own are."""
    quantized, floats, found = results(net, export(net, form))
    assert floats.std() > 0.1
    assert (found - quantized).std() / quantized.std() < NEAR
    assert (found - floats).std() < 1.5 * (quantized - floats).std()


def test_numbers_of_sums_are_cut_nowhere(net: QuantizedNet) -> None:
    """What a side of a sum is quantised to reaches as far as the sum can tell it apart."""
    proto = export(net, "onnxruntime")
    values = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    points = [values[n.input[2]] for n in proto.graph.node if n.op_type == "QuantizeLinear"]
    assert {p.dtype for p in points} == {np.dtype(np.uint8)}
    assert any(0 < p < 255 and p != 128 for p in points)


def trt_faults(proto: onnx.ModelProto) -> Iterator[str]:
    """Yield what TensorRT's guide on explicit quantisation does not allow, node by node."""
    graph = proto.graph
    values = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    made = {name: node for node in graph.node for name in node.output}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    for node in graph.node:
        if "Integer" in node.op_type or node.op_type.startswith("QLinear"):
            yield f"{node.name}: {node.op_type}"
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            if node.input[1] not in values or not (values[node.input[1]] > 0).all():
                yield f"{node.name}: its scale is no positive constant"
            if len(node.input) > 2:
                point = values[node.input[2]]
                if point.dtype != np.int8 or point.any():
                    yield f"{node.name}: zero point {point.dtype} {np.unique(point)}"
            elif node.op_type == "QuantizeLinear":
                yield f"{node.name}: gives uint8, as no zero point says int8"
            data = values.get(node.input[0])
            if node.op_type == "DequantizeLinear" and data is not None and data.dtype != np.int8:
                yield f"{node.name}: dequantises {data.dtype}"
        if node.op_type == "QuantizeLinear":
            for reader in readers.get(node.output[0], ()):
                if reader.op_type != "DequantizeLinear":
                    yield f"{node.name}: read by {reader.op_type}"
                elif values[reader.input[1]] != values[node.input[1]]:
                    yield f"{reader.name}: another scale than that of {node.name}"
        if node.op_type in ("Conv", "MatMul", "Gemm"):
            yield from trt_layer_faults(node, values, made)
        before = {made[name].op_type for name in node.input if name in made}
        is_sum = node.op_type == "Add" and not any(name in values for name in node.input)
        if is_sum and "DequantizeLinear" not in before:
            yield f"{node.name}: no side is quantised"


def trt_layer_faults(
    node: onnx.NodeProto, values: dict[str, np.ndarray], made: dict[str, onnx.NodeProto]
) -> Iterator[str]:
    """Yield the faults of a layer with weights."""
    sides = [made.get(name) for name in node.input[:2]]
    if any(side is None or side.op_type != "DequantizeLinear" for side in sides):
        yield f"{node.name}: data or weight is not dequantised"
        return
    weight = sides[1]
    scale = values[weight.input[1]]
    axis = next((a.i for a in weight.attribute if a.name == "axis"), 1)
    along = 0 if node.op_type == "Conv" else 1
    if scale.ndim and (axis != along or scale.size != values[weight.input[0]].shape[along]):
        yield f"{node.name}: weight scales {scale.shape} along {axis}"
    if node.op_type == "Conv" and not scale.ndim:
        yield f"{node.name}: one scale for all channels"
    for name in node.input[2:]:
        if name not in values or values[name].dtype != np.float32:
            yield f"{node.name}: its bias is no constant of float32"


@pytest.mark.parametrize("opset", [13, 17])
def test_tensorrt_takes_it(net: QuantizedNet, opset: int) -> None:
    assert list(trt_faults(export(net, "tensorrt", opset=opset))) == []


@pytest.mark.parametrize("form", ["exact", "qdq", "onnxruntime"])
def test_the_rules_can_be_broken(net: QuantizedNet, form: str) -> None:
    assert list(trt_faults(export(net, form))) != []


def test_levels_that_are_lost_are_to_be_allowed(net: QuantizedNet) -> None:
    with pytest.raises(serde.UnsupportedModelError, match="uint8-as-int8"):
        serde.export_model(
            net.symbol, net.params, format="onnx", input_shapes={"data": net.data.shape},
            quantized="tensorrt", allow={"quantised-as-qdq"},
        )  # fmt: skip


@pytest.mark.exact_sums
@pytest.mark.parametrize("form", ["onnxruntime", "tensorrt"])
def test_ranges_of_run_time_stay(form: str) -> None:
    """Without calibration there are no scales to write: the numbers are those of MXNet."""
    net = quantize_small_net("none")
    quantized, _, found = results(net, export(net, form))
    assert (found - quantized).std() / quantized.std() < NEAR


def test_read_back(net: QuantizedNet) -> None:
    """Relay's interpreter gives what ONNX Runtime gives without its fusions."""
    proto = export(net, "onnxruntime")
    model = serde.to_relay(proto)
    again = serde.from_relay(model, format="onnx", opset=17)
    found = [run_onnx(p.SerializeToString(), {"data": net.data})[1][0] for p in (proto, again)]
    assert np.abs(found[0] - found[1]).max() < 0.05 * found[0].std()
