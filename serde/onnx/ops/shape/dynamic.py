"""Forms whose shapes are operands."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.elementwise.convert import cast, filled
from serde.onnx.ops.shape.pad import padded
from serde.onnx.ops.shape.reshape import export_expand_dims, integers, reshaped, squeeze, unsqueeze
from serde.onnx.ops.table import OPS


@OPS.exports("dyn.zeros")
def export_dyn_zeros(
    ctx: ExportContext, shape: Value, *, dtype: np.dtype[AnyValue] | None
) -> Value:
    return filled(ctx, integers(ctx, shape), 0, ctx.result_type().dtype)


@OPS.exports("dyn.ones")
def export_dyn_ones(ctx: ExportContext, shape: Value, *, dtype: np.dtype[AnyValue] | None) -> Value:
    return filled(ctx, integers(ctx, shape), 1, ctx.result_type().dtype)


@OPS.exports("dyn.full")
def export_dyn_full(
    ctx: ExportContext, value: Value, shape: Value, *, dtype: np.dtype[AnyValue] | None
) -> Value:
    wanted = ctx.result_type().dtype
    whole = value if ctx.type(value).dtype == wanted else cast(ctx, value, wanted)
    return ctx.emit("Expand", whole, integers(ctx, shape))


@OPS.exports("dyn.broadcast_to")
def export_dyn_broadcast_to(
    ctx: ExportContext, x: Value, shape: Value, *, dtype: np.dtype[AnyValue] | None
) -> Value:
    return ctx.emit("Expand", x, integers(ctx, shape))


@OPS.exports("dyn.reshape")
def export_dyn_reshape(ctx: ExportContext, x: Value, newshape: Value, *, allowzero: bool) -> Value:
    """Of Relay's codes, ONNX has 0 and -1."""
    if newshape.data is not None:
        return reshaped(ctx, x, ctx.result_type().shape)
    if allowzero and ctx.version < 14:
        raise Unsupported("a shape with a length of 0 needs version 14")
    return ctx.emit("Reshape", x, integers(ctx, newshape), allowzero=int(allowzero) or None)


@OPS.exports("dyn.tile")
def export_dyn_tile(ctx: ExportContext, x: Value, reps: Value) -> Value:
    rank, (count,) = ctx.type(x).rank, ctx.static_shape(reps)
    counts = integers(ctx, reps)
    if count > rank:
        x = unsqueeze(ctx, x, range(count - rank))
    if count < rank:
        counts = ctx.emit("Concat", ctx.ints([1] * (rank - count)), counts, axis=0)
    return ctx.emit("Tile", x, counts)


@OPS.exports("dyn.expand_dims", since=13)
def export_dyn_expand_dims(ctx: ExportContext, x: Value, axis: Value, *, num_newaxis: int) -> Value:
    """New axes are counted from the front of the result, or all from its end."""
    if not num_newaxis:
        return x
    place = ctx.emit("Reshape", integers(ctx, axis), ctx.ints([1]))
    rank = ctx.ints([ctx.type(x).rank + 1])
    front = ctx.emit("Mod", ctx.emit("Add", place, rank), rank)
    return ctx.emit("Unsqueeze", x, ctx.emit("Add", front, ctx.ints(range(num_newaxis))))


@OPS.exports("dyn.expand_dims")
def export_dyn_expand_dims_v1(
    ctx: ExportContext, x: Value, axis: Value, *, num_newaxis: int
) -> Value:
    """Before 13 the places are an attribute; where they have no value yet, the shape is made."""
    if axis.data is not None or not num_newaxis:
        known = 0 if axis.data is None else int(axis.data.item())
        return export_expand_dims(ctx, x, axis=known, num_newaxis=num_newaxis)
    place = ctx.emit("Reshape", integers(ctx, axis), ctx.ints([1]))
    rank = ctx.ints([ctx.type(x).rank + 1])
    front = ctx.emit("Mod", ctx.emit("Add", place, rank), rank)
    shape, first = ctx.emit("Shape", x), ctx.ints([0])
    before = ctx.emit("Slice", shape, first, front, first)
    after = ctx.emit("Slice", shape, front, rank, first)
    whole = ctx.emit("Concat", before, ctx.ints([1] * num_newaxis), after, axis=0)
    return ctx.emit("Reshape", x, whole)


@OPS.exports("dyn.squeeze")
def export_dyn_squeeze(ctx: ExportContext, x: Value, axes: Value) -> Value:
    """Before 13 the places are an attribute; where they have no value yet, the shape is made."""
    if not ctx.static_shape(axes)[0]:
        return x
    if ctx.version >= 13:
        return ctx.emit("Squeeze", x, integers(ctx, axes))
    if axes.data is not None:
        return squeeze(ctx, x, [int(axis) for axis in axes.data])
    rank = ctx.type(x).rank
    places = ctx.emit("Mod", integers(ctx, axes), ctx.const(rank, np.int64))
    dropped = ctx.emit("Equal", unsqueeze(ctx, places, [1]), ctx.ints(range(rank)))
    marks = ctx.emit("ReduceMax", cast(ctx, dropped, np.int32), axes=[0], keepdims=0)
    kept = ctx.emit("Compress", ctx.emit("Shape", x), ctx.emit("Not", cast(ctx, marks, np.bool_)))
    return ctx.emit("Reshape", x, kept)


@OPS.exports("dyn.nn.pad")
def export_dyn_pad(
    ctx: ExportContext, x: Value, widths: Value, value: Value, *, pad_mode: str
) -> Value:
    turned = ctx.emit("Transpose", integers(ctx, widths), perm=[1, 0])
    sides = ctx.emit("Reshape", turned, ctx.ints([-1]))
    dtype = ctx.type(x).dtype
    if pad_mode != "constant":
        return padded(ctx, x, dtype, sides, None, pad_mode)
    filler = value if ctx.type(value).dtype == dtype else cast(ctx, value, dtype)
    return padded(ctx, x, dtype, sides, filler)
