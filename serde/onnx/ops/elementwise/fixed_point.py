"""Multiplication of integers by a number given as a Q31 mantissa and a power of two."""

from __future__ import annotations

import numpy as np

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.table import OPS
from serde.weights import Array


def scale_fixed_point(
    ctx: ExportContext, x: Value, multiplier: Value, divisor: Value, away: bool = False
) -> Value:
    """Return ``round(x * multiplier / divisor)`` of int64, multiplier and divisor positive.

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


def to_ratio(ctx: ExportContext, mantissa: Array, exponent: Array) -> tuple[Value, Value]:
    """Return mantissa * 2**(exponent - 31) as a multiplier and a divisor of int64."""
    one = np.int64(1)
    multiplier = np.asarray(mantissa, np.int64) * (one << np.maximum(exponent, 0))
    divisor = one << np.asarray(31 + np.maximum(-np.asarray(exponent), 0), np.int64)
    return ctx.const(multiplier), ctx.const(divisor)


@OPS.exports("fixed_point_multiply")
def export_fixed_point_multiply(
    ctx: ExportContext, x: Value, *, multiplier: int, shift: int
) -> Value:
    ratio = to_ratio(ctx, np.array(multiplier), np.array(shift))
    return cast(ctx, scale_fixed_point(ctx, cast(ctx, x, np.int64), *ratio), np.int32)


@OPS.exports("fixed_point_multiply_per_axis")
def export_fixed_point_multiply_per_axis(
    ctx: ExportContext,
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
        indices = ctx.emit("Add", right_shift, ctx.const(31, np.int32))
        divisor = _unsqueeze(ctx, ctx.emit("Gather", powers, indices, axis=0), free)
    wide = cast(ctx, x, np.int64)
    return cast(ctx, scale_fixed_point(ctx, wide, _unsqueeze(ctx, by, free), divisor), np.int32)


def _unsqueeze(ctx: ExportContext, x: Value, axes: Value) -> Value:
    """Insert axes of length 1; which are an attribute before 13."""
    indices = ctx.constant(axes).tolist()
    if not indices:
        return x
    if ctx.version >= 13:
        return ctx.emit("Unsqueeze", x, axes)
    return ctx.emit("Unsqueeze", x, axes=indices)
