"""Activations against ONNX Runtime, and the extension operators against their decompositions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.kernels import infer, run_decomposed, run_kernel, run_node

import serde.relay as relay
from serde.errors import TypeInferenceError

POINTS = np.concatenate([np.linspace(-9, 9, 181), [-80, -30, 0, 30, 80]]).astype(np.float32)
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def _given(*cases: tuple[str, dict[str, Any], str, dict[str, Any], int]) -> list[Any]:
    return [pytest.param(*case, id=f"{case[0]}-{index}") for index, case in enumerate(cases)]


EXTENSIONS = _given(
    ("serde.gelu", {}, "Gelu", {}, 20),
    ("serde.gelu", {"approximate": "tanh"}, "Gelu", {"approximate": "tanh"}, 20),
    ("serde.elu", {}, "Elu", {}, 18),
    ("serde.elu", {"alpha": 0.3}, "Elu", {"alpha": 0.3}, 18),
    ("serde.selu", {}, "Selu", {}, 18),
    ("serde.selu", {"alpha": 1.5, "gamma": 0.7}, "Selu", {"alpha": 1.5, "gamma": 0.7}, 18),
    ("serde.softplus", {}, "Softplus", {}, 18),
    ("serde.mish", {}, "Mish", {}, 18),
    ("serde.softsign", {}, "Softsign", {}, 18),
    ("serde.hard_sigmoid", {}, "HardSigmoid", {}, 18),
    (
        "serde.hard_sigmoid",
        {"alpha": 0.125, "beta": 0.25},
        "HardSigmoid",
        {"alpha": 0.125, "beta": 0.25},
        18,
    ),
    ("serde.hard_swish", {}, "HardSwish", {}, 18),
    ("serde.celu", {}, "Celu", {}, 18),
    ("serde.celu", {"alpha": 0.5}, "Celu", {"alpha": 0.5}, 18),
    ("serde.thresholded_relu", {}, "ThresholdedRelu", {}, 18),
    ("serde.thresholded_relu", {"alpha": -1.5}, "ThresholdedRelu", {"alpha": -1.5}, 18),
    ("serde.shrink", {}, "Shrink", {}, 18),
    ("serde.shrink", {"lambd": 2.0, "bias": 1.5}, "Shrink", {"lambd": 2.0, "bias": 1.5}, 18),
    ("serde.shrink", {"lambd": -0.5, "bias": 1.5}, "Shrink", {"lambd": -0.5, "bias": 1.5}, 18),
    ("serde.round_even", {}, "Round", {}, 18),
)


@pytest.mark.parametrize(("name", "attrs", "op", "onnx_attrs", "opset"), EXTENSIONS)
def test_extension_is_onnx(
    name: str, attrs: dict[str, Any], op: str, onnx_attrs: dict[str, Any], opset: int
) -> None:
    expected = run_node(op, POINTS, opset=opset, **onnx_attrs)
    np.testing.assert_allclose(run_kernel(name, POINTS, **attrs), expected, **CLOSE)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(("name", "attrs", "op", "onnx_attrs", "opset"), EXTENSIONS)
def test_decomposition_is_onnx(
    name: str, attrs: dict[str, Any], op: str, onnx_attrs: dict[str, Any], opset: int
) -> None:
    expected = run_node(op, POINTS, opset=opset, **onnx_attrs)
    np.testing.assert_allclose(run_decomposed(name, POINTS, **attrs), expected, **CLOSE)


@pytest.mark.parametrize("run", [run_kernel, run_decomposed])
def test_silu_is_the_product_with_the_logistic_function(run: Any) -> None:
    expected = POINTS.astype(np.float64) / (1 + np.exp(-POINTS.astype(np.float64)))
    np.testing.assert_allclose(run("serde.silu", POINTS), expected, **CLOSE)


@pytest.mark.parametrize("run", [run_kernel, run_decomposed])
@pytest.mark.parametrize("alpha", [1.0, 1.702, -0.5])
def test_swish_is_the_product_with_a_scaled_logistic_function(run: Any, alpha: float) -> None:
    wide = POINTS.astype(np.float64)
    expected = wide / (1 + np.exp(-alpha * wide))
    found = run("serde.swish", POINTS, alpha=alpha)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("run", [run_kernel, run_decomposed])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_hardmax_marks_the_first_of_equals(run: Any, axis: int) -> None:
    x = np.random.default_rng(3).integers(0, 3, (3, 4, 5)).astype(np.float32)
    expected = run_node("Hardmax", x, axis=axis)
    np.testing.assert_array_equal(run("serde.hardmax", x, axis=axis), expected)


@pytest.mark.parametrize("run", [run_kernel, run_decomposed])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_round_even_takes_the_even_of_two_neighbours(run: Any, dtype: str) -> None:
    ties = np.arange(-20, 20, dtype=dtype) + dtype_of(0.5, dtype)
    beside = np.concatenate([np.nextafter(ties, dtype_of(99, dtype)), -np.nextafter(ties, -ties)])
    points = np.concatenate([ties, beside, [np.inf, -np.inf]]).astype(dtype)
    np.testing.assert_array_equal(run("serde.round_even", points), np.round(points))


def dtype_of(value: float, dtype: str) -> Any:
    return np.dtype(dtype).type(value)


@pytest.mark.parametrize("run", [run_kernel, run_decomposed])
def test_log_sigmoid_is_the_logarithm_of_the_logistic_function(run: Any) -> None:
    expected = -np.log1p(np.exp(-POINTS.astype(np.float64)))
    np.testing.assert_allclose(run("serde.log_sigmoid", POINTS), expected, **CLOSE)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("name", ["serde.gelu", "serde.mish", "serde.elu", "serde.softplus"])
def test_other_dtypes_are_the_rounded_float64(name: str, dtype: str) -> None:
    points = np.linspace(-5, 5, 41).astype(dtype)
    exact = run_kernel(name, points.astype(np.float64))
    found = run_kernel(name, points)
    assert found.dtype == dtype
    eps = max(float(np.finfo(dtype).eps), 1e-15)
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=eps, atol=eps)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize(
    ("name", "op"),
    [("nn.softmax", "Softmax"), ("nn.fast_softmax", "Softmax"), ("nn.log_softmax", "LogSoftmax")],
)
def test_softmax_on_any_axis(name: str, op: str, axis: int) -> None:
    x = np.random.default_rng(1).normal(0, 20, (3, 4, 5)).astype(np.float32)
    expected = run_node(op, x, axis=axis)
    np.testing.assert_allclose(run_kernel(name, x, axis=axis), expected, **CLOSE)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_prelu(axis: int) -> None:
    generator = np.random.default_rng(2)
    x = generator.normal(size=(3, 4, 5)).astype(np.float32)
    shape = [1, 1, 1]
    shape[axis] = x.shape[axis]
    alpha = generator.normal(size=shape).astype(np.float32)
    expected = run_node("PRelu", x, alpha)
    found = run_kernel("nn.prelu", x, alpha.reshape(-1), axis=axis)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_relu_keeps_integers_and_nan() -> None:
    np.testing.assert_array_equal(
        run_kernel("nn.relu", np.array([-3, 0, 5], np.int8)), np.array([0, 0, 5], np.int8)
    )
    assert np.isnan(run_kernel("nn.relu", np.array([np.nan], np.float32)))[0]


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "message"),
    [
        ("nn.softmax", [(2, 3)], {"axis": 2}, "axis 2 is outside a tensor of rank 2"),
        ("nn.prelu", [(2, 3), (4,)], {}, "lengths 3 and 4 differ"),
        ("serde.gelu", [(2,)], {"approximate": "erf"}, "attribute approximate"),
        ("serde.celu", [(2,)], {"alpha": 0.0}, "other than zero"),
        ("serde.hardmax", [(2, 3)], {"axis": -3}, "axis -3 is outside a tensor of rank 2"),
    ],
)
def test_refusals(name: str, shapes: Any, attrs: Any, message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        infer(name, *shapes, **attrs)


def test_softmax_refuses_integers() -> None:
    with pytest.raises(TypeInferenceError, match="floating-point"):
        infer("nn.softmax", (2, 3), dtype="int32")


def test_the_slope_of_leaky_relu_may_be_left_out() -> None:
    assert relay.nn.leaky_relu(relay.Var("x")).attrs.alpha == 0.01
