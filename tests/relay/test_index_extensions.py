"""Extension operators that pick and arrange, against ONNX Runtime and NumPy, also decomposed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.kernels import infer, run_decomposed, run_kernel, run_node, run_reference

import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.relay.ir.dims import symbol
from serde.relay.ir.registry import call, get
from serde.relay.ir.types import TensorType
from serde.relay.run.interpreter import run
from serde.relay.transform import Decompose

BOTH = pytest.mark.parametrize("run_one", [run_kernel, run_decomposed])
X = np.random.default_rng(21).normal(size=(3, 4, 5)).astype(np.float32)


@BOTH
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_counts_from_the_end(axis: int, run_one: Any) -> None:
    length = X.shape[axis]
    indices = np.random.default_rng(22).integers(-length, length, (2, 6))
    expected = run_node("Gather", X, indices, axis=axis)
    np.testing.assert_array_equal(run_one("serde.take", X, indices, axis=axis), expected)


@BOTH
@pytest.mark.parametrize(
    ("shape", "batched"), [((6, 3), 0), ((3, 7, 2), 1), ((3, 4, 1), 2), ((2,), 0)]
)
def test_gather_nd_counts_from_the_end(shape: Any, batched: int, run_one: Any) -> None:
    indices = np.random.default_rng(23).integers(-3, 3, shape)
    expected = run_node("GatherND", X, indices, batch_dims=batched)
    found = run_one("serde.gather_nd", X, indices, batch_dims=batched)
    np.testing.assert_array_equal(found, expected)


@BOTH
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot_counts_from_the_end(axis: int, run_one: Any) -> None:
    indices = np.random.default_rng(24).integers(-8, 8, (3, 4))
    values = np.array([2, 5], np.float32)
    expected = (values[0] + np.zeros((3, 4, 5))).astype(np.float32)
    for place in np.ndindex(3, 4):
        if -5 <= indices[place] < 5:
            expected[place][indices[place]] = values[1]
    found = run_one("serde.one_hot", indices, values, depth=5, axis=axis)
    np.testing.assert_array_equal(found, np.moveaxis(expected, -1, axis))


@BOTH
@pytest.mark.parametrize("k", [-4, -1, 0, 2, 9])
def test_eye_like_is_onnx(k: int, run_one: Any) -> None:
    expected = run_node("EyeLike", X[0], k=k)
    np.testing.assert_array_equal(run_one("serde.eye_like", X[0], k=k), expected)


def test_nonzero_is_onnx() -> None:
    x = np.random.default_rng(25).integers(-1, 2, (3, 4, 2)).astype(np.float32)
    expected = run_reference("NonZero", x)
    np.testing.assert_array_equal(get("serde.nonzero").kernel(x), expected)
    np.testing.assert_array_equal(run_decomposed("serde.nonzero", x), expected)


@BOTH
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_cumsum_is_onnx(axis: int, reverse: bool, exclusive: bool, run_one: Any) -> None:
    flags = {"exclusive": int(exclusive), "reverse": int(reverse)}
    expected = run_node("CumSum", X, np.array(axis), **flags)
    found = run_one("serde.cumsum", X, axis=axis, exclusive=exclusive, reverse=reverse)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_an_exclusive_cumsum_is_finite_before_infinity() -> None:
    x = np.array([1, np.inf, 2], np.float32)
    found = run_kernel("serde.cumsum", x, axis=0, exclusive=True)
    np.testing.assert_array_equal(found, np.array([0, 1, np.inf], np.float32))


@BOTH
@pytest.mark.parametrize(
    ("shift", "axes"), [((1,), (0,)), ((-7, 3), (1, -1)), ((0,), (2,)), ((12,), (0,))]
)
def test_roll_is_numpys(shift: Any, axes: Any, run_one: Any) -> None:
    found = run_one("serde.roll", X, shift=shift, axes=axes)
    np.testing.assert_array_equal(found, np.roll(X, shift, axes))


@pytest.mark.parametrize("shift", [1, -2, 9])
def test_roll_along_a_symbolic_axis(shift: int) -> None:
    variable = relay.Var("x", TensorType((3, symbol("n"), 5)))
    function = relay.Function([variable], call("serde.roll", variable, shift=shift, axes=1))
    plain = Decompose(frozenset()).transform(function)
    np.testing.assert_array_equal(run(plain, [X]), np.roll(X, shift, 1))


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "message"),
    [
        ("serde.eye_like", [(3,)], {}, "a matrix"),
        ("serde.nonzero", [()], {}, "a scalar"),
        ("serde.roll", [(3,)], {"shift": [1, 2], "axes": 0}, "2 shifts do not fit 1 axes"),
        ("serde.cumsum", [(3,)], {"axis": 1}, "axis 1 is outside"),
        ("sort", [(3,)], {"axis": 1}, "axis 1 is outside"),
        ("argsort", [(3, 2)], {"axis": -3}, "axis -3 is outside"),
        ("topk", [(3, 2)], {"k": 1, "axis": 2}, "axis 2 is outside"),
    ],
)
def test_refusals(name: str, shapes: Any, attrs: Any, message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        infer(name, *shapes, **attrs)
