"""Functions of one tensor."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

import serde.relay as relay
from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.elementwise.arithmetic import truth_of
from serde.relax.ops.table import OPS
from serde.relax.precision import NARROW, compute_wide, widen
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float
from serde.relay.op.elementwise.unary import clip_limits
from serde.walk.pairs import writes
from serde.weights import numpy_dtype

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


@OPS.exports("abs")
def export_abs(ctx: ExportContext, data: Value) -> Value:
    unsigned = ctx.type(data).dtype.startswith("uint")
    return data if unsigned else ctx.emit("abs", data)


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


def _export_rounding(ctx: ExportContext, data: Value, *, op: str) -> Value:
    return ctx.emit(op, data) if is_float(ctx.type(data).dtype) else data


for _name in ("ceil", "floor", "trunc"):
    OPS.exports(_name)(partial(_export_rounding, op=_name))


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


@OPS.exports("copy")
def export_copy(ctx: ExportContext, data: Value) -> Value:
    return data


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


OPS.pairs(
    writes("round", "serde.round_even"),
    writes("ones_like", "ones_like"),
    writes("zeros_like", "zeros_like"),
)
