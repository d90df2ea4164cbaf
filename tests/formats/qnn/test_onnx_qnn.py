"""Quantised graphs in ONNX: which operators they become, and that they compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.runtime import OLD_RUNTIME, open_session

import serde.relay as relay
from serde.core.report import Report
from serde.errors import UnsupportedModelError
from serde.onnx.exporter import from_relay
from serde.relay.ir.expr import Expr, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule

SCALE, ZERO = relay.const(0.5, "float32"), relay.const(3, "int32")
NONE = relay.const(0, "int32")


def _export(body: Expr, variables: list[Var], opset: int = 17) -> Any:
    names = tuple(each.name_hint for each in variables)
    mod = IRModule({"main": relay.Function(variables, body)})
    return from_relay(RelayModel(mod, {}, ModelMeta(names, ("out",))), opset, True, Report())


def _kinds(body: Expr, variables: list[Var], opset: int = 17) -> list[str]:
    return [node.op_type for node in _export(body, variables, opset).complete().graph.node]


def _run(body: Expr, variables: list[Var], arrays: list[np.ndarray]) -> np.ndarray:
    proto = _export(body, variables).complete()
    feeds = {each.name_hint: array for each, array in zip(variables, arrays, strict=True)}
    return open_session(proto.SerializeToString()).run(None, feeds)[0]


def _bytes(name: str, *shape: int, dtype: str = "uint8") -> Var:
    return relay.var(name, shape=shape, dtype=dtype)


def test_dequantize_is_linear() -> None:
    x = _bytes("x", 2, 3)
    assert _kinds(relay.qnn.op.dequantize(x, SCALE, ZERO), [x], 11) == ["DequantizeLinear"]


def test_axis_needs_13() -> None:
    x = _bytes("x", 2, 3)
    scales = relay.const(np.array([0.5, 0.25], np.float32))
    body = relay.qnn.op.dequantize(x, scales, NONE, axis=0)
    assert "DequantizeLinear" not in _kinds(body, [x], 11)
    assert _kinds(body, [x], 13) == ["DequantizeLinear"]


def test_bias_has_no_zero_point() -> None:
    x = _bytes("x", 4, dtype="int32")
    node = _export(relay.qnn.op.dequantize(x, SCALE, NONE), [x]).complete().graph.node[0]
    assert (node.op_type, len(node.input)) == ("DequantizeLinear", 2)


def test_16_bits_need_21() -> None:
    x = _bytes("x", 4, dtype="int16")
    body = relay.qnn.op.dequantize(x, SCALE, ZERO)
    assert "DequantizeLinear" not in _kinds(body, [x], 17)
    assert _kinds(body, [x], 21) == ["DequantizeLinear"]


def test_quantize_ends_in_quantize_linear() -> None:
    x = relay.var("x", shape=(6,))
    body = relay.qnn.op.quantize(x, SCALE, ZERO, out_dtype="uint8")
    assert _kinds(body, [x])[-1] == "QuantizeLinear"
    halves = np.array([-1.25, -0.25, 0.25, 0.75, 1.25, 999], np.float32)
    assert _run(body, [x], [halves]).tolist() == [0, 2, 4, 5, 6, 255]


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
def test_halves_are_rounded_as_asked(rounding: str) -> None:
    x = _bytes("x", 5, dtype="int32")
    one = relay.const(1.0, "float32")
    body = relay.qnn.op.requantize(x, SCALE, NONE, one, NONE, rounding=rounding)
    found = _run(body, [x], [np.array([-3, -1, 1, 3, 5], np.int32)])
    assert found.tolist() == ([-1, 0, 1, 2, 3] if rounding == "UPWARD" else [-2, -1, 1, 2, 3])


def test_dense_is_matmul_integer() -> None:
    x, w = _bytes("x", 2, 6), _bytes("w", 5, 6, dtype="int8")
    body = relay.qnn.op.dense(x, w, ZERO, NONE, SCALE, SCALE, 5)
    assert _kinds(body, [x, w]) == ["Transpose", "MatMulInteger"]


def test_zero_point_beyond_the_bytes_is_subtracted() -> None:
    x, w = _bytes("x", 2, 3), _bytes("w", 2, 3, dtype="int8")
    body = relay.qnn.op.dense(x, w, relay.const(-5, "int32"), NONE, SCALE, SCALE, 2)
    assert "MatMulInteger" not in _kinds(body, [x, w])
    data = np.array([[0, 1, 255], [3, 4, 5]], np.uint8)
    weight = np.array([[1, -1, 127], [-128, 0, 2]], np.int8)
    expected = (data.astype(int) + 5) @ weight.T.astype(int)
    np.testing.assert_array_equal(_run(body, [x, w], [data, weight]), expected)


@pytest.mark.skipif(OLD_RUNTIME, reason="ONNX Runtime 1.23 has no ConvInteger of int8 weights")
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_bias_of_an_integer_convolution_is_added(layout: str) -> None:
    generator = np.random.default_rng(3)
    shape = (1, 3, 4, 4) if layout == "NCHW" else (1, 4, 4, 3)
    x, w = _bytes("x", *shape), _bytes("w", 2, 3, 1, 1, dtype="int8")
    b = _bytes("b", 2, dtype="int32")
    conv = relay.nn.conv2d(x, w, data_layout=layout, out_dtype="int32")
    body = relay.nn.bias_add(conv, b, axis=layout.index("C"))
    data = generator.integers(0, 256, shape).astype(np.uint8)
    weight = generator.integers(-128, 128, (2, 3, 1, 1)).astype(np.int8)
    bias = np.array([1000, -7], np.int32)
    found = _run(body, [x, w, b], [data, weight, bias])
    channels_last = np.moveaxis(data, layout.index("C"), -1).astype(int)
    expected = channels_last @ weight[:, :, 0, 0].T.astype(int) + bias
    np.testing.assert_array_equal(np.moveaxis(found, layout.index("C"), -1), expected)


def test_bias_of_an_integer_dense_is_added() -> None:
    x, w = _bytes("x", 1, 2), _bytes("w", 2, 2, dtype="int8")
    b = _bytes("b", 2, dtype="int32")
    body = relay.nn.bias_add(relay.nn.dense(x, w, out_dtype="int32"), b)
    arrays = [np.array([[200, 3]], np.uint8), np.array([[1, 2], [-3, 4]], np.int8)]
    found = _run(body, [x, w, b], [*arrays, np.array([10, 20], np.int32)])
    assert found.tolist() == [[216, -568]]


def test_function_is_one_gather() -> None:
    x = _bytes("x", 2, 3)
    assert _kinds(relay.qnn.op.tanh(x, SCALE, ZERO, SCALE, ZERO), [x]) == ["Cast", "Gather"]


def test_scale_that_is_computed_needs_its_bits() -> None:
    x, scale = _bytes("x", 4, dtype="int32"), relay.var("s", shape=())
    body = relay.qnn.op.requantize(x, scale, NONE, SCALE, NONE)
    with pytest.raises(UnsupportedModelError, match="the bits of float64 as int64"):
        _export(body, [x, scale])


@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_zero_points_of_channels_and_of_run_time(dtype: str) -> None:
    """Padding is the zero point of the data, so that it adds nothing."""
    data = np.array([[[[9, 2, 5]], [[1, 8, 3]]]]).astype(dtype)
    weight = np.array([[[[4, 7]]], [[[1, 2]]]], np.uint8)
    x, point = relay.var("x", shape=("n", 2, 1, "w"), dtype=dtype), _bytes("point", dtype="int32")
    body = relay.qnn.op.conv2d(
        x, relay.const(weight), point, relay.const(np.array([3, 1], np.int32)), SCALE, SCALE,
        kernel_size=(1, 2), channels=2, groups=2, padding=(0, 1, 0, 0),
    )  # fmt: skip
    found = _run(body, [x, point], [data, np.array(2, np.int32)])
    # less their zero points: data [7 0 3] and [-1 6 1], weights [1 4] and [0 1]
    assert found.tolist() == [[[[4 * 7, 7, 4 * 3]], [[-1, 6, 1]]]]
