"""Arithmetic, functions of one tensor, and conversion of element types."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any as AnyValue, Final

import numpy as np

import serde.relay as relay
from serde.core.weights import dtype_name, numpy_dtype
from serde.errors import Unsupported
from serde.relax.framework import Framework
from serde.relax.ops.table import OPS, Export, Import, Scalar, Value
from serde.relax.precision import NARROW, compute_wide, widen
from serde.relay.ir import Expr, call, is_float
from serde.relay.op.elementwise.unary import clip_limits
from serde.walk import FLOATS, SIGNED, Takes, pair, reads, writes
from serde.walk.expansion.functions import arctan2

_ARITHMETIC: Final = ("add", "subtract", "multiply")

_OF_BITS: Final = {
    "maximum": "logical_or",
    "minimum": "logical_and",
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "bitwise_xor": "logical_xor",
}
"""Operators that Relax calls as Relay does, and what each is of bool."""

_COMPARISONS: Final = ("less", "less_equal", "greater", "greater_equal")
_LOGICAL: Final = ("logical_and", "logical_or", "logical_xor")


def _export_same(ctx: Export, lhs: Value, rhs: Value, *, op: str, of_bits: str) -> Value:
    return ctx.emit(of_bits if ctx.type(lhs).dtype == "bool" else op, lhs, rhs)


for _op, _bits in _OF_BITS.items():
    OPS.exports(_op)(partial(_export_same, op=_op, of_bits=_bits))


def _export_shift(ctx: Export, lhs: Value, rhs: Value, *, op: str) -> Value:
    """By as many bits as there are, or more, nothing is left; processors do otherwise."""
    dtype = np.dtype(ctx.type(lhs).dtype)
    last = 8 * dtype.itemsize - 1
    if rhs.data is not None and ((rhs.data >= 0) & (rhs.data <= last)).all():
        return ctx.emit(op, lhs, rhs)
    zero, most = ctx.const(0, dtype), ctx.const(last, dtype)
    few = ctx.emit("less_equal", rhs, most)
    if dtype.kind == "i":
        few = ctx.emit("logical_and", few, ctx.emit("greater_equal", rhs, zero))
    made = ctx.emit(op, lhs, ctx.emit("where", few, rhs, most))
    return made if op == "right_shift" and dtype.kind == "i" else ctx.emit("where", few, made, zero)


for _op in ("left_shift", "right_shift"):
    OPS.exports(_op)(partial(_export_shift, op=_op))


@OPS.exports("equal")
def export_equal(ctx: Export, lhs: Value, rhs: Value) -> Value:
    """LLVM has no comparison of bits as TVM asks for it; nor of those that differ."""
    if ctx.type(lhs).dtype == "bool":
        return ctx.emit("logical_not", ctx.emit("logical_xor", lhs, rhs))
    return ctx.emit("equal", lhs, rhs)


@OPS.exports("not_equal")
def export_not_equal(ctx: Export, lhs: Value, rhs: Value) -> Value:
    of_bool = ctx.type(lhs).dtype == "bool"
    return ctx.emit("logical_xor" if of_bool else "not_equal", lhs, rhs)


def _export_comparison(ctx: Export, lhs: Value, rhs: Value, *, op: str) -> Value:
    """Truth values are compared as numbers, which they are not in Relax."""
    if ctx.type(lhs).dtype == "bool":
        lhs, rhs = (ctx.emit("astype", each, "uint8") for each in (lhs, rhs))
    return ctx.emit(op, lhs, rhs)


for _op in _COMPARISONS:
    OPS.exports(_op)(partial(_export_comparison, op=_op))


def _export_logical(ctx: Export, lhs: Value, rhs: Value, *, op: str) -> Value:
    dtype = ctx.type(lhs).dtype
    if dtype == "bool":
        return ctx.emit(op, lhs, rhs)
    found = ctx.emit(op, *(truth_of(ctx, each) for each in (lhs, rhs)))
    return ctx.emit("astype", found, dtype)


for _op in _LOGICAL:
    OPS.exports(_op)(partial(_export_logical, op=_op))


def truth_of(ctx: Export, x: Value) -> Value:
    """Return which elements are not zero."""
    dtype = ctx.type(x).dtype
    return x if dtype == "bool" else ctx.emit("not_equal", x, ctx.const(0, dtype))


@OPS.exports("where")
def export_where(ctx: Export, condition: Value, x: Value, y: Value) -> Value:
    return ctx.emit("where", truth_of(ctx, condition), x, y)


def _divide(ctx: Export, op: str, lhs: Value, rhs: Value) -> Value:
    """Write a quotient or a remainder, of integers such that none ends the process.

    By zero both are 0, as in NumPy. Processors refuse that, and the least number by -1.
    """
    dtype = ctx.type(lhs).dtype
    if is_float(dtype):
        return ctx.emit(op, lhs, rhs)
    signed = dtype.startswith("int")
    if rhs.data is not None and not np.isin(rhs.data, (0, -1) if signed else 0).any():
        return ctx.emit(op, lhs, rhs)
    zero, one = ctx.const(0, dtype), ctx.const(1, dtype)
    nothing = ctx.emit("equal", rhs, zero)
    turned = ctx.emit("equal", rhs, ctx.const(-1, dtype)) if signed else nothing
    refused = ctx.emit("logical_or", nothing, turned) if signed else nothing
    made = ctx.emit(op, lhs, ctx.emit("where", refused, one, rhs))
    if signed:
        negative = zero if "mod" in op else ctx.emit("negative", lhs)
        made = ctx.emit("where", turned, negative, made)
    return ctx.emit("where", nothing, zero, made)


@OPS.exports("divide")
def export_divide(ctx: Export, lhs: Value, rhs: Value) -> Value:
    return _divide(ctx, "divide", lhs, rhs)


@OPS.exports("floor_divide")
def export_floor_divide(ctx: Export, lhs: Value, rhs: Value) -> Value:
    """Of floats TVM takes the floor of a quotient that is rounded: 1 // 0.1 is 9, and not 10."""
    dtype = ctx.type(lhs).dtype
    if not is_float(dtype):
        return _divide(ctx, "floor_divide", lhs, rhs)
    wide = "float32" if dtype in NARROW else dtype

    def floored(x: Expr, y: Expr) -> Expr:
        x, y = (relay.cast(each, wide) for each in (x, y))
        rest, turned = _divide_down(x, y, wide)
        exact = relay.divide(relay.subtract(x, rest), y)
        exact = relay.where(turned, relay.subtract(exact, relay.const(1, wide)), exact)
        found = relay.round(exact)  # It is a whole number but for what the division has rounded.
        found = relay.where(relay.equal(y, relay.const(0, wide)), relay.divide(x, y), found)
        return relay.cast(found, dtype)

    return ctx.spell(floored, lhs, rhs)


@OPS.exports("mod", "trunc_mod")
def export_mod(ctx: Export, lhs: Value, rhs: Value) -> Value:
    if not is_float(ctx.type(lhs).dtype):
        return _divide(ctx, "mod", lhs, rhs)
    return compute_wide(ctx, lambda x, y: ctx.emit("mod", x, y), lhs, rhs)


@OPS.exports("floor_mod")
def export_floor_mod(ctx: Export, lhs: Value, rhs: Value) -> Value:
    """Of floats TVM computes it by a quotient, which is rounded; a remainder is exact."""
    dtype = ctx.type(lhs).dtype
    if not is_float(dtype):
        return _divide(ctx, "floor_mod", lhs, rhs)

    def floored(x: Expr, y: Expr) -> Expr:
        rest, turned = _divide_down(x, y, dtype)
        return relay.where(turned, relay.add(rest, y), rest)

    return ctx.spell(floored, lhs, rhs)


def _divide_down(x: Expr, y: Expr, dtype: str) -> tuple[Expr, Expr]:
    """Return the rest of a division towards zero, and whether the floor is one below it."""
    rest, zero = relay.trunc_mod(x, y), relay.const(0, dtype)
    turned = relay.not_equal(relay.less(rest, zero), relay.less(y, zero))
    return rest, relay.logical_and(turned, relay.not_equal(rest, zero))


@OPS.exports("power")
def export_power(ctx: Export, lhs: Value, rhs: Value) -> Value:
    if is_float(ctx.type(lhs).dtype):
        return compute_wide(ctx, lambda x, y: ctx.emit("power", x, y), lhs, rhs)
    return ctx.emit_te(_make_integer_power(ctx.framework), lhs, rhs)


def _make_integer_power(framework: Framework) -> Callable[..., AnyValue]:
    """Return the power of integers by squaring, modulo the width of the dtype."""
    tir, topi, script = framework.tir, framework.topi, framework.statements

    def loop(ins: Sequence[AnyValue], outs: Sequence[AnyValue]) -> None:
        lhs, rhs, out = (script.buffer_proxy(each) for each in (*ins, *outs))
        dtype = outs[0].dtype
        zero, one = tir.const(0, dtype), tir.const(1, dtype)
        with script.parallel(0, outs[0].shape[0]) as place:
            base, rest = framework.cell(dtype), framework.cell(dtype)
            base[0], rest[0], out[place] = lhs[place], rhs[place], one
            if not str(dtype).startswith("uint"):
                with script.If(rest[0] < zero), script.Then():
                    odd = tir.bitwise_and(rest[0], one)
                    unit = tir.Select(tir.any(odd == one, base[0] == one), base[0], one)
                    ones = tir.any(base[0] == one, base[0] == -one)
                    out[place] = tir.Select(ones, unit, zero)
            with script.While(rest[0] > zero):
                with script.If(tir.bitwise_and(rest[0], one) == one), script.Then():
                    out[place] = out[place] * base[0]
                base[0] = base[0] * base[0]
                rest[0] = tir.shift_right(rest[0], one)

    def integer_power(lhs: AnyValue, rhs: AnyValue) -> AnyValue:
        shape = topi.add(lhs, rhs).shape
        count = [math.prod(shape)]
        flat = [topi.reshape(topi.broadcast_to(each, shape), count) for each in (lhs, rhs)]
        (made,) = framework.extern_of_buffers(
            "integer_power", flat, [count], [lhs.dtype],
            lambda ins, outs: framework.write_statements(lambda: loop(ins, outs)),
        )  # fmt: skip
        return topi.reshape(made, shape)

    return integer_power


_SAME: Final = (
    "divide", "floor_divide", "floor_mod", "mod", "power",
    "maximum", "minimum",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_xor",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
    "where",
)  # fmt: skip
"""Further operators that Relay calls the same."""

OPS.pairs(
    *(pair(f"relax.{op}", op) for op in _ARITHMETIC), *(reads(f"relax.{op}", op) for op in _SAME)
)


@OPS.imports("relax.log_add_exp")
def import_log_add_exp(ctx: Import, x1: Expr, x2: Expr) -> Expr:
    apart = relay.negative(relay.abs(relay.subtract(x1, x2)))
    return relay.add(relay.maximum(x1, x2), call("serde.log1p", relay.exp(apart)))


@OPS.imports("relax.atan2")
def import_atan2(ctx: Import, x1: Expr, x2: Expr) -> Expr:
    return arctan2(x1, x2)


@OPS.imports("relax.ewise_fma")
def import_ewise_fma(ctx: Import, x1: Expr, x2: Expr, x3: Expr) -> Expr:
    return relay.add(relay.multiply(x1, x2), x3)


_BYTE: Final = "float8"
"""Begins the names of floats of a byte."""


@OPS.exports("cast")
def export_cast(ctx: Export, data: Value, *, dtype: np.dtype[AnyValue]) -> Value:
    return _convert(ctx, data, dtype_name(dtype))


def _convert(ctx: Export, data: Value, dtype: str) -> Value:
    given = ctx.type(data).dtype
    if given == dtype:
        return data
    if dtype.startswith(_BYTE):
        raise Unsupported(f"TVM does not round to {dtype} as others do")
    if given.startswith(_BYTE):
        return _look_up(ctx, data, given, dtype)
    return truth_of(ctx, data) if dtype == "bool" else ctx.emit("astype", data, dtype)


@OPS.imports("relax.astype", "relax.wrap_param")
def import_astype(ctx: Import, x: Expr, *, dtype: str | None) -> Expr:
    if dtype is None:
        raise Unsupported("a cast to no dtype")
    return x if ctx.dtype(x) == dtype else relay.cast(x, dtype)


def _look_up(ctx: Export, data: Value, given: str, dtype: str) -> Value:
    """Read floats of a byte off a table of them all, since TVM's own code errs on small ones."""
    every = np.arange(256, dtype=np.uint8).view(numpy_dtype(given))
    with np.errstate(invalid="ignore"):
        table = ctx.const(every.astype(numpy_dtype(dtype)))
    place = ctx.emit_te(ctx.framework.topi.reinterpret, data, dtype="uint8")
    return ctx.emit("take", table, ctx.emit("astype", place, "int32"), axis=0, mode="clip")


@OPS.exports("reinterpret")
def export_reinterpret(ctx: Export, data: Value, *, dtype: np.dtype[AnyValue]) -> Value:
    """A truth value is a byte in memory, and one bit to LLVM."""
    given, wanted = ctx.type(data).dtype, dtype_name(dtype)
    if "bool" in (given, wanted):
        byte = ctx.emit("astype", data, "uint8") if given == "bool" else data
        return byte if wanted == "uint8" else ctx.emit("astype", byte, wanted)
    if given == wanted:
        return data
    return ctx.emit_te(ctx.framework.topi.reinterpret, data, dtype=dtype_name(dtype))


_ROUNDED: Final = {
    **{name: name for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh")},
    **{name: name for name in ("rsqrt", "sigmoid", "tan", "tanh")},
    "fast_tanh": "tanh",
}
"""Functions that TVM has in float32 and float64, or loses digits of in float16."""

_EXACT: Final = {
    **{name: name for name in ("cos", "erf", "exp", "log", "sin", "sqrt")},
    "fast_erf": "erf",
    "fast_exp": "exp",
}
"""Functions that TVM rounds once in float16, too."""

_ALIKE: Final = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "cos", "cosh", "erf", "exp",
    "isfinite", "isinf", "isnan", "log", "logical_not", "negative", "rsqrt", "sigmoid", "sign",
    "sin", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
"""Functions that Relay calls the same."""


def _export_function(ctx: Export, data: Value, *, op: str, narrow: tuple[str, ...]) -> Value:
    return compute_wide(ctx, lambda x: ctx.emit(op, x), data, narrow=narrow)


for _name, _op in _ROUNDED.items():
    OPS.exports(_name)(partial(_export_function, op=_op, narrow=NARROW))
for _name, _op in _EXACT.items():
    OPS.exports(_name)(partial(_export_function, op=_op, narrow=("bfloat16",)))


def _export_logarithm(ctx: Export, data: Value, *, op: str) -> Value:
    """Relax has the natural one alone; a quotient of two would not be exact at powers."""
    function = getattr(ctx.framework.topi, op)
    return compute_wide(ctx, lambda x: ctx.emit_te(function, x), data)


for _name in ("log2", "log10"):
    OPS.exports(_name)(partial(_export_logarithm, op=_name))


@OPS.exports("negative")
def export_negative(ctx: Export, data: Value) -> Value:
    """Unsigned numbers are negated as signed ones: differences of theirs must not overflow."""
    dtype = ctx.type(data).dtype
    if not dtype.startswith("uint"):
        return ctx.emit("negative", data)
    signed = ctx.emit("astype", data, dtype.removeprefix("u"))
    return ctx.emit("astype", ctx.emit("negative", signed), dtype)


@OPS.exports("sign")
def export_sign(ctx: Export, data: Value) -> Value:
    """TVM has no sign of unsigned numbers."""
    dtype = ctx.type(data).dtype
    if not dtype.startswith("uint"):
        return ctx.emit("sign", data)
    return ctx.emit("astype", truth_of(ctx, data), dtype)


@OPS.imports("relax.round")
def import_round(ctx: Import, x: Expr) -> Expr:
    """Halves go to the even neighbour, as TVM compiles it."""
    return call("serde.round_even", x) if is_float(ctx.dtype(x)) else x


def _export_class(ctx: Export, data: Value, *, op: str) -> Value:
    return ctx.emit(op, widen(ctx, data))


for _name in ("isfinite", "isinf", "isnan"):
    OPS.exports(_name, takes=Takes(data=FLOATS))(partial(_export_class, op=_name))


@OPS.exports("bitwise_not")
def export_bitwise_not(ctx: Export, data: Value) -> Value:
    of_bool = ctx.type(data).dtype == "bool"
    return ctx.emit("logical_not" if of_bool else "bitwise_not", data)


@OPS.exports("logical_not")
def export_logical_not(ctx: Export, data: Value) -> Value:
    dtype = ctx.type(data).dtype
    if dtype == "bool":
        return ctx.emit("logical_not", data)
    return ctx.emit("astype", ctx.emit("equal", data, ctx.const(0, dtype)), dtype)


@OPS.imports("relax.square")
def import_square(ctx: Import, x: Expr) -> Expr:
    return relay.multiply(x, x)


@OPS.exports("clip")
def export_clip(ctx: Export, data: Value, *, a_min: float, a_max: float) -> Value:
    """A limit that is none, since no number lies beyond it, is left out."""
    dtype = ctx.type(data).dtype
    low, high = clip_limits(numpy_dtype(dtype), a_min, a_max)
    least, most = -np.inf, np.inf
    if not is_float(dtype):
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    if low > least and high < most:
        return ctx.emit("clip", data, low.item(), high.item())
    if low > least:
        data = ctx.emit("maximum", data, ctx.const(low, dtype))
    return ctx.emit("minimum", data, ctx.const(high, dtype)) if high < most else data


@OPS.imports("relax.clip")
def import_clip(ctx: Import, x: Expr, *, min: Scalar, max: Scalar) -> Expr:
    """Bounds are taken to the dtype of the tensor; where they cross, the lower one is the result.

    A bound behind all integers of a dtype is none.
    """
    if not all(isinstance(each.value, (bool, int, float)) for each in (min, max)):
        low, high = (ctx.tensor(each, ctx.dtype(x)) for each in (min, max))
        return relay.maximum(relay.minimum(x, high), low)
    least, most = ctx.number(min), ctx.number(max)
    if math.isnan(least) or math.isnan(most):
        raise Unsupported("a bound that is no number")
    if is_float(ctx.dtype(x)):
        return relay.clip(x, float(least), float(most if most > least else least))
    bounds = np.iinfo(numpy_dtype(ctx.dtype(x)))
    if least > bounds.max or most < bounds.min:
        raise Unsupported(f"bounds {least} and {most}, between which {ctx.dtype(x)} has nothing")
    if most < bounds.max:
        x = relay.minimum(x, ctx.like(x, most))
    return relay.maximum(x, ctx.like(x, least)) if least > bounds.min else x


OPS.pairs(
    *(reads(f"relax.{op}", op) for op in _ALIKE),
    pair("relax.abs", "abs", takes=Takes(data=SIGNED)),
    *(pair(f"relax.{op}", op, takes=Takes(data=FLOATS)) for op in ("ceil", "floor", "trunc")),
    writes("round", "serde.round_even"),
    writes("ones_like", "ones_like"),
    writes("zeros_like", "zeros_like"),
)
