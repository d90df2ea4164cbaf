"""Functions of one tensor."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

import serde.relay as relay
from serde.onnx.ops.elementwise.convert import cast, emit_wide, fill, scalar_like
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, is_float, limits
from serde.walk.pairs import reads, writes


def _export_function(ctx: Export, x: Value, *, target: str) -> Value:
    return emit_wide(ctx, target, x)


@OPS.imports("IsInf", since=(10, 20))
def import_isinf(
    ctx: Import, x: Expr, *, detect_negative: bool = True, detect_positive: bool = True
) -> Expr:
    found = relay.isinf(x)
    zero = scalar_like(ctx, x, 0)
    if not detect_negative:
        found = relay.logical_and(found, relay.greater(x, zero))
    if not detect_positive:
        found = relay.logical_and(found, relay.less(x, zero))
    return found


def _export_predicate(ctx: Export, x: Value, *, op: str) -> Value:
    """No integer is infinite or not a number; IsInf takes float16 from 20 on only."""
    dtype = ctx.type(x).dtype
    if not is_float(dtype):
        return fill(ctx, ctx.emit("Shape", x), 0, "bool")
    if dtype not in ("float32", "float64"):
        x = cast(ctx, x, np.float32)
    return ctx.emit(op, x)


OPS.exports("isnan")(partial(_export_predicate, op="IsNaN"))
OPS.exports("isinf")(partial(_export_predicate, op="IsInf"))


@OPS.exports("rsqrt")
def export_rsqrt(ctx: Export, x: Value) -> Value:
    return ctx.emit("Reciprocal", ctx.emit("Sqrt", x))


@OPS.imports("Round", since=(11, 22))
def import_round(ctx: Import, x: Expr) -> Expr:
    """ONNX rounds a half to even, Relay away from zero: there, it is corrected to even."""
    whole = relay.floor(x)
    rest = relay.subtract(x, whole)
    half = scalar_like(ctx, x, 0.5)
    is_odd = relay.not_equal(
        whole, relay.multiply(relay.floor(relay.multiply(whole, half)), scalar_like(ctx, x, 2))
    )
    up = relay.logical_or(
        relay.greater(rest, half), relay.logical_and(relay.equal(rest, half), is_odd)
    )
    rounded = relay.add(whole, relay.cast(up, ctx.type(x).dtype))
    return relay.where(relay.isfinite(x), rounded, x)


@OPS.exports("clip")
def export_clip(ctx: Export, x: Value, *, a_min: float, a_max: float) -> Value:
    """Integers are clipped with integers; before 12, Clip takes floats only.

    ONNX Runtime has no kernel of that Clip for float64.
    """
    type_ = ctx.type(x)
    if is_float(type_.dtype):
        ends = ctx.scalar_like(x, a_min), ctx.scalar_like(x, a_max)
        if type_.dtype == "float64" and ctx.version < 12:
            return ctx.emit("Min", ctx.emit("Max", x, ends[0]), ends[1])
        return ctx.emit("Clip", x, *ends)
    bounds = limits(type_.dtype)
    low = ctx.scalar_like(x, math.ceil(max(a_min, bounds.min)))
    high = ctx.scalar_like(x, math.floor(min(a_max, bounds.max)))
    if ctx.version >= 12:
        return emit_wide(ctx, "Clip", x, low, high)
    above = ctx.emit("Where", ctx.emit("Less", x, low), low, x)
    return ctx.emit("Where", ctx.emit("Less", high, above), high, above)


@OPS.imports("Clip", since=(1, 6), ignored=("consumed_inputs",))
def import_clip_v1(
    ctx: Import, x: Expr, *, min: float | None = None, max: float | None = None
) -> Expr:
    low = None if min is None else scalar_like(ctx, x, min)
    high = None if max is None else scalar_like(ctx, x, max)
    return import_clip(ctx, x, low, high)


@OPS.imports("Clip", since=(11, 12, 13))
def import_clip(ctx: Import, x: Expr, min: Expr | None = None, max: Expr | None = None) -> Expr:
    """Bounds that are not constant, or cross, are a maximum and then a minimum."""
    is_fixed = all(each is None or ctx.known(each) is not None for each in (min, max))
    if is_fixed and is_float(ctx.type(x).dtype):
        a_min = -math.inf if min is None else float(ctx.item(min))
        a_max = math.inf if max is None else float(ctx.item(max))
        if a_min <= a_max:
            return relay.clip(x, a_min, a_max)
    result = x if min is None else relay.maximum(x, min)
    return result if max is None else relay.minimum(result, max)


FUNCTIONS = {
    "Abs": ("abs", (1, 6, 13)),
    "Acos": ("acos", (7, 22)),
    "Acosh": ("acosh", (9, 22)),
    "Asin": ("asin", (7, 22)),
    "Asinh": ("asinh", (9, 22)),
    "Atan": ("atan", (7, 22)),
    "Atanh": ("atanh", (9, 22)),
    "Cos": ("cos", (7, 22)),
    "Cosh": ("cosh", (9, 22)),
    "Exp": ("exp", (1, 6, 13)),
    "Log": ("log", (1, 6, 13)),
    "Neg": ("negative", (1, 6, 13)),
    "Sigmoid": ("sigmoid", (1, 6, 13)),
    "Sin": ("sin", (7, 22)),
    "Sinh": ("sinh", (9, 22)),
    "Sqrt": ("sqrt", (1, 6, 13)),
    "Tan": ("tan", (7, 22)),
    "Tanh": ("tanh", (1, 6, 13)),
}
"""The operator of ONNX: Relay's that differs by its name only, and the versions of the former."""

READ = {
    "Ceil": ("ceil", (1, 6, 13)),
    "Erf": ("erf", (9, 13)),
    "Floor": ("floor", (1, 6, 13)),
    "IsNaN": ("isnan", (9, 13, 20)),
    "Sign": ("sign", (9, 13)),
}
"""Likewise, of operators that are not written of every dtype."""

for _name, (_relay, _) in FUNCTIONS.items():
    OPS.exports(_relay)(partial(_export_function, target=_name))
OPS.exports("fast_exp")(partial(_export_function, target="Exp"))
OPS.exports("fast_tanh")(partial(_export_function, target="Tanh"))


@OPS.imports("Reciprocal", since=(1, 6, 13), ignored=("consumed_inputs",))
def import_reciprocal(ctx: Import, x: Expr) -> Expr:
    return relay.divide(scalar_like(ctx, x, 1), x)


@OPS.exports("sign")
def export_sign(ctx: Export, x: Value) -> Value:
    """Two comparisons of int64, of which ONNX Runtime has the Sign wrong beyond 32 bits."""
    dtype = ctx.type(x).dtype
    if dtype not in ("int64", "uint64"):
        return ctx.emit("Sign", x)
    zero = ctx.const(0, dtype)
    above, below = ctx.emit("Less", zero, x), ctx.emit("Less", x, zero)
    return ctx.emit("Sub", cast(ctx, above, dtype), cast(ctx, below, dtype))


@OPS.exports("zeros_like")
def export_zeros_like(ctx: Export, x: Value) -> Value:
    return fill(ctx, ctx.emit("Shape", x), 0, ctx.type(x).dtype)


@OPS.exports("ones_like")
def export_ones_like(ctx: Export, x: Value) -> Value:
    return fill(ctx, ctx.emit("Shape", x), 1, ctx.type(x).dtype)


OPS.pairs(
    *(
        reads(name, target, since=versions, ignored="consumed_inputs")
        for name, (target, versions) in (FUNCTIONS | READ).items()
    ),
    writes("Erf", ("erf", "fast_erf")),
    reads("Not", "logical_not"),
    writes("Ceil", "ceil"),
    writes("Floor", "floor"),
    writes("Round", "serde.round_even"),
    writes("Equal", "equal"),
)
