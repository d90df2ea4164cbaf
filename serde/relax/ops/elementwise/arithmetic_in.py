"""Importers of what is computed element by element."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext, Scalar
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float
from serde.walk.pairs import reads
from serde.weights import numpy_dtype

__all__: list[str] = []

_SAME: Final = (
    "add", "subtract", "multiply", "divide", "floor_divide", "floor_mod", "mod", "power",
    "maximum", "minimum",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_xor",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos",
    "cosh", "erf", "exp", "floor", "isfinite", "isinf", "isnan", "log", "logical_not",
    "negative", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
    "where",
)  # fmt: skip
"""Operators that Relay calls the same."""

OPS.pairs(*(reads(f"relax.{op}", op) for op in _SAME))


@OPS.imports("relax.round")
def import_round(ctx: ImportContext, x: Expr) -> Expr:
    """Halves go to the even neighbour, as TVM compiles it."""
    return call("serde.round_even", x) if is_float(ctx.dtype(x)) else x


@OPS.imports("relax.square")
def import_square(ctx: ImportContext, x: Expr) -> Expr:
    return relay.multiply(x, x)


@OPS.imports("relax.log_add_exp")
def import_log_add_exp(ctx: ImportContext, x1: Expr, x2: Expr) -> Expr:
    apart = relay.negative(relay.abs(relay.subtract(x1, x2)))
    return relay.add(relay.maximum(x1, x2), call("serde.log1p", relay.exp(apart)))


@OPS.imports("relax.atan2")
def import_atan2(ctx: ImportContext, x1: Expr, x2: Expr) -> Expr:
    """The angle between the axes, mirrored where an operand is negative.

    Two zeros have the ratio 0, two infinities 1.
    """
    height, width = relay.abs(x1), relay.abs(x2)
    alike = relay.cast(relay.not_equal(x1, ctx.like(x1, 0)), ctx.dtype(x1))
    ratio = relay.where(relay.equal(height, width), alike, relay.divide(height, width))
    first = relay.atan(ratio)
    mirrored = relay.subtract(ctx.like(x1, math.pi), first)
    found = relay.where(_has_sign(ctx, x2), mirrored, first)
    return relay.where(_has_sign(ctx, x1), relay.negative(found), found)


def _has_sign(ctx: ImportContext, x: Expr) -> Expr:
    """Return where the sign bit is set: that of a zero shows in its reciprocal."""
    zero = ctx.like(x, 0)
    reciprocal = relay.divide(ctx.like(x, 1), x)
    signed_zero = relay.logical_and(relay.equal(x, zero), relay.less(reciprocal, zero))
    return relay.logical_or(relay.less(x, zero), signed_zero)


@OPS.imports("relax.ewise_fma")
def import_ewise_fma(ctx: ImportContext, x1: Expr, x2: Expr, x3: Expr) -> Expr:
    return relay.add(relay.multiply(x1, x2), x3)


@OPS.imports("relax.astype", "relax.wrap_param")
def import_astype(ctx: ImportContext, x: Expr, *, dtype: str | None) -> Expr:
    if dtype is None:
        raise Unsupported("a cast to no dtype")
    return x if ctx.dtype(x) == dtype else relay.cast(x, dtype)


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
