"""Suppression of overlapping boxes of each class on its own."""

from __future__ import annotations

import numpy as np

from serde.allocation import arange
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.elementwise.convert import as_dtype, cast, fill
from serde.onnx.ops.reduce import emit_reduce
from serde.onnx.ops.shape.reshape import squeeze, unsqueeze
from serde.onnx.ops.table import OPS
from serde.onnx.ops.vision.suppression import clamp_overlap, just_below, range_to, select_boxes
from serde.relay.ir.dims import Dim


@OPS.exports("vision.all_class_non_max_suppression")
def export_all_class_non_max_suppression(
    ctx: ExportContext,
    boxes: Value,
    scores: Value,
    limit: Value,
    iou: Value,
    threshold: Value,
    *,
    output_format: str,
) -> tuple[Value, ...]:
    """Relay drops a box at the threshold of overlap, ONNX above it: it gets the number before.

    From a threshold that is not positive on, every box overlaps with the first, which alone stays.
    """
    batch, number = ctx.type(scores).shape[0], ctx.type(scores).shape[2]
    rows = ctx.type(scores).shape[1] * number
    bound = as_dtype(ctx, iou, "float32")
    count = ctx.emit("Reshape", as_dtype(ctx, limit, "int64"), ctx.ints([1]))
    unlimited = ctx.emit("Less", count, ctx.ints([1]))
    count = ctx.emit("Where", unlimited, ctx.shape([number]), count)
    some = ctx.emit("Greater", bound, ctx.const(0, np.float32))
    corners, marks = as_dtype(ctx, boxes, "float32"), as_dtype(ctx, scores, "float32")
    given = (
        corners,
        marks,
        ctx.emit("Where", some, count, ctx.ints([1])),
        clamp_overlap(ctx, just_below(ctx, bound)),
        unsqueeze(ctx, as_dtype(ctx, threshold, "float32"), [0]),
    )
    selected = ctx.emit("NonMaxSuppression", *given)
    found = ctx.emit("Gather", ctx.emit("Shape", selected), ctx.ints([0]), axis=0)
    if output_format == "tensorflow":
        return _group_by_image(ctx, selected, found, marks, batch, rows)
    missing = ctx.emit("Sub", ctx.shape([batch * rows]), found)
    widths = ctx.emit("Concat", ctx.ints([0, 0]), missing, ctx.ints([0]), axis=0)
    return ctx.emit("Pad", selected, widths, ctx.const(0, np.int64)), found


def _group_by_image(
    ctx: ExportContext, selected: Value, found: Value, marks: Value, batch: Dim, rows: Dim
) -> tuple[Value, Value, Value]:
    """Return (class, box) of what stays of each image, the scores, and how many.

    Rows stay as they are selected: class by class, the best of each first.
    """
    image = ctx.emit("Gather", selected, ctx.ints([0]), axis=1)
    each = range_to(ctx, squeeze(ctx, ctx.shape([batch]), [0]))
    same = cast(ctx, ctx.emit("Equal", image, each), np.int64)
    counts = emit_reduce(ctx, "ReduceSum", same, [0], False)
    first = ctx.emit("CumSum", counts, ctx.const(0, np.int64), exclusive=1)
    row = unsqueeze(ctx, range_to(ctx, squeeze(ctx, found, [0])), [1])
    row = ctx.emit("Sub", row, ctx.emit("Gather", first, image, axis=0))
    position = ctx.emit("Concat", image, row, axis=1)
    pairs = ctx.emit("Gather", selected, ctx.ints([1, 2]), axis=1)
    zeros = fill(ctx, ctx.shape([batch, rows, 2]), 0, "int64")
    indices = ctx.emit("ScatterND", zeros, position, pairs)
    zeros = fill(ctx, ctx.shape([batch, rows]), 0, "float32")
    scores = ctx.emit("ScatterND", zeros, position, ctx.emit("GatherND", marks, selected))
    return indices, scores, counts


def _rank(ctx: ExportContext, kept: Value, marks: Value, most: Value) -> tuple[Value, Value, Value]:
    """Return the best scores of what stays, their indices class by class, and how many stay.

    Of equal scores the first is the better one. Behind the last there is one of no meaning.
    """
    stays = ctx.emit("Greater", kept, ctx.const(0, np.int64))
    keys = ctx.emit("Where", stays, marks, ctx.const(-np.inf, np.float32))
    flat = ctx.emit("Reshape", keys, ctx.ints([0, -1]))
    widths = ctx.emit("Concat", ctx.ints([0, 0, 0]), most, axis=0)
    whole = ctx.emit("Pad", flat, widths, ctx.const(-np.inf, np.float32))
    best, order = ctx.emit_tuple("TopK", whole, most, outputs=2, axis=1)
    return (
        best,
        order,
        emit_reduce(ctx, "ReduceSum", emit_reduce(ctx, "ReduceSum", kept, [2], False), [1], True),
    )


def _split_class_and_box(ctx: ExportContext, position: Value, number: Dim) -> tuple[Value, Value]:
    """Return the class and the box of indices counted class by class."""
    count = ctx.shape([number])
    return ctx.emit("Div", position, count), ctx.emit("Mod", position, count, fmod=0)


@OPS.exports("vision.regular_non_max_suppression")
def export_regular_non_max_suppression(
    ctx: ExportContext,
    boxes: Value,
    scores: Value,
    *,
    max_detections_per_class: int,
    max_detections: int,
    num_classes: int,
    iou_threshold: float,
    score_threshold: float,
) -> tuple[Value, Value, Value, Value]:
    """A score at the threshold counts, in ONNX one above it: it gets the number before."""
    dtypes = {ctx.type(each).dtype for each in (boxes, scores)}
    if dtypes != {"float32"}:
        raise Unsupported(f"boxes of {sorted(dtypes)}; ONNX suppresses those of float32")
    least = np.nextafter(np.float32(score_threshold), np.float32(-np.inf))
    marks = ctx.emit("Transpose", scores, perm=[0, 2, 1])
    kept = select_boxes(
        ctx,
        boxes,
        marks,
        ctx.ints([max_detections_per_class if iou_threshold >= 0 else 1]),
        ctx.const([min(max(iou_threshold, 0), 1)], np.float32),
        ctx.const([least]),
    )
    most = ctx.ints([max_detections])
    best, order, total = _rank(ctx, kept, marks, most)
    valid = ctx.emit("Less", ctx.const(arange(max_detections)), total)
    class_, box = _split_class_and_box(ctx, order, ctx.type(scores).shape[1])
    index = ctx.emit("Expand", unsqueeze(ctx, box, [2]), ctx.ints([1, 1, 4]))
    corners = ctx.emit("GatherElements", boxes, index, axis=1)
    zero = ctx.const(0, np.float32)
    found = [
        ctx.emit("Where", unsqueeze(ctx, valid, [2]), corners, zero),
        ctx.emit("Where", valid, cast(ctx, class_, np.float32), zero),
        ctx.emit("Where", valid, best, zero),
    ]
    count = ctx.emit("Where", ctx.emit("Less", total, most), total, most)
    return found[0], found[1], found[2], cast(ctx, squeeze(ctx, count, [1]), np.float32)
