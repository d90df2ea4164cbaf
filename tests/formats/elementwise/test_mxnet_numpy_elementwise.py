"""Element-wise operators of MXNet's NumPy interface, and their older cousins, against MXNet."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
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
INTEGERS = ("uint8", "int8", "int32", "int64")
DTYPES = (*FLOATS, *INTEGERS, "bool")

UNIT = ("arccos", "arcsin", "arctanh")
ABOVE_ONE = ("arccosh",)
POSITIVE = ("log", "log10", "log1p", "log2", "sqrt")
EVERYWHERE = (
    "arcsinh", "arctan", "cbrt", "ceil", "cos", "cosh", "degrees", "exp", "expm1", "fix", "floor",
    "negative", "radians", "reciprocal", "rint", "sin", "sinh", "square", "tan", "tanh", "trunc",
)  # fmt: skip
NO_FLOAT64 = frozenset(
    {"arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cosh", "sinh", "tan"}
)
"""What ONNX Runtime has no float64 kernels for."""


def symbol(name: str, *inputs: Any, **attrs: Any) -> Any:
    """A node of an operator by its full name."""
    mx = import_mxnet()
    for prefix, home in (
        ("_npi_", mx.sym.np._internal), ("_np_", mx.sym.np), ("_npx_", mx.sym.npx), ("", mx.sym),
        ("", mx.sym._internal),
    ):  # fmt: skip
        found = getattr(home, name[len(prefix) :], None) if name.startswith(prefix) else None
        if found is not None:
            given = [x.as_np_ndarray() if name.startswith("_np") else x for x in inputs]
            return found(*given, **attrs)
    raise AttributeError(name)


def node(name: str, *arrays: np.ndarray, **attrs: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """An operator of as many variables as there are arrays, and their values."""
    mx = import_mxnet()
    names = [f"x{i}" for i in range(len(arrays))]
    with mx.util.np_shape(True):
        made = symbol(name, *(mx.sym.var(each) for each in names), **attrs)
    return made, dict(zip(names, arrays, strict=True))


def check(name: str, *arrays: np.ndarray, **options: Any) -> None:
    """Compare one operator; `attrs` among the options are its attributes."""
    attrs = options.pop("attrs", {})
    agree(*node(name, *arrays, **attrs), numpy=True, **options)


def check_in_relay(name: str, *arrays: np.ndarray, attrs: Mapping[str, Any] | None = None) -> None:
    """Compare in the interpreter alone, where ONNX Runtime has no kernel of a dtype."""
    made, inputs = node(name, *arrays, **(attrs or {}))
    model = serde.to_relay(
        made,
        input_shapes={key: value.shape for key, value in inputs.items()},
        input_dtypes={key: value.dtype.name for key, value in inputs.items()},
    )
    same([run(model.main, list(arrays), mod=model.mod)], run_under(made, inputs, numpy=True))


def drawn(name: str, dtype: str, shape: tuple[int, ...] = (3, 4)) -> np.ndarray:
    """Values from where a function is defined."""
    rng = np.random.default_rng(len(name))
    low, high = (0.1, 0.95) if name in UNIT else (1.1, 4.0) if name in ABOVE_ONE else (-3.0, 3.0)
    if name in POSITIVE:
        low = 0.2
    return rng.uniform(low, high, shape).astype(dtype)


UNARY = [*UNIT, *ABOVE_ONE, *POSITIVE, *EVERYWHERE, "absolute", "sign"]


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_floats(name: str, dtype: str) -> None:
    compare = check_in_relay if dtype == "float64" and name in NO_FLOAT64 else check
    compare(f"_npi_{name}", drawn(name, dtype))


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_integers(name: str, dtype: str) -> None:
    """Of values where the result is neither without a number nor beyond the dtype."""
    values = [0, 1] if name in UNIT and name != "arctanh" else [1, 2, 3]
    if name == "arctanh":
        values = [0, 0]
    if dtype != "uint8" and name in (*EVERYWHERE, "absolute", "sign") and name != "reciprocal":
        values = [-2, 0, 1]
    check(f"_npi_{name}", np.array(values, dtype))


@pytest.mark.wide
@pytest.mark.parametrize("name", ["exp", "expm1", "cosh", "sinh", "sqrt", "degrees", "cbrt", "sin"])
def test_large_integers_keep_their_digits(name: str) -> None:
    check(f"_npi_{name}", np.array([20, 18, 21], "int32"))


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 1, 0), (1,)])
@pytest.mark.parametrize("name", ["exp", "sign", "rint", "square", "isnan", "logical_not"])
def test_scalars_and_empty_tensors(name: str, shape: tuple[int, ...]) -> None:
    check(f"_npi_{name}", np.ones(shape, "float32"))


ODD = np.array([0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 0.49999997, 2**22 + 0.5, 2**23 + 1, np.inf,
                -np.inf, np.nan])  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "name",
    ["ceil", "fix", "floor", "rint", "trunc", "absolute", "exp", "expm1", "cbrt", "reciprocal",
     "log1p", "sqrt", "tanh", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "logical_not",
     "nan_to_num"],
)  # fmt: skip
def test_halves_infinities_and_no_numbers(name: str, dtype: str) -> None:
    with np.errstate(over="ignore"):
        check(f"_npi_{name}", ODD.astype(dtype))


@pytest.mark.wide
@pytest.mark.parametrize("value", [1e-7, -1e-7, 3e-5, 2e-3, -2e-3])
@pytest.mark.parametrize("name", ["_npi_log1p", "_npi_expm1", "log1p", "expm1"])
def test_small_arguments_keep_their_digits(name: str, value: float) -> None:
    """The bound is relative to the result, not to one."""
    x = np.full((2,), value, np.float32)
    made, inputs = node(name, x)
    model = agree(made, inputs, numpy=True, returns=True)
    (expected,) = run_under(made, inputs, numpy=True)
    np.testing.assert_allclose(run(model.main, [x], mod=model.mod), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name", ["isfinite", "isinf", "isnan", "isneginf", "isposinf", "logical_not", "nan_to_num"]
)
def test_predicates_of_every_dtype(name: str, dtype: str) -> None:
    check(f"_npi_{name}", np.array([[0, 1], [2, 3]]).astype(dtype))


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_bitwise_not(dtype: str) -> None:
    check("_npi_bitwise_not", np.array([0, 1, 100]).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_copy(dtype: str) -> None:
    check("_np_copy", np.array([0, 1, 3]).astype(dtype))


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int64"])
@pytest.mark.parametrize("name", ["_npx_relu", "_npx_sigmoid"])
def test_activations(name: str, dtype: str) -> None:
    check(name, np.array([[-2, 0], [1, 3]], dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("decimals", [0, 1, 2, -1, -2])
def test_around(decimals: int, dtype: str) -> None:
    values = np.array([0.25, 0.35, 0.5, 1.5, 2.5, 14, 15, 16, 25, 123.456, 249])
    check("_npi_around", values.astype(dtype), attrs={"decimals": decimals})


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "attrs", [{"nan": 3.5}, {"posinf": 1.0, "neginf": -1.0}, {"posinf": 7.0}, {"neginf": -7.0}],
    ids=str,
)  # fmt: skip
def test_nan_to_num(attrs: dict[str, float], dtype: str) -> None:
    check("_npi_nan_to_num", np.array([np.inf, -np.inf, np.nan, 0, 1.5], dtype), attrs=attrs)


LEFT = np.array([[3, 1, 7], [2, 5, 4]])
RIGHT = np.array([2, 1, 3])
ALL = list(itertools.product(DTYPES, DTYPES))
MIXED = [pair for pair in ALL if set(pair) != {"uint8", "int8"}]
UNMIXED = [(lhs, rhs) for lhs, rhs in ALL if lhs == rhs != "bool" or {lhs, rhs} & set(FLOATS)]
DIVIDED = [(lhs, rhs) for lhs, rhs in ALL if lhs == rhs or (lhs in FLOATS) != (rhs in FLOATS)]
"""Pairs of dtypes that MXNet combines."""


@pytest.mark.thin(2)
@pytest.mark.thin(3)
@pytest.mark.parametrize(("lhs", "rhs"), MIXED)
@pytest.mark.parametrize("name", ["add", "multiply", "power"])
def test_promotion(name: str, lhs: str, rhs: str) -> None:
    check(f"_npi_{name}", LEFT.astype(lhs), RIGHT.astype(rhs))


@pytest.mark.thin(2)
@pytest.mark.thin(3)
@pytest.mark.parametrize(("lhs", "rhs"), UNMIXED)
@pytest.mark.parametrize("name", ["subtract", "mod"])
def test_promotion_without_integers_of_two_kinds(name: str, lhs: str, rhs: str) -> None:
    check(f"_npi_{name}", LEFT.astype(lhs), RIGHT.astype(rhs))


@pytest.mark.thin(2)
@pytest.mark.thin(3)
@pytest.mark.parametrize(("lhs", "rhs"), DIVIDED)
def test_true_division(lhs: str, rhs: str) -> None:
    check("_npi_true_divide", LEFT.astype(lhs), RIGHT.astype(rhs))


@pytest.mark.parametrize(
    ("name", "lhs", "rhs"),
    [("add", "uint8", "int8"), ("subtract", "int32", "int64"), ("subtract", "bool", "bool"),
     ("true_divide", "float32", "float64"), ("equal", "int32", "float32"),
     ("lcm", "float32", "float32")],
)  # fmt: skip
def test_what_mxnet_does_not_combine_is_refused(name: str, lhs: str, rhs: str) -> None:
    made, inputs = node(f"_npi_{name}", LEFT.astype(lhs), RIGHT.astype(rhs))
    with pytest.raises(UnsupportedModelError):
        serde.to_relay(
            made,
            input_shapes={key: value.shape for key, value in inputs.items()},
            input_dtypes={key: value.dtype.name for key, value in inputs.items()},
        )


SCALAR = (
    "add", "subtract", "rsubtract", "multiply", "mod", "rmod", "power", "rpower", "true_divide",
    "rtrue_divide", "copysign", "rcopysign", "ldexp", "rldexp",
)  # fmt: skip
COMPARED = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
NUMBERS = pytest.mark.parametrize(
    ("scalar", "is_int"), [(2, True), (2.5, False), (2, False), (2.5, True)]
)


@pytest.mark.sparse(3)
@NUMBERS
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SCALAR)
def test_scalars(name: str, dtype: str, scalar: float, is_int: bool) -> None:
    x = np.array([1, 3, 2] if dtype in ("uint8", "bool") or "power" in name else [-3, 3, 2])
    check(f"_npi_{name}_scalar", x.astype(dtype), attrs={"scalar": scalar, "is_int": is_int})


@pytest.mark.wide
@NUMBERS
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", COMPARED)
def test_comparison_with_scalars(name: str, dtype: str, scalar: float, is_int: bool) -> None:
    x = np.array([0, 1, 2, 3], dtype)
    check(f"_npi_{name}_scalar", x, attrs={"scalar": scalar, "is_int": is_int})


@pytest.mark.thin(2)
@pytest.mark.parametrize("scalar", [-1, 300, -2.7])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64"])
@pytest.mark.parametrize("name", ["add", "multiply", "bitwise_and", "less", "mod"])
def test_scalars_wrap_into_the_dtype(name: str, dtype: str, scalar: float) -> None:
    check(f"_npi_{name}_scalar", np.array([1, 2, 3], dtype), attrs={"scalar": scalar})


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "bool", "float32", "float16"])
@pytest.mark.parametrize("is_int", [True, False])
@pytest.mark.parametrize("name", ["_npi_arctan2", "_npi_rarctan2", "_hypot"])
def test_angles_and_lengths_beside_scalars(name: str, is_int: bool, dtype: str) -> None:
    x = np.array([1, 3, 7]).astype(dtype)
    attrs = {"scalar": 2, "is_int": is_int}
    is_wide = dtype not in ("float32", "float16") and name != "_hypot"
    compare = check_in_relay if is_wide else check
    compare(f"{name}_scalar", x, attrs=attrs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", COMPARED)
def test_comparisons(name: str, dtype: str) -> None:
    check(f"_npi_{name}", LEFT.astype(dtype), RIGHT.astype(dtype))


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits(name: str, dtype: str) -> None:
    """MXNet spreads no truth values."""
    rhs = np.array([[2, 1, 3], [0, 7, 4]]) if dtype == "bool" else RIGHT
    check(f"_npi_{name}", LEFT.astype(dtype), rhs.astype(dtype))


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits_of_scalars(name: str, dtype: str) -> None:
    check(f"_npi_{name}_scalar", LEFT.astype(dtype), attrs={"scalar": 6})


SIDES = np.array([-5.5, 5.5, np.inf, 3, 3, np.nan, -0.0, 0.0, -7.25, 6, -6, 5, 0, -np.inf, np.inf])
OTHERS = np.array([3, -3, 3, np.inf, -np.inf, 1, 3, -3, 2.5, -3, 3, 0, 0, -np.inf, np.inf])


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", ["mod", "copysign", "hypot", "arctan2", "power", "ldexp"])
def test_every_side_of_zero(name: str, dtype: str) -> None:
    check(f"_npi_{name}", SIDES.astype(dtype), OTHERS.astype(dtype))


@pytest.mark.parametrize("name", ["copysign", "arctan2"])
def test_negative_zeros_show(name: str) -> None:
    zeros = np.array([0.0, -0.0, 0.0, -0.0], np.float32)
    others = np.array([0.0, 0.0, -0.0, -0.0], np.float32)
    made, inputs = node(f"_npi_{name}", zeros, others)
    model = agree(made, inputs, numpy=True)
    (expected,) = run_under(made, inputs, numpy=True)
    found = run(model.main, [zeros, others], mod=model.mod)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_a_remainder_is_not_that_of_a_rounded_quotient() -> None:
    x, y = np.float32([0.6, 1e7, 2.1, -0.6]), np.float32([0.2, 0.1, 0.7, 0.2])
    check("_npi_mod", x, y)


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8", "float32", "float16"])
@pytest.mark.parametrize("name", ["_npi_mod", "broadcast_mod"])
def test_a_remainder_by_zero_is_zero(name: str, dtype: str) -> None:
    check(name, np.array([-5, 5, 0, 7], dtype), np.array([0, -3, 0, 4], dtype))


def test_a_length_does_not_overflow() -> None:
    check("_npi_hypot", np.float32([3e30, 3e-30]), np.float32([4e30, 4e-30]))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_ldexp_of_integers(dtype: str) -> None:
    check("_npi_ldexp", np.array([30, 3, 5], dtype), np.array([1, 2, 4], dtype))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_copysign_of_integers(dtype: str) -> None:
    signs = (
        np.array([1, -3, 2, 0]).astype(dtype) if dtype != "uint8" else np.array([1, 3, 2, 0], dtype)
    )
    check("_npi_copysign", np.array([5, 3, 0, 9], dtype), signs)


@pytest.mark.wide
@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_lcm(dtype: str) -> None:
    lhs = np.array([[1, 3, 4, 0], [12, 6, 5, 8]]).astype(dtype)
    rhs = np.array([6, 5, 6, 0]).astype(dtype)
    check("_npi_lcm", lhs[0] if dtype == "bool" else lhs, rhs)


def test_lcm_of_negative_numbers() -> None:
    check("_npi_lcm", np.array([-4, 4, -4, 987]), np.array([6, -6, -6, 610]))


@pytest.mark.parametrize("scalar", [6, -6, 0])
def test_lcm_with_a_scalar(scalar: int) -> None:
    check("_npi_lcm_scalar", np.array([[-4, 4, 9]], "int32"), attrs={"scalar": scalar})


CONDITION = np.array([[1, 0, 0.5], [0, 1, 0]])


@pytest.mark.wide
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["float32", "int32", "bool"])
def test_where(kind: str, dtype: str) -> None:
    condition = CONDITION.astype(kind)
    check("_npi_where", condition, np.array([0, 1, 3]).astype(dtype),
          np.array([[4], [0]]).astype(dtype))  # fmt: skip


@pytest.mark.wide
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["_npi_where_lscalar", "_npi_where_rscalar"])
def test_where_with_a_scalar(name: str, dtype: str) -> None:
    check(name, CONDITION.astype("f"), np.array([0, 1, 3]).astype(dtype), attrs={"scalar": 2.7})


@pytest.mark.wide
@pytest.mark.parametrize("dtype", DTYPES)
def test_where_of_scalars(dtype: str) -> None:
    check("_npi_where_scalar2", CONDITION.astype(dtype), attrs={"x": 2.7, "y": -3})


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "bool"])
@pytest.mark.parametrize("to", [None, "float64", "int8", "bool"])
def test_full_like(to: str | None, dtype: str) -> None:
    attrs = {"fill_value": 2.7} if to is None else {"fill_value": 2.7, "dtype": to}
    check("_npi_full_like", np.zeros((2, 3), dtype), attrs=attrs)


@pytest.mark.wide
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_batch_of_unknown_length(batch: int) -> None:
    """Promotion, scalars, a loop and choices."""
    mx = import_mxnet()
    x, y = (mx.sym.var(name).as_np_ndarray() for name in "xy")
    with mx.util.np_shape(True):
        chosen = mx.sym.np.where(x > 1, mx.sym.np.mod(x, y) + 2.5, mx.sym.np.arctan2(x, y))
        whole = mx.sym.np._internal.lcm_scalar(x.astype("int32"), scalar=6)
        made = mx.sym.np._internal.add(chosen, whole)
    model = serde.to_relay(made, input_shapes={"x": ("n", 3), "y": (3,)})
    x_value = np.random.default_rng(batch).uniform(-9, 9, (batch, 3)).astype(np.float32)
    values = {"x": x_value, "y": np.float32([2, -3, 4])}
    expected = run_under(made, values, numpy=True)
    same([run(model.main, list(values.values()), mod=model.mod)], expected)
    proto = serde.from_relay(model, format="onnx", opset=newest_runtime_opset())
    same(run_onnx(proto.SerializeToString(), values)[1], expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["gamma", "gammaln"])
def test_gamma(name: str, dtype: str) -> None:
    x = np.array([0.5, -0.5, -1.5, 0.0, -1, -2, 4, 10.5, 1e-4, 1, 2, np.inf, np.nan, -2.25])
    check(name, x.astype(dtype), returns=True)


@pytest.mark.parametrize("dtype", FLOATS)
def test_erfinv(dtype: str) -> None:
    x = np.array([0, 0.3, -0.999, 0.99999, 1, -1, 1.5, np.nan, 1e-10, -0.5])
    check("erfinv", x.astype(dtype), returns=True)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
@pytest.mark.parametrize("name", ["gamma", "gammaln"])
def test_gamma_of_integers(name: str, dtype: str) -> None:
    check(name, np.array([1, 3, 4], dtype))
