"""Quantised graphs with their products in one step: what they become, how near they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.exported import run_proto

import serde
import serde.relay as relay
from serde.errors import UnsupportedModelError
from serde.relay.ir.expr import Expr, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.run.interpreter import run

ALLOW = frozenset({"quantised-as-qdq"})


def _const(value: Any, dtype: str = "float32") -> Expr:
    return relay.const(np.asarray(value), dtype)


NONE = _const(0, "int32")
X_SCALE, X_ZERO = _const(0.05), _const(120, "int32")


def _model(body: Expr, variables: list[Var]) -> RelayModel:
    names = tuple(each.name_hint for each in variables)
    mod = IRModule({"main": relay.Function(variables, body)})
    return RelayModel(mod, {}, ModelMeta(names, ("out",)))


def _bytes(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def _compare(body: Expr, *variables: Var, opset: int = 17) -> list[str]:
    """Run both forms; they may differ by one step, seldom. Return the operators."""
    model = _model(body, list(variables))
    proto = serde.from_relay(model, format="onnx", opset=opset, quantized="qlinear", allow=ALLOW)
    data = [
        _bytes(seed, each.type.shape, each.type.dtype) for seed, each in enumerate(variables, 20)
    ]
    (found,) = run_proto(proto, data)
    expected = run(relay.Function(variables, body), data)
    assert found.dtype == expected.dtype
    distance = np.abs(found.astype(int) - expected.astype(int))
    assert distance.max() <= 1
    assert (distance > 0).mean() < 0.02
    return [node.op_type for node in proto.graph.node]


def _convolution(
    bias: str, per_channel: bool, out_dtype: str = "uint8", **window: Any
) -> tuple[Expr, Var]:
    x = relay.var("x", shape=(1, 3, 12, 12), dtype="uint8")
    scale = np.array([0.02, 0.01, 0.03, 0.005] if per_channel else 0.02, np.float32)
    weight = _const(_bytes(1, (4, 3, 3, 3), "int8"), "int8")
    conv = relay.qnn.op.conv2d(
        x, weight, X_ZERO, NONE, X_SCALE, _const(scale), (3, 3), 4, padding=(1, 1), **window
    )
    number = np.array([900, -700, 30, 5], np.int32)
    if bias == "bias_add":
        conv = relay.nn.bias_add(conv, _const(number, "int32"))
    elif bias == "add":
        conv = relay.add(_const(number.reshape(4, 1, 1), "int32"), conv)
    body = relay.qnn.op.requantize(
        conv, _const(np.float32(0.05) * scale), NONE, _const(0.4), _const(10, "int32"), axis=1,
        out_dtype=out_dtype,
    )  # fmt: skip
    return body, x


@pytest.mark.exact_sums
@pytest.mark.thin(2)
@pytest.mark.parametrize("opset", [11, 13, 17, 21])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bias", ["none", "bias_add", "add"])
def test_convolution(bias: str, per_channel: bool, opset: int) -> None:
    assert _compare(*_convolution(bias, per_channel), opset=opset) in (
        ["QLinearConv"],
        ["Reshape", "QLinearConv"],
    )


@pytest.mark.exact_sums
def test_convolution_with_strides_and_dilation() -> None:
    body, x = _convolution("bias_add", True, strides=(2, 1), dilation=(1, 2))
    assert _compare(body, x) == ["QLinearConv"]


def test_a_change_of_dtype_stays_between_linear_operators() -> None:
    """ONNX Runtime has no QLinearConv from uint8 to int8."""
    operators = _compare(*_convolution("bias_add", False, "int8"))
    assert "QLinearConv" not in operators
    assert operators[-1] == "QuantizeLinear"


@pytest.mark.exact_sums
@pytest.mark.parametrize("per_column", [False, True])
def test_dense(per_column: bool) -> None:
    x = relay.var("x", shape=(24, 8), dtype="int8")
    weight = _const(_bytes(3, (5, 8), "int8"), "int8")
    scale = np.array([0.01, 0.02, 0.005, 0.01, 0.03] if per_column else 0.01, np.float32)
    product = relay.qnn.op.dense(x, weight, _const(-3, "int32"), NONE, X_SCALE, _const(scale), 5)
    body = relay.qnn.op.requantize(
        product, _const(np.float32(0.05) * scale), NONE, _const(0.1), _const(4, "int32"), axis=1,
        out_dtype="int8",
    )  # fmt: skip
    assert _compare(body, x)[-1] == "QLinearMatMul"


def test_a_dense_layer_with_a_bias_stays_between_linear_operators() -> None:
    x = relay.var("x", shape=(24, 8), dtype="int8")
    weight = _const(_bytes(3, (5, 8), "int8"), "int8")
    product = relay.qnn.op.dense(x, weight, _const(-3, "int32"), NONE, X_SCALE, _const(0.01), 5)
    body = relay.qnn.op.requantize(
        relay.nn.bias_add(product, _const([1, 2, -3, 4, 500], "int32")), _const(5e-4), NONE,
        _const(0.1), NONE, out_dtype="int8",
    )  # fmt: skip
    operators = _compare(body, x)
    assert "QLinearMatMul" not in operators
    assert operators[-1] == "QuantizeLinear"


def test_batch_matmul() -> None:
    x = relay.var("x", shape=(2, 6, 8), dtype="int8")
    y = relay.var("y", shape=(2, 7, 8), dtype="int8")
    product = relay.qnn.op.batch_matmul(
        x, y, _const(-3, "int32"), _const(5, "int32"), X_SCALE, _const(0.02)
    )
    body = relay.qnn.op.requantize(
        product, _const(1e-3), NONE, _const(0.5), _const(-6, "int32"), out_dtype="int8"
    )
    assert _compare(body, x, y) == ["Transpose", "QLinearMatMul"]


def test_floats_that_something_else_reads_stay() -> None:
    x = relay.var("x", shape=(1, 1, 4, 4), dtype="uint8")
    scale, zero = _const(0.1), relay.const(np.uint8(3))
    real = relay.serde.dequantize_linear(x, scale, zero)
    weight = relay.serde.dequantize_linear(
        _const(_bytes(1, (1, 1, 3, 3), "int8"), "int8"), scale, relay.const(np.int8(0))
    )
    conv = relay.nn.conv2d(real, weight)
    end = relay.serde.quantize_linear(conv, _const(2.0), zero, out_dtype="uint8")
    linear = relay.transform.QuantizedAsLinear()
    alone = linear.transform(relay.Function([x], end))
    assert alone.body.op.name == "serde.qlinear_conv2d"
    shared = relay.Function([x], relay.Tuple([end, conv]))
    assert linear.transform(shared) is shared


def test_consent_is_needed() -> None:
    body, x = _convolution("none", False)
    with pytest.raises(UnsupportedModelError, match="allow 'quantised-as-qdq'"):
        serde.from_relay(_model(body, [x]), format="onnx", quantized="qlinear")
