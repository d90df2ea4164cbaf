"""Operators of MIL in Relay, against the values that coremltools itself infers."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from support.mil import check_import


def draw(name: str, *shape: int, low: float = -3.0, high: float = 3.0) -> np.ndarray:
    """Values that include halves and zero where the range allows them."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    values = rng.uniform(low, high, shape).astype(np.float32)
    special = [v for v in (-1.5, -0.5, 0.0, 0.5, 1.5, 2.5) if low < v < high]
    values.flat[: len(special)] = special[: values.size]
    return values


UNIT = ("acos", "asin", "atanh")
POSITIVE = ("inverse", "log", "rsqrt", "sqrt")
ANY = (
    "abs", "atan", "ceil", "cos", "cosh", "erf", "exp", "exp2", "floor", "identity", "round",
    "sign", "sin", "sinh", "square", "tan", "tanh",
)  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize(
    ("op", "low", "high"),
    [
        *((op, -0.99, 0.99) for op in UNIT),
        *((op, 0.01, 4.0) for op in POSITIVE),
        *((op, -3.0, 3.0) for op in ANY),
    ],
)
def test_function(op: str, low: float, high: float, target: str) -> None:
    check_import(op, {"x": draw(op, 3, 5, low=low, high=high)}, {}, target=target)


@pytest.mark.parametrize("op", ["inverse", "log", "rsqrt"])
@pytest.mark.parametrize("epsilon", [0.25, 1e-3])
def test_function_with_an_offset(op: str, epsilon: float) -> None:
    tensors = {"x": draw(op, 7, low=0.0, high=2.0)}
    check_import(op, tensors, {"epsilon": np.float32(epsilon)})


ARITHMETIC = ("add", "floor_div", "maximum", "minimum", "mod", "mul", "pow", "real_div", "sub")
COMPARISON = ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")


@pytest.mark.thin(2)
@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISON])
def test_pair(op: str) -> None:
    x = draw(op, 3, 1, 5, low=0.25 if op == "pow" else -3.0)
    y = draw(f"{op}y", 4, 5)
    y[np.abs(y) < 0.2] = 0.75
    check_import(op, {"x": x, "y": y}, {})


@pytest.mark.thin(2)
@pytest.mark.parametrize("op", ["add", "floor_div", "maximum", "mod", "mul", "sub", *COMPARISON])
def test_pair_of_integers(op: str) -> None:
    x = np.array([[-7, -3, 0, 5, 8]], np.int32)
    check_import(op, {"x": x, "y": np.array([[2], [3]], np.int32)}, {})


@pytest.mark.parametrize("op", ["logical_and", "logical_or", "logical_xor"])
def test_pair_of_truths(op: str) -> None:
    x = np.array([[False, True]])
    check_import(op, {"x": x, "y": x.T}, {})


ACTIVATIONS: dict[str, dict[str, Any]] = {
    "clamped_relu": {"alpha": 0.25, "beta": 1.5},
    "elu": {"alpha": 0.75},
    "gelu": {},
    "leaky_relu": {"alpha": 0.125},
    "linear_activation": {"alpha": 0.5, "beta": -1.0},
    "relu": {},
    "relu6": {},
    "scaled_tanh": {"alpha": 0.5, "beta": 1.5},
    "sigmoid": {},
    "sigmoid_hard": {"alpha": 0.25, "beta": 0.5},
    "silu": {},
    "softmax": {},
    "softplus": {},
    "softsign": {},
    "thresholded_relu": {"alpha": 0.5},
}


@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize("op", ACTIVATIONS)
def test_activation(op: str, target: str) -> None:
    data = draw(op, 3, 4, 5)
    if op == "silu":
        # coremltools infers no value of it.
        wanted = [data / (1 + np.exp(-data))]
        check_import(op, {"x": data}, {}, target=target, expected=wanted)
        return
    attrs = {name: np.float32(value) for name, value in ACTIVATIONS[op].items()}
    check_import(op, {"x": data}, attrs, target=target)


CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "clip": ("clip", {"x": draw("clip", 9)}, {"alpha": -1.0, "beta": 0.5}),
    "threshold": ("threshold", {"x": draw("threshold", 9)}, {"alpha": 0.25}),
    "not": ("logical_not", {"x": np.array([True, False])}, {}),
    "select": (
        "select",
        {"cond": np.array([[True], [False]]), "a": draw("a", 2, 3), "b": draw("b", 2, 3)},
        {},
    ),
    "prelu": (
        "prelu",
        {"x": draw("prelu", 2, 3, 4, 2)},
        {"alpha": np.array([0.1, 0.2, 0.3], np.float32)},
    ),
    "softplus_parametric": (
        "softplus_parametric",
        {"x": draw("softplus", 2, 3, 4, 1)},
        {"alpha": draw("alpha", 3), "beta": draw("beta", 3)},
    ),
    "gelu_tanh": ("gelu", {"x": draw("gelu", 9)}, {"mode": "TANH_APPROXIMATION"}),
    "gelu_sigmoid": ("gelu", {"x": draw("gelu", 9)}, {"mode": "SIGMOID_APPROXIMATION"}),
    "softmax_axis": ("softmax", {"x": draw("softmax", 2, 3, 4)}, {"axis": 1}),
    "to_int": ("cast", {"x": draw("cast", 9)}, {"dtype": "int32"}),
    "to_half": ("cast", {"x": draw("cast", 9)}, {"dtype": "fp16"}),
    "to_truth": ("cast", {"x": draw("cast", 9)}, {"dtype": "bool"}),
    "from_int": ("cast", {"x": np.arange(5, dtype=np.int32)}, {"dtype": "fp32"}),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", CASES)
def test_operator(name: str) -> None:
    op, tensors, attrs = CASES[name]
    check_import(op, tensors, attrs)


@pytest.mark.parametrize("op", ["prelu", "softplus_parametric"])
def test_factors_of_another_dtype(op: str) -> None:
    """From iOS17 on factors may be of more digits than the data."""
    x, alpha, beta = draw("wide", 2, 3, 4, 2), draw("alpha", 3), draw("beta", 3)
    x = x.astype(np.float16)
    a, b = (each.reshape(3, 1, 1) for each in (alpha, beta))
    if op == "prelu":
        attrs, wanted = {"alpha": alpha}, np.where(x > 0, x, a * x)
    else:
        attrs = {"alpha": alpha, "beta": beta}
        wanted = a * np.log1p(np.exp(b * x.astype(np.float32)))
    check_import(
        op, {"x": x}, attrs, target="iOS17", expected=[wanted.astype(np.float16)], tolerance=1e-2
    )
