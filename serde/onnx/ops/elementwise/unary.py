"""Functions of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise.convert import cast, filled
from serde.onnx.ops.table import OPS
from serde.relay.shapes import is_float

SAME = {
    "abs": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "cos": "Cos",
    "cosh": "Cosh",
    "exp": "Exp",
    "fast_exp": "Exp",
    "fast_tanh": "Tanh",
    "log": "Log",
    "negative": "Neg",
    "sigmoid": "Sigmoid",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}
"""Relay's operator: the operator of ONNX that differs by its name only."""


def same(target: str) -> Callable[..., Value]:
    """Return the converter of an operator that differs by its name only."""

    def export_same(ctx: Ctx, *operands: Value) -> Value:
        return ctx.emit(target, *operands)

    return export_same


for _name, _target in SAME.items():
    OPS.exports(_name)(same(_target))


def _of_floats(target: str) -> Callable[..., Value]:
    def export_of_floats(ctx: Ctx, x: Value) -> Value:
        """An integer is whole already."""
        return ctx.emit(target, x) if is_float(ctx.type(x).dtype) else x

    return export_of_floats


OPS.exports("ceil")(_of_floats("Ceil"))
OPS.exports("floor")(_of_floats("Floor"))


@OPS.exports("erf", "fast_erf")
def export_erf(ctx: Ctx, x: Value) -> Value:
    return ctx.emit("Erf", x)


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


@OPS.exports("sign")
def export_sign(ctx: Ctx, x: Value) -> Value:
    """Two comparisons of int64, of which ONNX Runtime has the Sign wrong beyond 32 bits."""
    dtype = ctx.type(x).dtype
    if dtype not in ("int64", "uint64"):
        return ctx.emit("Sign", x)
    zero = ctx.const(0, dtype)
    above, below = ctx.emit("Less", zero, x), ctx.emit("Less", x, zero)
    return ctx.emit("Sub", cast(ctx, above, dtype), cast(ctx, below, dtype))
