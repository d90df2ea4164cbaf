"""Quantised graphs as floats between linear operators: what they become, how near they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.errors import UnsupportedModelError
from serde.relay.ir.expr import Expr, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import call
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


def _qdq(body: Expr, variables: list[Var], opset: int = 17) -> Any:
    return serde.from_relay(
        _model(body, variables), format="onnx", opset=opset, quantized="qdq", allow=ALLOW
    )


def _run(proto: Any, **feeds: np.ndarray) -> np.ndarray:
    """Run a model node by node: the runtime's fused kernels would round their own way."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)[0]


def _compare(body: Expr, variable: Var, data: np.ndarray) -> list[str]:
    """Run both forms; they may differ by one step, seldom. Return the operators."""
    proto = _qdq(body, [variable])
    found = _run(proto, **{variable.name_hint: data})
    expected = run(relay.Function([variable], body), [data])
    assert found.dtype == expected.dtype
    distance = np.abs(found.astype(int) - expected.astype(int))
    assert distance.max() <= 1
    assert (distance > 0).mean() < 0.02
    return [node.op_type for node in proto.graph.node]


def _bytes(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bias", ["none", "bias_add", "add"])
def test_convolution(bias: str, per_channel: bool) -> None:
    x = relay.var("x", shape=(1, 3, 6, 6), dtype="uint8")
    scale = np.array([0.02, 0.01, 0.03, 0.005] if per_channel else 0.02, np.float32)
    weight = _const(_bytes(1, (4, 3, 3, 3), "int8"), "int8")
    conv = relay.qnn.op.conv2d(
        x, weight, X_ZERO, NONE, X_SCALE, _const(scale), (3, 3), 4, padding=(1, 1)
    )
    number = np.array([900, -700, 30, 5], np.int32)
    if bias == "bias_add":
        conv = relay.nn.bias_add(conv, _const(number, "int32"))
    elif bias == "add":
        conv = relay.add(_const(number.reshape(4, 1, 1), "int32"), conv)
    body = relay.qnn.op.requantize(
        conv, _const(np.float32(0.05) * scale), NONE, _const(0.4), _const(10, "int32"), axis=1,
        out_dtype="uint8",
    )  # fmt: skip
    operators = _compare(body, x, _bytes(2, (1, 3, 6, 6), "uint8"))
    assert operators.count("DequantizeLinear") == (2 if bias == "none" else 3)
    assert operators.count("Conv") == operators.count("QuantizeLinear") == 1
    assert set(operators) <= {"DequantizeLinear", "Conv", "Add", "QuantizeLinear"}


def test_dense() -> None:
    x = relay.var("x", shape=(4, 8), dtype="int8")
    weight = _const(_bytes(3, (5, 8), "int8"), "int8")
    product = relay.qnn.op.dense(x, weight, _const(-3, "int32"), NONE, X_SCALE, _const(0.01), 5)
    body = relay.qnn.op.requantize(
        relay.nn.bias_add(product, _const([1, 2, -3, 4, 500], "int32")), _const(5e-4), NONE,
        _const(0.1), NONE, out_dtype="int8",
    )  # fmt: skip
    operators = _compare(body, x, _bytes(4, (4, 8), "int8"))
    assert "MatMulInteger" not in operators
    assert operators[-1] == "QuantizeLinear"


@pytest.mark.parametrize(
    ("name", "op", "combine"),
    [("add", "Add", np.add), ("subtract", "Sub", np.subtract), ("mul", "Mul", np.multiply)],
)
def test_sums_and_products(name: str, op: str, combine: Any) -> None:
    variables = [relay.var(each, shape=(6, 40), dtype="uint8") for each in "ab"]
    parameters = [_const(0.1), _const(100, "int32"), _const(0.03), _const(7, "int32")]
    body = getattr(relay.qnn.op, name)(*variables, *parameters, _const(0.5), _const(9, "int32"))
    a, b = (_bytes(seed, (6, 40), "uint8") for seed in (5, 6))
    proto = _qdq(body, variables)
    real = combine((a - 100.0) * 0.1, (b - 7.0) * 0.03) / 0.5
    expected = np.clip(np.rint(real) + 9, 0, 255)
    tie = np.abs(np.abs(real - np.trunc(real)) - 0.5) < 1e-4
    np.testing.assert_array_equal(_run(proto, a=a, b=b)[~tie], expected[~tie])
    exact = run(relay.Function(variables, body), [a, b])
    assert np.abs(exact.astype(int) - expected).max() <= 1
    assert [node.op_type for node in proto.graph.node] == [
        "DequantizeLinear",
        "DequantizeLinear",
        op,
        "QuantizeLinear",
    ]


@pytest.mark.thin(2)
@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("abs", np.abs),
        ("exp", np.exp),
        ("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6),
        ("leaky_relu", lambda x: np.where(x < 0, 0.25 * x, x)),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ("tanh", np.tanh),
    ],
)
def test_activations(name: str, function: Any, dtype: str, opset: int) -> None:
    zero = 100 if dtype == "uint8" else -20
    x = relay.var("x", shape=(256,), dtype=dtype)
    out_scale = 0.5 if name == "exp" else 0.02
    target = _const(out_scale), _const(zero, "int32")
    options = {"alpha": 0.25} if name == "leaky_relu" else {}
    whole = call(f"qnn.{name}", x, _const(0.03), _const(zero, "int32"), *target, **options)
    limits = np.iinfo(dtype)
    data = np.arange(limits.min, limits.max + 1).astype(dtype)
    proto = _qdq(whole, [x], opset)
    operators = [node.op_type for node in proto.graph.node]
    assert operators[0] == "DequantizeLinear"
    assert operators[-1] == "QuantizeLinear"
    found = _run(proto, x=data).astype(int)
    real = function((data.astype(np.float64) - zero) * np.float32(0.03)) / np.float32(out_scale)
    wanted = np.clip(np.rint(real) + zero, limits.min, limits.max)
    tie = np.abs(np.abs(real - np.trunc(real)) - 0.5) < 1e-3
    np.testing.assert_array_equal(found[~tie], wanted[~tie])
    exact = run(relay.Function([x], whole), [data]).astype(int)
    assert np.abs(found - exact).max() <= 1


@pytest.mark.parametrize("opset", [13, 21])
def test_concatenation(opset: int) -> None:
    a, b = (relay.var(name, shape=(3, 40), dtype="uint8") for name in "ab")
    scales = relay.Tuple([_const(0.1), _const(0.03)])
    zeros = relay.Tuple([_const(100, "int32"), _const(7, "int32")])
    body = relay.qnn.op.concatenate(
        relay.Tuple([a, b]), scales, zeros, _const(0.07), _const(90, "int32"), 1
    )
    proto = _qdq(body, [a, b], opset)
    assert [node.op_type for node in proto.graph.node].count("Concat") == 1
    left, right = _bytes(8, (3, 40), "uint8"), _bytes(9, (3, 40), "uint8")
    found = _run(proto, a=left, b=right).astype(int)
    real = np.concatenate([(left - 100.0) * 0.1, (right - 7.0) * 0.03], 1) / 0.07
    wanted = np.clip(np.rint(real) + 90, 0, 255)
    tie = np.abs(np.abs(real - np.trunc(real)) - 0.5) < 1e-3
    np.testing.assert_array_equal(found[~tie], wanted[~tie])
    exact = run(relay.Function([a, b], body), [left, right]).astype(int)
    assert np.abs(found - exact).max() <= 1


@pytest.mark.parametrize("out_scale", [0.1, 0.07])
def test_means(out_scale: float) -> None:
    x = relay.var("x", shape=(1, 2, 9, 9), dtype="uint8")
    body = relay.qnn.op.avg_pool2d(
        x, _const(0.1), _const(3, "int32"), _const(out_scale), _const(9, "int32"),
        (3, 3), (2, 2), (1, 1), (1, 1), False, False, "NCHW",
    )  # fmt: skip
    proto = _qdq(body, [x])
    assert "AveragePool" in [node.op_type for node in proto.graph.node]
    data = _bytes(10, (1, 2, 9, 9), "uint8")
    found = _run(proto, x=data).astype(int)
    exact = run(relay.Function([x], body), [data]).astype(int)
    assert np.abs(found - exact).max() <= 1


def test_padding_that_counts_as_zero_stays_exact() -> None:
    x = relay.var("x", shape=(1, 2, 9, 9), dtype="uint8")
    body = relay.qnn.op.avg_pool2d(
        x, _const(0.1), _const(3, "int32"), _const(0.1), _const(3, "int32"),
        (3, 3), (2, 2), (1, 1), (1, 1), False, True, "NCHW",
    )  # fmt: skip
    function = relay.Function([x], body)
    assert relay.transform.QuantizedAsFloat().transform(function) is function


def test_quantize_rounds_to_even() -> None:
    x = relay.var("x", shape=(6,))
    body = relay.qnn.op.quantize(x, _const(0.5), _const(3, "int32"), out_dtype="uint8")
    proto = _qdq(body, [x], 13)
    assert [node.op_type for node in proto.graph.node] == ["QuantizeLinear"]
    halves = np.array([-1.25, -0.25, 0.25, 0.75, 1.25, 999], np.float32)
    found = _run(proto, x=halves)
    assert found.tolist() == [1, 3, 3, 5, 5, 255]


def test_consent_is_needed() -> None:
    x = relay.var("x", shape=(6,))
    body = relay.qnn.op.quantize(x, _const(0.5), NONE, out_dtype="uint8")
    with pytest.raises(UnsupportedModelError, match="allow 'quantised-as-qdq'"):
        serde.from_relay(_model(body, [x]), format="onnx", quantized="qdq")
    report = Report()
    model = _model(body, [x])
    serde.from_relay(model, format="onnx", quantized="qdq", allow=ALLOW, report=report)
    assert [issue.op for issue in report.allowed] == ["qnn"]


def test_floats_need_no_consent() -> None:
    x = relay.var("x", shape=(6,))
    report = Report()
    serde.from_relay(_model(relay.tanh(x), [x]), format="onnx", quantized="qdq", report=report)
    assert report.allowed == []


def test_a_scale_of_another_product_stays_exact() -> None:
    x = relay.var("x", shape=(4, 8), dtype="int8")
    weight = _const(_bytes(3, (5, 8), "int8"), "int8")
    product = relay.qnn.op.dense(x, weight, NONE, NONE, X_SCALE, _const(0.01), 5)
    body = relay.qnn.op.requantize(product, _const(7e-4), NONE, _const(0.1), NONE)
    function = relay.Function([x], body)
    assert relay.transform.QuantizedAsFloat().transform(function) is function


def test_sums_that_something_else_uses_stay_exact() -> None:
    x = relay.var("x", shape=(4, 8), dtype="int8")
    weight = _const(_bytes(3, (5, 8), "int8"), "int8")
    product = relay.qnn.op.dense(x, weight, NONE, NONE, X_SCALE, _const(0.01), 5)
    body = relay.qnn.op.requantize(product, _const(5e-4), NONE, _const(0.1), NONE)
    function = relay.Function([x], relay.Tuple([body, product]))
    assert relay.transform.QuantizedAsFloat().transform(function) is function


def test_codes_without_a_zero_point_stay_signed_where_the_runtime_moves_operators() -> None:
    """ONNX Runtime puts a quantisation behind a transpose, and takes uint8 if nothing says int8."""
    runtime = pytest.importorskip("onnxruntime")
    x = relay.var("x", shape=(2, 3), dtype="int8")
    numbers = call("serde.dequantize_linear", x, _const(0.5), None, axis=0)
    moved = relay.expand_dims(relay.transpose(numbers), axis=0)
    proto = serde.from_relay(_model(relay.squeeze(moved), [x]), format="onnx", opset=17)
    session = runtime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    data = np.array([[-128, -3, 0], [5, 127, -1]], np.int8)
    np.testing.assert_array_equal(session.run(None, {"x": data})[0], data.T * np.float32(0.5))
