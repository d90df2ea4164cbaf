"""NumPy's reductions of MXNet, and the legacy ones of numbers alone, against MXNet itself."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree, run_under, same
from support.runtime import newest_runtime_opset, run_onnx

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError
from serde.relay.run.interpreter import run

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int32", "int64")
DTYPES = ("bool", *INTEGERS, *FLOATS)
OF_SUMS = ("float16", "float32", "float64", "int8", "int32", "int64")


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Small numbers, of which integers have some zeros and none is negative."""
    rng = np.random.default_rng([seed, *shape])
    if dtype == "bool" or dtype in INTEGERS:
        return rng.integers(0, 2 if dtype == "bool" else 5, shape).astype(dtype)
    return rng.uniform(-2, 2, shape).astype(dtype)


def var(mx: Any, name: str = "x") -> Any:
    return mx.sym.var(name).as_np_ndarray()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "all", "any"])
def test_dtypes(mx: Any, name: str, dtype: str) -> None:
    symbol = getattr(mx.sym.np, name)(var(mx), axis=1)
    agree(symbol, {"x": numbers(3, 4, dtype=dtype)}, numpy=True)


@pytest.mark.parametrize("dtype", [each for each in DTYPES if each != "bool"])
@pytest.mark.parametrize("name", ["std", "var", "argmax", "argmin"])
def test_dtypes_but_bool(mx: Any, name: str, dtype: str) -> None:
    symbol = getattr(mx.sym.np, name)(var(mx), axis=1)
    agree(symbol, {"x": numbers(3, 4, dtype=dtype)}, numpy=True)


@pytest.mark.wide
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (1, -1), (), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "std", "var", "max", "min", "all", "any"])
def test_axes(mx: Any, name: str, axis: Any, keepdims: bool) -> None:
    symbol = getattr(mx.sym.np, name)(var(mx), axis=axis, keepdims=keepdims)
    data = numbers(2, 3, 4)
    if name in ("all", "any"):
        data[np.abs(data) < 1] = 0
    agree(symbol, {"x": data}, numpy=True)


@pytest.mark.wide
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "std", "var", "max", "all", "argmax"])
def test_scalars(mx: Any, name: str) -> None:
    agree(getattr(mx.sym.np, name)(var(mx)), {"x": np.array(2.5, "f4")}, numpy=True)


@pytest.mark.wide
@pytest.mark.parametrize("result", [*OF_SUMS, "bool"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "prod", "mean"])
def test_results_of_another_dtype(mx: Any, name: str, dtype: str, result: str) -> None:
    symbol = getattr(mx.sym.np, name)(var(mx), axis=1, dtype=result)
    data = numbers(3, 4, dtype=dtype, seed=1)
    if name != "mean" and dtype == "bool" and result in ("bool", "int8", "float16"):
        with pytest.raises(UnsupportedModelError, match="which MXNet refuses"):
            serde.to_relay(symbol, input_shapes={"x": (3, 4)}, input_dtypes={"x": "bool"})
        return
    agree(symbol, {"x": data}, numpy=True)


@pytest.mark.wide
@pytest.mark.parametrize("result", OF_SUMS)
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("name", ["std", "var"])
def test_spread_of_another_dtype(mx: Any, name: str, dtype: str, result: str) -> None:
    symbol = getattr(mx.sym.np, name)(var(mx), axis=1, dtype=result)
    # Mean and squares have the dtype of the data, and ONNX Runtime keeps what is float16 in
    # between in float32 on the CPU: results are as exact as the data (1e-7 and 3e-4 measured).
    bounds = {"float16": 2e-3, "float32": 2e-6}
    wide = is_wider(result, dtype)
    agree(
        symbol,
        {"x": numbers(3, 5, dtype=dtype, seed=2)},
        numpy=True,
        tolerance=bounds[dtype] if wide else None,
    )


def is_wider(result: str, dtype: str) -> bool:
    """Whether a float has less rounding than the one that it comes from."""
    return dtype in FLOATS and result in FLOATS and FLOATS.index(result) > FLOATS.index(dtype)


@pytest.mark.parametrize("name", ["sum", "mean", "var"])
def test_narrow_integers_wrap_around(mx: Any, name: str) -> None:
    data = np.array([[100, 100, 100], [127, -128, 50]], np.int8)
    agree(getattr(mx.sym.np, name)(var(mx), axis=1, dtype="int8"), {"x": data}, numpy=True)


def interpreted(symbol: Any, data: np.ndarray) -> None:
    """Compare the interpreter alone, where ONNX Runtime computes something else than ONNX says."""
    model = serde.to_relay(
        symbol, input_shapes={"x": data.shape}, input_dtypes={"x": data.dtype.name}
    )
    found = run(model.main, [data], mod=model.mod)
    same((found,), run_under(symbol, {"x": data}, numpy=True))


def test_half_precision_means_overflow(mx: Any) -> None:
    """ONNX Runtime keeps what is float16 in between in float32 on the CPU, and finds 100."""
    interpreted(mx.sym.np.mean(var(mx)), np.full(1000, 100, np.float16))


@pytest.mark.parametrize("ddof", [-1, 1, 2, 3])
@pytest.mark.parametrize("name", ["std", "var"])
def test_degrees_of_freedom(mx: Any, name: str, ddof: int) -> None:
    symbol = getattr(mx.sym.np, name)(var(mx), axis=1, ddof=ddof, keepdims=True)
    agree(symbol, {"x": numbers(4, 3)}, numpy=True)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "std", "var", "all", "any"])
def test_no_elements(mx: Any, name: str) -> None:
    symbol = getattr(mx.sym.np, name)(var(mx), axis=0)
    agree(symbol, {"x": np.zeros((0, 3), np.float32)}, numpy=True)


@pytest.mark.parametrize("name", ["max", "min", "all", "any", "argmax", "argmin"])
def test_no_results(mx: Any, name: str) -> None:
    """MXNet's sums of no rows fail, but say so only when a later operator is waited for."""
    symbol = getattr(mx.sym.np, name)(var(mx), axis=1)
    agree(symbol, {"x": np.zeros((0, 3), np.float32)}, numpy=True)


NAN = np.array([[1, np.nan, 2], [np.nan, 1, 0], [0, 0, np.nan]], np.float32)


@pytest.mark.parametrize("name", ["sum", "mean", "all", "any"])
def test_not_a_number(mx: Any, name: str) -> None:
    agree(getattr(mx.sym.np, name)(var(mx), axis=1), {"x": NAN}, numpy=True)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_not_a_number_among_extremes(mx: Any, name: str) -> None:
    """ONNX Runtime compares with NaN as the processor does, and finds one or not by its place."""
    interpreted(getattr(mx.sym.np, name)(var(mx), axis=1), NAN)


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_of_extremes(mx: Any, name: str, axis: int | None) -> None:
    symbol = getattr(mx.sym.np._internal, name)(var(mx), axis=axis, keepdims=True)
    agree(symbol, {"x": np.round(numbers(3, 7))}, numpy=True)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_initial_values_are_refused(mx: Any, name: str) -> None:
    symbol = getattr(mx.sym.np, name)(var(mx), initial=2)
    with pytest.raises(UnsupportedModelError, match="initial=2"):
        serde.to_relay(symbol, input_shapes={"x": (2, 3)})


def test_more_degrees_of_freedom_than_elements_are_refused(mx: Any) -> None:
    symbol = mx.sym.np.var(var(mx), axis=1, ddof=4)
    with pytest.raises(UnsupportedModelError, match="ddof=4 of 3 elements"):
        serde.to_relay(symbol, input_shapes={"x": (2, 3)})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("result", [None, "float32", "int32", "int64"])
@pytest.mark.parametrize("axis", [None, 1])
def test_running_sums(mx: Any, axis: int | None, result: str | None, dtype: str) -> None:
    symbol = mx.sym.np.cumsum(var(mx), axis=axis, dtype=result)
    agree(symbol, {"x": numbers(3, 4, dtype=dtype)}, numpy=True)


def symbolic(mx: Any, symbol: Any, **inputs: np.ndarray) -> None:
    """Compare a graph that is converted with a symbol for the first axis of its first input."""
    first, *_ = inputs
    shapes: dict[str, Any] = {name: value.shape for name, value in inputs.items()}
    shapes[first] = ("n", *inputs[first].shape[1:])
    model = serde.to_relay(symbol, input_shapes=shapes)
    expected = run_under(symbol, inputs, numpy=True)
    found = run(model.main, list(inputs.values()), mod=model.mod)
    same(found if isinstance(found, tuple) else (found,), expected)
    proto = serde.from_relay(model, format="onnx", opset=newest_runtime_opset())
    same(run_onnx(proto.SerializeToString(), inputs)[1], expected)


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("name", ["std", "var"])
def test_spread_of_a_symbolic_batch(mx: Any, name: str, ddof: int, axis: int | None) -> None:
    symbolic(mx, getattr(mx.sym.np, name)(var(mx), axis=axis, ddof=ddof), x=numbers(5, 3))


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "all", "argmax"])
def test_reductions_of_a_symbolic_batch(mx: Any, name: str, axis: int | None) -> None:
    symbolic(mx, getattr(mx.sym.np, name)(var(mx), axis=axis), x=numbers(5, 3))


@pytest.mark.parametrize("axis", [0, 1])
def test_percentiles_of_a_symbolic_batch(mx: Any, axis: int) -> None:
    symbol = mx.sym.np._internal.percentile(var(mx), axis=axis, q_scalar=40)
    symbolic(mx, symbol, x=numbers(5, 3))


def average(mx: Any, *args: Any, **attrs: Any) -> Any:
    found = mx.sym.np._internal.average(*args, **attrs)
    return mx.sym.Group(found) if isinstance(found, list) else found


@pytest.mark.wide
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("returned", [False, True])
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_averages(mx: Any, axis: Any, returned: bool, dtype: str) -> None:
    symbol = average(mx, var(mx), axis=axis, returned=returned, weighted=False)
    agree(symbol, {"x": numbers(2, 3, 4, dtype=dtype)}, numpy=True)


@pytest.mark.wide
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_weighted_averages(mx: Any, axis: Any, dtype: str) -> None:
    symbol = average(mx, var(mx), var(mx, "w"), axis=axis, returned=True)
    weights = np.abs(numbers(2, 3, 4, dtype=dtype, seed=3)) + np.array(1, dtype)
    inputs = {"x": numbers(2, 3, 4, dtype=dtype), "w": weights.astype(dtype)}
    agree(symbol, inputs, numpy=True)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_averages_with_the_weights_of_an_axis(mx: Any, axis: int) -> None:
    data = numbers(2, 3, 4)
    weights = np.linspace(0.5, 2, data.shape[axis]).astype(np.float32)
    symbol = average(mx, var(mx), var(mx, "w"), axis=axis, returned=True)
    agree(symbol, {"x": data, "w": weights}, numpy=True)


INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("axis", [None, 0, (0, 2), -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_percentiles(mx: Any, keepdims: bool, axis: Any, interpolation: str) -> None:
    attrs = {"axis": axis, "interpolation": interpolation, "keepdims": keepdims}
    symbol = mx.sym.np._internal.percentile(var(mx), var(mx, "q"), **attrs)
    shares = np.array([0, 12.5, 33.3, 37.5, 50, 62.5, 90, 100], np.float32)
    agree(symbol, {"x": numbers(2, 3, 5), "q": shares}, numpy=True)


@pytest.mark.wide
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_one_percentile(mx: Any, interpolation: str, dtype: str) -> None:
    attrs = {"axis": 1, "interpolation": interpolation, "q_scalar": 40.0}
    symbol = mx.sym.np._internal.percentile(var(mx), **attrs)
    agree(symbol, {"x": numbers(3, 4, dtype=dtype)}, numpy=True)


@pytest.mark.wide
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_percentages_of_any_dtype(mx: Any, dtype: str) -> None:
    symbol = mx.sym.np._internal.percentile(var(mx), var(mx, "q"), axis=0)
    agree(symbol, {"x": numbers(6, 2), "q": np.array([10, 25, 90], dtype)}, numpy=True)


def test_a_percentage_without_axes(mx: Any) -> None:
    symbol = mx.sym.np._internal.percentile(var(mx), var(mx, "q"), axis=1, keepdims=True)
    agree(symbol, {"x": numbers(2, 6), "q": np.array(30, "f4")}, numpy=True)


def test_a_percentage_above_100_is_refused(mx: Any) -> None:
    symbol = mx.sym.np._internal.percentile(var(mx), q_scalar=140.0)
    with pytest.raises(UnsupportedModelError, match="expected a percentage"):
        serde.to_relay(symbol, input_shapes={"x": (3,)})


def norm(mx: Any, **attrs: Any) -> Any:
    return mx.sym.np._internal.norm(var(mx), **{"keepdims": False, "axis": None, **attrs})


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("ord", [-2, -1, 0, 0.5, 1, 2, 3])
@pytest.mark.parametrize("axis", [0, -1, (1,)])
def test_norms_of_vectors(mx: Any, axis: Any, ord: float, keepdims: bool) -> None:
    data = numbers(3, 4)
    data[1, 2] = 0
    symbol = norm(mx, ord=ord, axis=axis, keepdims=keepdims, flag=-1)
    # MXNet takes the powers and the root in float32, ONNX Runtime too; each rounds on its own.
    agree(symbol, {"x": data}, numpy=True, tolerance=5e-6)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 4)])
def test_norms_of_all(mx: Any, shape: tuple[int, ...], dtype: str) -> None:
    symbol = norm(mx, ord=2, flag=-2, keepdims=True)
    agree(symbol, {"x": numbers(*shape, dtype=dtype)}, numpy=True)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(("ord", "flag"), [(2, 1), (1, -1), (-1, -1)])
@pytest.mark.parametrize("axis", [None, (0, 1), (2, 0)])
def test_norms_of_matrices(mx: Any, axis: Any, ord: int, flag: int, keepdims: bool) -> None:
    symbol = norm(mx, ord=ord, axis=axis, flag=flag, keepdims=keepdims)
    agree(symbol, {"x": numbers(2, 3, 4)}, numpy=True)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(("ord", "flag"), [(2, 0), (-2, 0), (2, 2)])
@pytest.mark.parametrize("axis", [None, (0, 1), (0, 2)])
def test_norms_of_singular_values(mx: Any, axis: Any, ord: int, flag: int, keepdims: bool) -> None:
    symbol = norm(mx, ord=ord, axis=axis, flag=flag, keepdims=keepdims)
    # The least value of these matrices is a third of the greatest: a few roundings of that.
    agree(symbol, {"x": numbers(2, 3, 4)}, numpy=True, tolerance=5e-6, not_in_onnx=r"serde\.svd")


@pytest.mark.parametrize(
    ("attrs", "reason"),
    [
        ({"ord": 3, "axis": (0, 1)}, "no norm"),
        ({"ord": 2, "axis": (0, 1, 2)}, "vectors and of matrices"),
    ],
)
def test_norms_that_are_none(mx: Any, attrs: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedModelError, match=reason):
        serde.to_relay(norm(mx, flag=-1, **attrs), input_shapes={"x": (2, 3, 4)})


SOME_NAN = np.array([[1, np.nan, 3], [np.nan, np.nan, 2], [np.nan] * 3], np.float32)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int8"])
@pytest.mark.parametrize(
    "attrs",
    [{}, {"axis": 1}, {"axis": (0, 1)}, {"axis": 1, "exclude": True, "keepdims": True}],
    ids=str,
)
@pytest.mark.parametrize("name", ["nansum", "nanprod"])
def test_reductions_of_numbers_alone(mx: Any, name: str, attrs: Any, dtype: str) -> None:
    data = SOME_NAN.astype(dtype) if dtype in FLOATS else numbers(3, 3, dtype=dtype)
    agree(getattr(mx.sym, name)(mx.sym.var("x"), **attrs), {"x": data})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [(0,), (-1,), (0, 2), (0, 1, 2)])
def test_moments(mx: Any, axes: tuple[int, ...], keepdims: bool, dtype: str) -> None:
    symbol = mx.sym.moments(mx.sym.var("x"), axes=axes, keepdims=keepdims)
    agree(symbol, {"x": numbers(2, 3, 4, dtype=dtype)})


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_cross_entropy(mx: Any, dtype: str) -> None:
    symbol = mx.sym.softmax_cross_entropy(mx.sym.var("x"), mx.sym.var("y"))
    labels = np.array([0, 2, 1.7, 0], dtype)
    scores = numbers(4, 3, dtype=dtype)
    scores[3] = [-100, 0, 1]
    agree(symbol, {"x": scores, "y": labels})


@pytest.mark.parametrize(
    "attrs", [{"axis": 1}, {"axis": 1, "keepdims": True}, {"axis": 0}], ids=str
)
def test_sums_of_squares(mx: Any, attrs: dict[str, Any]) -> None:
    """MXNet computes them of sparse matrices alone."""
    data = numbers(3, 4)
    sparse = mx.nd._internal._square_sum(mx.nd.array(data).tostype("row_sparse"), **attrs)
    symbol = mx.sym._internal._square_sum(mx.sym.var("x"), **attrs)
    model = serde.to_relay(symbol, input_shapes={"x": (3, 4)})
    same((run(model.main, [data], mod=model.mod),), (sparse.tostype("default").asnumpy(),))
