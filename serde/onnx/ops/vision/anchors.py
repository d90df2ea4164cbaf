"""Anchors, and the boxes that offsets make of them."""

from __future__ import annotations

import numpy as np

import serde.allocation as allocation
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.reduce import emit_reduce
from serde.onnx.ops.shape.join import emit_split
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS
from serde.onnx.ops.vision.suppression import compact, move_rows
from serde.relay.op.vision.anchors import prior_boxes
from serde.weights import numpy_dtype


@OPS.exports("vision.multibox_prior")
def export_multibox_prior(
    ctx: ExportContext,
    x: Value,
    *,
    sizes: tuple[float, ...],
    ratios: tuple[float, ...],
    steps: tuple[float, ...],
    offsets: tuple[float, ...],
    clip: bool,
) -> Value:
    """The boxes depend on the size of the map alone, so that they are a constant."""
    height, width = ctx.static_lengths(x, [2, 3])
    allocation.allow((height, width, len(sizes) + len(ratios) - 1, 4))
    boxes = prior_boxes(height, width, sizes, ratios, steps, offsets, clip)
    return ctx.const(boxes, numpy_dtype(ctx.type(x).dtype))


@OPS.exports("vision.multibox_transform_loc")
def export_multibox_transform_loc(
    ctx: ExportContext,
    scores: Value,
    offsets: Value,
    anchor: Value,
    *,
    clip: bool,
    threshold: float,
    variances: tuple[float, ...],
    keep_background: bool,
) -> tuple[Value, Value]:
    type_ = ctx.type(scores)
    dtype = type_.dtype
    end = ctx.ints([np.iinfo(np.int64).max])
    objects = ctx.emit("Slice", scores, ctx.ints([1]), end, ctx.ints([1]))
    best = emit_reduce(ctx, "ReduceMax", objects, [1], False)
    class_ = cast(ctx, ctx.emit("ArgMax", objects, axis=1, keepdims=0), dtype)
    low = ctx.emit("Less", best, ctx.scalar_like(scores, threshold))
    some = ctx.emit("Greater", best, ctx.scalar_like(scores, -1))
    found = ctx.emit("And", some, ctx.emit("Not", low))
    class_ = ctx.emit("Where", found, class_, ctx.scalar_like(scores, -1))
    boxes = _decode(ctx, offsets, anchor, variances, dtype)
    if clip:
        boxes = ctx.emit("Clip", boxes, ctx.scalar_like(scores, 0), ctx.scalar_like(scores, 1))
    parts = [unsqueeze(ctx, class_, [2]), unsqueeze(ctx, best, [2]), boxes]
    rows = ctx.emit("Concat", *parts, axis=2)
    if keep_background:
        found = ctx.emit("Or", found, ctx.emit("Not", found))
    order, first, total = compact(ctx, found, ctx.shape([type_.shape[2]]))
    return move_rows(ctx, rows, order, first, ctx.ints([6]), dtype), cast(ctx, total, np.int32)


def _decode(
    ctx: ExportContext, offsets: Value, anchor: Value, variances: tuple[float, ...], dtype: str
) -> Value:
    low, high = emit_split(ctx, anchor, [2, 2], 2)
    two = ctx.const(2, numpy_dtype(dtype))
    size = ctx.emit("Sub", high, low)
    centre = ctx.emit("Div", ctx.emit("Add", low, high), two)
    indices, sizes = emit_split(ctx, ctx.emit("Reshape", offsets, ctx.ints([0, -1, 4])), [2, 2], 2)
    near, wide = (ctx.const(v, numpy_dtype(dtype)) for v in (variances[:2], variances[2:]))
    moved = ctx.emit("Mul", ctx.emit("Mul", indices, near), size)
    middle = ctx.emit("Add", moved, centre)
    grown = ctx.emit("Mul", ctx.emit("Exp", ctx.emit("Mul", sizes, wide)), size)
    half = ctx.emit("Div", grown, two)
    edges = [ctx.emit("Sub", middle, half), ctx.emit("Add", middle, half)]
    return ctx.emit("Concat", *edges, axis=2)
