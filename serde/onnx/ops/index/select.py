"""Conditions, counts and indices as places, masks and codes."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.errors import Unsupported
from serde.limits import MAX_INLINE_BYTES
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.elementwise.convert import cast, filled, truth, widened
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Any
from serde.relay.ir.shapes import is_float


@OPS.exports("one_hot")
def export_one_hot(
    ctx: ExportContext,
    indices: Value,
    on: Value,
    off: Value,
    *,
    depth: int,
    axis: int,
    dtype: np.dtype[AnyValue] | None,
) -> Value:
    """Written as a comparison: OneHot counts negative indices from the end, Relay ignores them."""
    if depth * 8 > MAX_INLINE_BYTES:
        raise Unsupported(f"depth {depth}, whose list of classes is too long to write")
    rank = ctx.result_type().rank
    place = axis % rank
    shape = [1] * rank
    shape[place] = depth
    counted = np.arange(depth).reshape(shape)
    marks = ctx.emit(
        "Equal", unsqueeze(ctx, indices, [place]), ctx.const(counted, ctx.type(indices).dtype)
    )
    wanted = ctx.result_type().dtype
    return ctx.emit("Where", marks, widened(ctx, on, wanted), widened(ctx, off, wanted))


@OPS.exports("sequence_mask")
def export_sequence_mask(
    ctx: ExportContext, x: Value, lengths: Value, *, mask_value: float, axis: int
) -> Value:
    """Positions run along `axis` (0 or 1), sequences along the other of the two."""
    rank = ctx.type(x).rank
    length = ctx.type(x).shape[axis]
    if isinstance(length, Any):
        end = ctx.emit("Gather", ctx.emit("Shape", x), ctx.const(axis, np.int64), axis=0)
    else:
        end = ctx.emit("Reshape", ctx.shape([length]), ctx.ints([]))
    steps = ctx.emit("Range", ctx.const(0, np.int64), end, ctx.const(1, np.int64))
    real = is_float(ctx.type(lengths).dtype)
    bounds = lengths if real else cast(ctx, lengths, np.int64)
    if real:
        steps = cast(ctx, steps, ctx.type(lengths).dtype)
    position_shape, length_shape = [1] * rank, [1] * rank
    position_shape[axis] = length_shape[1 - axis] = -1
    positions = ctx.emit("Reshape", steps, ctx.ints(position_shape))
    inside = ctx.emit("Less", positions, ctx.emit("Reshape", bounds, ctx.ints(length_shape)))
    return ctx.emit("Where", inside, x, ctx.scalar_like(x, mask_value))


@OPS.exports("argwhere")
def export_argwhere(ctx: ExportContext, x: Value) -> Value:
    """NonZero gives a column for each place; of a scalar, as many rows without elements."""
    marks = truth(ctx, x)
    if ctx.type(x).rank:
        rows = ctx.emit("Transpose", ctx.emit("NonZero", marks), perm=[1, 0])
        return cast(ctx, rows, np.int32)
    count = ctx.emit("Reshape", cast(ctx, marks, np.int64), ctx.ints([1]))
    return filled(ctx, ctx.emit("Concat", count, ctx.ints([0]), axis=0), 0, "int32")
