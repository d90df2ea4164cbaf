"""Arithmetic, reductions, linear algebra and random numbers in TVM, on values of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

from support.relax_cases import judge_call
from support.relax_run import run_function

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.relay.ir.dims import symbol

NAN, INF = np.nan, np.inf
ODD = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 20.1, -20.1, 90, -90, 1e-4])
BESIDES = np.array([NAN, INF, -INF])


def draw(dtype: str, *shape: int, low: float = -5, high: float = 5) -> Any:
    """Return numbers of a dtype."""
    generator = np.random.default_rng(3)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return generator.integers(0 if dtype[0] == "u" else -20, 20, shape).astype(dtype)
    return generator.uniform(low, high, shape).astype(np.float32).astype(numpy_dtype(dtype))


def spread(*shape: int) -> Any:
    """Return matrices that are positive definite."""
    x = draw("float32", *shape)
    return x @ x.swapaxes(-1, -2) + np.eye(shape[-1], dtype=np.float32)


def test_extremes_of_infinities_and_of_least_numbers() -> None:
    x, n = relay.var("x", shape=(2, 2)), relay.var("n", shape=(3,), dtype="uint8")
    body = relay.Tuple([relay.max(x, 1), relay.min(x, 1), relay.argmax(n, 0)])
    values = np.array([[-INF, -INF], [INF, INF]], np.float32)
    high, low, place = run_function(relay.Function([x, n], body), values, np.zeros(3, np.uint8))
    assert high.tolist() == low.tolist() == [-INF, INF]
    assert place.tolist() == 0


def test_halves_and_powers_and_remainders() -> None:
    x, n = relay.var("x", shape=(4,)), relay.var("n", shape=(4,), dtype="int32")
    two = relay.const(2.0)
    body = relay.Tuple([relay.round(x), relay.floor_mod(x, two), relay.power(n, n)])
    values = np.array([-2.5, -0.5, 0.5, 2.5], np.float32)
    powers = np.array([-1, -3, 3, 0], np.int32)
    found = run_function(relay.Function([x, n], body), values, powers)
    assert found[0].tolist() == [-3, -1, 1, 3]
    assert found[1].tolist() == [1.5, 1.5, 0.5, 0.5]
    assert found[2].tolist() == [-1, 0, 27, 1]


QUOTIENTS = ("divide", "floor_divide", "mod", "floor_mod")


def _expect_quotient(op: str, x: int, y: int) -> int:
    if y == 0:
        return 0
    if op in ("floor_divide", "floor_mod"):
        return x // y if op == "floor_divide" else x % y
    return int(np.fmod(x, y)) if op == "mod" else int(np.trunc(x / y))


def test_integers_by_zero_and_the_least_by_minus_one_end_no_process() -> None:
    least = int(np.iinfo(np.int32).min)
    xs, ys = [least, -5, 7, 0], [-1, 2, 0, 0]
    x, y = (relay.var(name, shape=(4,), dtype="int32") for name in "xy")
    body = relay.Tuple([getattr(relay, op)(x, y) for op in QUOTIENTS])
    given = (np.array(each, np.int32) for each in (xs, ys))
    found = run_function(relay.Function([x, y], body), *given)
    for op, result in zip(QUOTIENTS, found, strict=True):
        pairs = [_expect_quotient(op, *each) for each in zip(xs, ys, strict=True)]
        assert result.tolist() == np.array(pairs).astype(np.int32).tolist(), op


@pytest.mark.wide
def test_the_mean_of_no_integers_ends_no_process() -> None:
    x = relay.var("x", relay.TensorType((symbol("n"), 2), "int32"))
    (found,) = run_function(relay.Function([x], relay.mean(x, 0)), np.zeros((0, 2), np.int32))
    assert found.tolist() == [0, 0]


@pytest.mark.wide
def test_quotients_of_floats_are_those_that_are_exact() -> None:
    xs, ys = [1, -1, 0.3, -7, 5, INF, 0, 6], [0.1, 0.1, 0.1, 3, 0, 2, 3, -3]
    given = [np.array(each, np.float32) for each in (xs, ys)]
    x, y = (relay.var(name, shape=(8,)) for name in "xy")
    (found,) = run_function(relay.Function([x, y], relay.floor_divide(x, y)), *given)
    assert str(found.tolist()) == str([9.0, -10.0, 3.0, -3.0, INF, NAN, 0.0, -2.0])


@pytest.mark.wide
def test_shifts_by_as_many_bits_as_there_are_leave_nothing() -> None:
    x, y = (relay.var(name, shape=(4,), dtype="int8") for name in "xy")
    body = relay.Tuple([relay.left_shift(x, y), relay.right_shift(x, y)])
    given = (np.array(each, np.int8) for each in ([3, 3, -3, 100], [1, 8, 64, -1]))
    left, right = run_function(relay.Function([x, y], body), *given)
    assert left.tolist() == [6, 0, 0, 0]
    assert right.tolist() == [1, 0, -1, 0]


@pytest.mark.wide
def test_rows_of_attention_that_attend_to_nothing_are_zero() -> None:
    q, k, v = (draw("float32", 1, 1, 2, 3) for _ in range(3))
    judge_call("serde.attention", q, k, v, np.array([[False, False], [True, False]]))


UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "fast_erf",
    "fast_exp",
    "fast_tanh",
    "floor",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log2",
    "negative",
    "round",
    "rsqrt",
    "serde.erfinv",
    "serde.expm1",
    "serde.lgamma",
    "serde.log1p",
    "serde.round_even",
    "serde.tgamma",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]


@pytest.mark.sparse(2)
@pytest.mark.wide
@pytest.mark.parametrize("op", UNARY)
def test_functions_of_halves(op: str) -> None:
    with np.errstate(all="ignore"):
        judge_call(op, np.concatenate([ODD, BESIDES]).astype(np.float16))


@pytest.mark.wide
@pytest.mark.parametrize("op", ["exp", "log2", "round", "rsqrt", "tanh"])
def test_functions_of_brain_floats(op: str) -> None:
    judge_call(op, np.concatenate([ODD, BESIDES]).astype(numpy_dtype("bfloat16")))


@pytest.mark.wide
@pytest.mark.parametrize("op", ["round", "exp", "serde.mish", "serde.softplus", "serde.gelu"])
def test_functions_of_float64(op: str) -> None:
    judge_call(op, ODD)


@pytest.mark.wide
@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64"])
@pytest.mark.parametrize("op", ["negative", "sign", "isinf", "bitwise_not", "logical_not"])
def test_functions_of_integers(op: str, dtype: str) -> None:
    judge_call(op, draw(dtype, 3, 4))


@pytest.mark.wide
@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint64"])
@pytest.mark.parametrize(
    "op",
    [
        "divide",
        "floor_divide",
        "trunc_divide",
        "mod",
        "floor_mod",
        "power",
        "maximum",
        "logical_xor",
    ],
)
def test_two_operands(op: str, dtype: str) -> None:
    x, y = draw(dtype, 2, 3, 4), draw(dtype, 3, 1)
    if op == "power":
        x, y = np.abs(x), y % y.dtype.type(5)
    judge_call(op, x, np.where(y == 0, y.dtype.type(3), y))


@pytest.mark.wide
@pytest.mark.parametrize(
    "op", ["maximum", "less", "greater_equal", "equal", "not_equal", "bitwise_xor"]
)
def test_truth_values(op: str) -> None:
    judge_call(op, draw("bool", 2, 3), draw("bool", 3))


@pytest.mark.wide
@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint64"])
@pytest.mark.parametrize("limits", [(-1.5, 2.5), (-INF, 1.0), (0.1, INF), (-INF, INF)])
def test_clip(limits: tuple[float, float], dtype: str) -> None:
    judge_call("clip", draw(dtype, 3, 4), a_min=limits[0], a_max=limits[1])


@pytest.mark.wide
@pytest.mark.parametrize("given", ["float32", "bfloat16", "uint8", "bool"])
@pytest.mark.parametrize("wanted", ["float16", "bfloat16", "uint64", "bool"])
def test_cast(given: str, wanted: str) -> None:
    judge_call("cast", np.abs(draw(given, 3, 4)), dtype=wanted)


@pytest.mark.wide
@pytest.mark.parametrize("pair", [("bool", "uint8"), ("float16", "int16"), ("uint64", "float64")])
def test_reinterpret(pair: tuple[str, str]) -> None:
    judge_call("reinterpret", draw(pair[0], 3, 4), dtype=pair[1])


REDUCTIONS = [
    "sum",
    "prod",
    "mean",
    "max",
    "min",
    "argmax",
    "argmin",
    "serde.logsumexp",
    "serde.reduce_l1",
    "serde.reduce_l2",
]


@pytest.mark.wide
@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("axes", [None, 1, [0, 2], []])
def test_reductions_of_halves(op: str, axes: Any) -> None:
    judge_call(op, draw("float16", 2, 3, 4, low=100, high=300) / np.float16(64), axis=axes)


@pytest.mark.wide
def test_squares_beyond_float16() -> None:
    judge_call("serde.reduce_l2", np.full((4,), 300, np.float16))


@pytest.mark.wide
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "bfloat16"])
@pytest.mark.parametrize("last", [False, True])
def test_places_of_equals(dtype: str, last: bool) -> None:
    judge_call("argmax", draw(dtype, 3, 5, 2) * 0, axis=[1, 2], select_last_index=last)


@pytest.mark.wide
@pytest.mark.parametrize("op", ["sum", "prod", "mean"])
def test_reductions_of_nothing(op: str) -> None:
    judge_call(op, np.zeros((0, 3), np.float32), axis=0)
    judge_call("any", np.zeros((0, 3), bool), axis=0)
    judge_call("all", np.zeros((0, 3), bool), axis=0)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("dtypes", "wanted"),
    [
        (("int8", "int8"), "int32"),
        (("uint8", "int8"), "int32"),
        (("int8", "int8"), "float32"),
        (("float16", "float16"), "float32"),
        (("bfloat16", "bfloat16"), None),
    ],
)
def test_products_of_other_dtypes(dtypes: tuple[str, str], wanted: str | None) -> None:
    a, b = draw(dtypes[0], 3, 40), draw(dtypes[1], 5, 40)
    judge_call("nn.dense", a, b, units=5, **({} if wanted is None else {"out_dtype": wanted}))


@pytest.mark.wide
@pytest.mark.parametrize("equation", ["ij,jk->ik", "ij,j->ij", "...ij,...jk", "ii->i", "ij->ji"])
def test_sums_of_products(equation: str) -> None:
    shapes = {"ij,j->ij": [(2, 3), (1,)], "ii->i": [(3, 3)], "ij->ji": [(2, 3)]}
    given = [draw("float32", *shape) for shape in shapes.get(equation, [(2, 3), (3, 4)])]
    judge_call("einsum", given, equation=equation)


@pytest.mark.wide
def test_sums_of_products_with_an_axis_of_one_element_and_symbols() -> None:
    judge_call(
        "einsum", [draw("float32", 2, 3), draw("float32", 1)], equation="ij,j->ij", symbolic=True
    )


@pytest.mark.wide
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("op", ["cholesky", "inverse", "det", "slogdet", "eigh", "lq"])
def test_matrices(op: str, symbolic: bool) -> None:
    judge_call(f"serde.{op}", spread(2, 5, 5), symbolic=symbolic)


@pytest.mark.wide
@pytest.mark.parametrize("op", ["det", "slogdet"])
def test_determinants_of_what_has_no_inverse(op: str) -> None:
    judge_call(f"serde.{op}", np.ones((3, 3)))


@pytest.mark.wide
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_systems(lower: bool, transpose: bool) -> None:
    a, b = spread(2, 4, 4), draw("float32", 2, 4, 3)
    judge_call("serde.triangular_solve", a, b, lower=lower, transpose=transpose)
    judge_call("serde.solve", a[:, ::-1].copy(), b)


@pytest.mark.wide
@pytest.mark.parametrize("sparse_first", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "int32"])
def test_sparse_matrices(sparse_first: bool, dtype: str) -> None:
    starts, columns = np.array([0, 2, 2, 3, 5], np.int32), np.array([0, 4, 1, 2, 5], np.int32)
    x, data = draw(dtype, 3, 6), draw(dtype, 5)
    judge_call("nn.sparse_dense", x, data, columns, starts, sparse_lhs=sparse_first)
    judge_call("nn.sparse_add", draw(dtype, 4, 6), data, columns, starts)
    judge_call("nn.sparse_transpose", data, np.array([0, 3, 1, 2, 3], np.int32), starts)


@pytest.mark.wide
def test_sparse_coordinates() -> None:
    entries, shape = np.array([[2, 1], [0, 3], [0, 0], [3, 1]]), np.array([5, 6])
    filler = np.array(9, np.float32)
    judge_call("sparse_fill_empty_rows", entries, draw("float32", 4), shape, filler)
    judge_call("sparse_reshape", entries, shape, np.array([2, 3, -1]))


@pytest.mark.wide
@pytest.mark.parametrize("length", [1, 5, 64])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_transforms(length: int, dtype: str) -> None:
    parts = draw(dtype, 2, length), draw(dtype, 2, length, low=0)
    judge_call("dft", *parts, inverse=length == 5)


KEYS = {
    "new": [1, 2, 3, 4, 0, 0, 0, 0, 2**63, 0],
    "counted": [5, 6, 7, 8, 1, 2, 9, 2**64 - 3, 4, 0],
    "at the middle of its path": [5, 6, 7, 8, 1, 2, 9, 2**64 - 3, 1, 0],
    "at the end of its path": [5, 6, 7, 8, 1, 2, 0, 2**64 - 3, 0, 0],
}


@pytest.mark.wide
@pytest.mark.parametrize("name", KEYS)
def test_keys(name: str) -> None:
    key = np.array(KEYS[name], np.uint64)
    judge_call("random.threefry_split", key)
    judge_call("random.threefry_generate", key, out_shape=(7,))
    judge_call("random.threefry_generate", key, out_shape=(0,))
    judge_call("random.multinomial", key, np.array([0.5, 1.0, 0.2], np.float32), num_samples=6)


@pytest.mark.wide
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_without_classes_that_are_ignored(reduction: str) -> None:
    labels = np.array([[0, -100, 4], [-100, 2, 3]])
    scores, weights = draw("float32", 2, 5, 3), draw("float32", 5, low=0.5)
    judge_call("nn.nll_loss", scores, labels, weights, reduction=reduction, ignore_index=-100)
