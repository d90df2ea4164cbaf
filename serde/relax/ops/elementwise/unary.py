"""Functions of one tensor."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.relax.export_context import ExportContext, Value
from serde.relax.import_context import ImportContext, Scalar
from serde.relax.ops.elementwise.arithmetic import truth_of
from serde.relax.ops.table import OPS
from serde.relax.precision import NARROW, compute_wide, widen
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float
from serde.relay.op.elementwise.unary import clip_limits
from serde.walk.pairs import pair, reads, writes
from serde.walk.takes import FLOATS, SIGNED, Takes

__all__: list[str] = []

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


def _export_function(ctx: ExportContext, data: Value, *, op: str, narrow: tuple[str, ...]) -> Value:
    return compute_wide(ctx, lambda x: ctx.emit(op, x), data, narrow=narrow)


for _name, _op in _ROUNDED.items():
    OPS.exports(_name)(partial(_export_function, op=_op, narrow=NARROW))
for _name, _op in _EXACT.items():
    OPS.exports(_name)(partial(_export_function, op=_op, narrow=("bfloat16",)))


def _export_logarithm(ctx: ExportContext, data: Value, *, op: str) -> Value:
    """Relax has the natural one alone; a quotient of two would not be exact at powers."""
    function = getattr(ctx.framework.topi, op)
    return compute_wide(ctx, lambda x: ctx.emit_te(function, x), data)


for _name in ("log2", "log10"):
    OPS.exports(_name)(partial(_export_logarithm, op=_name))


@OPS.exports("negative")
def export_negative(ctx: ExportContext, data: Value) -> Value:
    """Unsigned numbers are negated as signed ones: differences of theirs must not overflow."""
    dtype = ctx.type(data).dtype
    if not dtype.startswith("uint"):
        return ctx.emit("negative", data)
    signed = ctx.emit("astype", data, dtype.removeprefix("u"))
    return ctx.emit("astype", ctx.emit("negative", signed), dtype)


@OPS.exports("sign")
def export_sign(ctx: ExportContext, data: Value) -> Value:
    """TVM has no sign of unsigned numbers."""
    dtype = ctx.type(data).dtype
    if not dtype.startswith("uint"):
        return ctx.emit("sign", data)
    return ctx.emit("astype", truth_of(ctx, data), dtype)


@OPS.exports("round")
def export_round(ctx: ExportContext, data: Value) -> Value:
    """Relax rounds a half to the even neighbour, Relay away from zero."""
    dtype = ctx.type(data).dtype
    if not is_float(dtype):
        return data

    def away(x: Expr) -> Expr:
        whole = relay.trunc(x)
        up = relay.greater_equal(relay.abs(relay.subtract(x, whole)), relay.const(0.5, dtype))
        return relay.where(up, relay.add(whole, relay.sign(x)), whole)

    return ctx.spell(away, data)


@OPS.imports("relax.round")
def import_round(ctx: ImportContext, x: Expr) -> Expr:
    """Halves go to the even neighbour, as TVM compiles it."""
    return call("serde.round_even", x) if is_float(ctx.dtype(x)) else x


def _export_class(ctx: ExportContext, data: Value, *, op: str, of_integers: str) -> Value:
    if not is_float(ctx.type(data).dtype):
        return ctx.emit(of_integers, data, "bool")
    return ctx.emit(op, widen(ctx, data))


for _name in ("isinf", "isnan"):
    OPS.exports(_name)(partial(_export_class, op=_name, of_integers="zeros_like"))
OPS.exports("isfinite")(partial(_export_class, op="isfinite", of_integers="ones_like"))


@OPS.exports("bitwise_not")
def export_bitwise_not(ctx: ExportContext, data: Value) -> Value:
    of_bool = ctx.type(data).dtype == "bool"
    return ctx.emit("logical_not" if of_bool else "bitwise_not", data)


@OPS.exports("logical_not")
def export_logical_not(ctx: ExportContext, data: Value) -> Value:
    dtype = ctx.type(data).dtype
    if dtype == "bool":
        return ctx.emit("logical_not", data)
    return ctx.emit("astype", ctx.emit("equal", data, ctx.const(0, dtype)), dtype)


@OPS.imports("relax.square")
def import_square(ctx: ImportContext, x: Expr) -> Expr:
    return relay.multiply(x, x)


@OPS.exports("clip")
def export_clip(ctx: ExportContext, data: Value, *, a_min: float, a_max: float) -> Value:
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
def import_clip(ctx: ImportContext, x: Expr, *, min: Scalar, max: Scalar) -> Expr:
    """Bounds are taken to the dtype of the tensor; where they cross, the lower one is the result.

    A bound behind all integers of a dtype is none.
    """
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
