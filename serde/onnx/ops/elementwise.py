"""Arithmetic, comparison and mathematical functions, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np
from onnx import helper

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.shapes import is_float
from serde.relay.types import TensorType
from serde.weights import Array

SAME = {
    "abs": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "add": "Add",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "cos": "Cos",
    "cosh": "Cosh",
    "divide": "Div",
    "equal": "Equal",
    "exp": "Exp",
    "log": "Log",
    "multiply": "Mul",
    "negative": "Neg",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "subtract": "Sub",
    "tan": "Tan",
    "tanh": "Tanh",
}
"""Relay's operator: the operator of ONNX that differs by its name only."""


def _same(target: str) -> Callable[..., Value]:
    def export_same(ctx: Ctx, *operands: Value) -> Value:
        return ctx.emit(target, *operands)

    return export_same


for _name, _target in SAME.items():
    OPS.exports(_name)(_same(_target))

OPS.exports("fast_exp")(_same("Exp"))
OPS.exports("fast_tanh")(_same("Tanh"))


def cast(ctx: Ctx, x: Value, dtype: AnyValue) -> Value:
    """Return `x` in another dtype."""
    return ctx.emit("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _of_floats(target: str) -> Callable[..., Value]:
    def export_of_floats(ctx: Ctx, x: Value) -> Value:
        """An integer is whole already."""
        return ctx.emit(target, x) if is_float(ctx.type(x).dtype) else x

    return export_of_floats


OPS.exports("ceil")(_of_floats("Ceil"))
OPS.exports("floor")(_of_floats("Floor"))


def _comparison(target: str) -> Callable[..., Value]:
    def export_comparison(ctx: Ctx, x: Value, y: Value) -> Value:
        return ctx.emit(target, _ordered(ctx, x), _ordered(ctx, y))

    return export_comparison


def _ordered(ctx: Ctx, x: Value) -> Value:
    """ONNX does not order truth values."""
    return cast(ctx, x, np.int32) if ctx.type(x).dtype == "bool" else x


OPS.exports("greater")(_comparison("Greater"))
OPS.exports("less")(_comparison("Less"))


def _logical(target: str) -> Callable[..., Value]:
    def export_logical(ctx: Ctx, *operands: Value) -> Value:
        """Relay takes numbers, too, and gives their dtype back."""
        dtype = ctx.type(operands[0]).dtype
        result = ctx.emit(target, *[truth(ctx, x) for x in operands])
        return result if dtype == "bool" else cast(ctx, result, dtype)

    return export_logical


def truth(ctx: Ctx, x: Value) -> Value:
    """Return whether each element differs from zero."""
    return x if ctx.type(x).dtype == "bool" else cast(ctx, x, np.bool_)


for _name, _target in {
    "logical_and": "And",
    "logical_not": "Not",
    "logical_or": "Or",
    "logical_xor": "Xor",
}.items():
    OPS.exports(_name)(_logical(_target))


def _bitwise(target: str, logical: str) -> Callable[..., Value]:
    def export_bitwise(ctx: Ctx, *operands: Value) -> Value:
        return ctx.emit(logical if ctx.type(operands[0]).dtype == "bool" else target, *operands)

    return export_bitwise


for _name, (_target, _truth) in {
    "bitwise_and": ("BitwiseAnd", "And"),
    "bitwise_not": ("BitwiseNot", "Not"),
    "bitwise_or": ("BitwiseOr", "Or"),
    "bitwise_xor": ("BitwiseXor", "Xor"),
}.items():
    OPS.exports(_name, since=18)(_bitwise(_target, _truth))


@OPS.exports("where")
def export_where(ctx: Ctx, condition: Value, x: Value, y: Value) -> Value:
    return ctx.emit("Where", truth(ctx, condition), x, y)


@OPS.exports("erf", "fast_erf")
def export_erf(ctx: Ctx, x: Value) -> Value:
    return ctx.emit("Erf", x)


@OPS.exports("power")
def export_power(ctx: Ctx, x: Value, y: Value) -> Value:
    """Before 12 Pow takes floats only, and never small integers: both go through float64."""
    dtype = ctx.type(x).dtype
    if is_float(dtype) or (dtype in ("int32", "int64") and ctx.version >= 12):
        return ctx.emit("Pow", x, y)
    wide = ctx.emit("Pow", cast(ctx, x, np.float64), cast(ctx, y, np.float64))
    return cast(ctx, wide, dtype)


@OPS.exports("isnan")
def export_isnan(ctx: Ctx, x: Value) -> Value:
    return _property(ctx, "IsNaN", x)


@OPS.exports("isinf")
def export_isinf(ctx: Ctx, x: Value) -> Value:
    return _property(ctx, "IsInf", x)


def _property(ctx: Ctx, op: str, x: Value) -> Value:
    """No integer is infinite or not a number; IsInf takes float16 from 20 on only."""
    dtype = ctx.type(x).dtype
    if not is_float(dtype):
        return filled(ctx, ctx.emit("Shape", x), 0, "bool")
    if dtype not in ("float32", "float64"):
        x = cast(ctx, x, np.float32)
    return ctx.emit(op, x)


@OPS.exports("cast")
def export_cast(ctx: Ctx, x: Value, *, dtype: np.dtype[AnyValue]) -> Value:
    """ONNX says nothing of floats beyond an integer's range, and Relay neither."""
    return cast(ctx, x, dtype)


def widened(ctx: Ctx, x: Value, dtype: str) -> Value:
    """Return `x` in `dtype`; itself where it is that already."""
    return x if ctx.type(x).dtype == dtype else cast(ctx, x, dtype)


@OPS.exports("copy")
def export_copy(ctx: Ctx, x: Value) -> Value:
    return x


@OPS.exports("maximum")
def export_maximum(ctx: Ctx, x: Value, y: Value) -> Value:
    return _extreme(ctx, "Max", "Greater", x, y)


@OPS.exports("minimum")
def export_minimum(ctx: Ctx, x: Value, y: Value) -> Value:
    return _extreme(ctx, "Min", "Less", x, y)


def _extreme(ctx: Ctx, op: str, comparison: str, x: Value, y: Value) -> Value:
    """Before 12, Max and Min take floats only; truth values never."""
    dtype = ctx.type(x).dtype
    if dtype == "bool":
        return ctx.emit("Or" if op == "Max" else "And", x, y)
    if ctx.version >= 12 or is_float(dtype):
        return ctx.emit(op, x, y)
    return ctx.emit("Where", ctx.emit(comparison, x, y), x, y)


@OPS.exports("not_equal")
def export_not_equal(ctx: Ctx, x: Value, y: Value) -> Value:
    return ctx.emit("Not", ctx.emit("Equal", x, y))


@OPS.exports("less_equal", since=12)
def export_less_equal(ctx: Ctx, x: Value, y: Value) -> Value:
    return ctx.emit("LessOrEqual", _ordered(ctx, x), _ordered(ctx, y))


@OPS.exports("less_equal")
def export_less_equal_v1(ctx: Ctx, x: Value, y: Value) -> Value:
    """Two comparisons, since the negation of the opposite one is true for NaN."""
    x, y = _ordered(ctx, x), _ordered(ctx, y)
    return ctx.emit("Or", ctx.emit("Less", x, y), ctx.emit("Equal", x, y))


@OPS.exports("greater_equal", since=12)
def export_greater_equal(ctx: Ctx, x: Value, y: Value) -> Value:
    return ctx.emit("GreaterOrEqual", _ordered(ctx, x), _ordered(ctx, y))


@OPS.exports("greater_equal")
def export_greater_equal_v1(ctx: Ctx, x: Value, y: Value) -> Value:
    """Two comparisons, since the negation of the opposite one is true for NaN."""
    x, y = _ordered(ctx, x), _ordered(ctx, y)
    return ctx.emit("Or", ctx.emit("Greater", x, y), ctx.emit("Equal", x, y))


@OPS.exports("isfinite")
def export_isfinite(ctx: Ctx, x: Value) -> Value:
    return ctx.emit("Not", ctx.emit("Or", export_isnan(ctx, x), export_isinf(ctx, x)))


@OPS.exports("rsqrt")
def export_rsqrt(ctx: Ctx, x: Value) -> Value:
    return ctx.emit("Reciprocal", ctx.emit("Sqrt", x))


@OPS.exports("log2")
def export_log2(ctx: Ctx, x: Value) -> Value:
    return ctx.emit("Mul", ctx.emit("Log", x), ctx.scalar_like(x, 1 / math.log(2)))


@OPS.exports("log10")
def export_log10(ctx: Ctx, x: Value) -> Value:
    return ctx.emit("Mul", ctx.emit("Log", x), ctx.scalar_like(x, 1 / math.log(10)))


@OPS.exports("trunc")
def export_trunc(ctx: Ctx, x: Value) -> Value:
    if not is_float(ctx.type(x).dtype):
        return x
    return ctx.emit("Mul", ctx.emit("Sign", x), ctx.emit("Floor", ctx.emit("Abs", x)))


@OPS.exports("round")
def export_round(ctx: Ctx, x: Value) -> Value:
    """Relay rounds a half away from zero, ONNX to even.

    The fraction is compared on its own: adding a half first would round the
    number just below one half up.
    """
    if not is_float(ctx.type(x).dtype):
        return x
    size = ctx.emit("Abs", x)
    whole = ctx.emit("Floor", size)
    below = ctx.emit("Less", ctx.emit("Sub", size, whole), ctx.scalar_like(x, 0.5))
    up = ctx.emit("Add", whole, ctx.scalar_like(x, 1))
    return ctx.emit("Mul", ctx.emit("Sign", x), ctx.emit("Where", below, whole, up))


@OPS.exports("mod", "trunc_mod")
def export_mod(ctx: Ctx, x: Value, y: Value) -> Value:
    return ctx.emit("Mod", x, y, fmod=1)


@OPS.exports("floor_mod")
def export_floor_mod(ctx: Ctx, x: Value, y: Value) -> Value:
    if not is_float(ctx.type(x).dtype):
        return ctx.emit("Mod", x, y, fmod=0)
    whole = ctx.emit("Floor", ctx.emit("Div", x, y))
    return ctx.emit("Sub", x, ctx.emit("Mul", whole, y))


@OPS.exports("floor_divide")
def export_floor_divide(ctx: Ctx, x: Value, y: Value) -> Value:
    if is_float(ctx.type(x).dtype):
        return ctx.emit("Floor", ctx.emit("Div", x, y))
    rest = ctx.emit("Mod", x, y, fmod=0)
    return ctx.emit("Div", ctx.emit("Sub", x, rest), y)


@OPS.exports("trunc_divide")
def export_trunc_divide(ctx: Ctx, x: Value, y: Value) -> Value:
    quotient = ctx.emit("Div", x, y)
    if not is_float(ctx.type(x).dtype):
        return quotient
    return ctx.emit("Mul", ctx.emit("Sign", quotient), ctx.emit("Floor", ctx.emit("Abs", quotient)))


@OPS.exports("clip")
def export_clip(ctx: Ctx, x: Value, *, a_min: float, a_max: float) -> Value:
    """Integers are clipped with integers; before 12, Clip takes floats only."""
    type_ = ctx.type(x)
    if is_float(type_.dtype):
        return ctx.emit("Clip", x, ctx.scalar_like(x, a_min), ctx.scalar_like(x, a_max))
    limits = np.iinfo(type_.dtype)
    low = ctx.scalar_like(x, math.ceil(max(a_min, limits.min)))
    high = ctx.scalar_like(x, math.floor(min(a_max, limits.max)))
    if ctx.version >= 12:
        return ctx.emit("Clip", x, low, high)
    above = ctx.emit("Where", ctx.emit("Less", x, low), low, x)
    return ctx.emit("Where", ctx.emit("Less", high, above), high, above)


def typed(ctx: Ctx, x: Value, like: Value, dtype: str) -> Value:
    """Return a value with a Relay type: the shape of `like`, and `dtype`."""
    return Value(x.name, TensorType(ctx.type(like).shape, dtype), x.data)


def scaled(ctx: Ctx, x: Value, multiplier: Value, divisor: Value, away: bool = False) -> Value:
    """Return int64 `x` times a ratio of positive int64, rounded to the nearest.

    ONNX shifts unsigned integers only. Its division truncates, so that halves go away from
    zero by half a divisor of the sign of the product; halves go up where the floor is taken.
    (The sign comes from a comparison: ONNX Runtime's Sign of int64 is wrong beyond 32 bits.)
    """
    if divisor.data is not None:
        half = ctx.const(divisor.data // 2)
    else:
        half = ctx.emit("Div", divisor, ctx.const(2, np.int64))
    product = ctx.emit("Mul", x, multiplier)
    if away:
        negative = ctx.emit("Less", product, ctx.const(0, np.int64))
        half = ctx.emit("Where", negative, ctx.emit("Neg", half), half)
        return ctx.emit("Div", ctx.emit("Add", product, half), divisor)
    raised = ctx.emit("Add", product, half)
    rest = ctx.emit("Mod", raised, divisor, fmod=0)
    return ctx.emit("Div", ctx.emit("Sub", raised, rest), divisor)


def fixed_ratio(ctx: Ctx, mantissa: Array, exponent: Array) -> tuple[Value, Value]:
    """Return mantissa * 2**(exponent - 31) as a multiplier and a divisor of int64."""
    one = np.int64(1)
    multiplier = np.asarray(mantissa, np.int64) * (one << np.maximum(exponent, 0))
    divisor = one << np.asarray(31 + np.maximum(-np.asarray(exponent), 0), np.int64)
    return ctx.const(multiplier), ctx.const(divisor)


@OPS.exports("fixed_point_multiply")
def export_fixed_point_multiply(ctx: Ctx, x: Value, *, multiplier: int, shift: int) -> Value:
    ratio = fixed_ratio(ctx, np.array(multiplier), np.array(shift))
    return cast(ctx, scaled(ctx, cast(ctx, x, np.int64), *ratio), np.int32)


@OPS.exports("fixed_point_multiply_per_axis")
def export_fixed_point_multiply_per_axis(
    ctx: Ctx,
    x: Value,
    multiplier: Value,
    left_shift: Value,
    right_shift: Value,
    *,
    is_lshift_required: bool,
    is_rshift_required: bool,
    axes: tuple[int, ...],
) -> Value:
    """Shifts that are computed at run time look their power of two up."""
    rank = ctx.type(x).rank
    along = {axis % rank for axis in axes}
    free = ctx.ints(axis for axis in range(rank) if axis not in along)
    powers = ctx.const(np.int64(1) << np.arange(63, dtype=np.int64))
    by = cast(ctx, multiplier, np.int64)
    if is_lshift_required:
        by = ctx.emit("Mul", by, ctx.emit("Gather", powers, left_shift, axis=0))
    divisor = ctx.const([1 << 31], np.int64)
    if is_rshift_required:
        places = ctx.emit("Add", right_shift, ctx.const(31, np.int32))
        divisor = _spread(ctx, ctx.emit("Gather", powers, places, axis=0), free)
    wide = cast(ctx, x, np.int64)
    return cast(ctx, scaled(ctx, wide, _spread(ctx, by, free), divisor), np.int32)


def _spread(ctx: Ctx, x: Value, axes: Value) -> Value:
    """Insert axes of length 1; their places are an attribute before 13."""
    places = ctx.constant(axes).tolist()
    if not places:
        return x
    if ctx.version >= 13:
        return ctx.emit("Unsqueeze", x, axes)
    return ctx.emit("Unsqueeze", x, axes=places)


@OPS.exports("zeros_like")
def export_zeros_like(ctx: Ctx, x: Value) -> Value:
    return filled(ctx, ctx.emit("Shape", x), 0, ctx.type(x).dtype)


@OPS.exports("ones_like")
def export_ones_like(ctx: Ctx, x: Value) -> Value:
    return filled(ctx, ctx.emit("Shape", x), 1, ctx.type(x).dtype)


def filled(ctx: Ctx, shape: Value, value: float, dtype: str) -> Value:
    """Return a tensor of the shape held by `shape`, every element `value`."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    tensor = helper.make_tensor("value", element, [1], [value])
    return ctx.emit("ConstantOfShape", shape, value=tensor)
