"""Region proposals."""

from __future__ import annotations

import numpy as np

from serde.allocation import arange
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.elementwise.convert import as_dtype, cast
from serde.onnx.ops.image.sampling import emit_arange
from serde.onnx.ops.reduce import emit_reduce
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS
from serde.onnx.ops.vision.suppression import compact, range_to, select_boxes
from serde.relay.ir.dims import Dim
from serde.relay.op.vision.proposal import base_anchors
from serde.weights import Array


@OPS.exports("vision.proposal")
def export_proposal(
    ctx: ExportContext,
    cls_prob: Value,
    bbox_pred: Value,
    im_info: Value,
    *,
    scales: tuple[float, ...],
    ratios: tuple[float, ...],
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> Value:
    """Edges belong to a box, so that ONNX gets boxes longer by one."""
    batch, _, height, width = ctx.type(cls_prob).shape
    base = base_anchors(ratios, scales, feature_stride)
    info = as_dtype(ctx, im_info, "float64")
    anchors = _shift_anchors(ctx, base, height, width, feature_stride)
    offsets = ctx.emit(
        "Reshape",
        as_dtype(ctx, bbox_pred, "float64"),
        ctx.shape([batch, len(base), 4, height, width]),
    )
    boxes = _predict(ctx, anchors, ctx.emit("Transpose", offsets, perm=[0, 3, 4, 1, 2]), iou_loss)
    boxes = _clip(ctx, boxes, info)
    end = ctx.ints([np.iinfo(np.int64).max])
    objects = ctx.emit("Slice", cls_prob, ctx.ints([len(base)]), end, ctx.ints([1]))
    marks = cast(ctx, ctx.emit("Transpose", objects, perm=[0, 2, 3, 1]), np.float64)
    least = ctx.emit("Mul", _take_per_image(ctx, info, 2, 5), ctx.const(rpn_min_size, np.float64))
    small = _is_small(ctx, boxes, least)
    half = ctx.emit("Div", least, ctx.const(2, np.float64))
    grown = ctx.emit("Mul", ctx.const([-1, -1, 1, 1], np.float64), half)
    wider = ctx.emit("Add", boxes, grown)
    boxes = ctx.emit("Where", unsqueeze(ctx, small, [4]), wider, boxes)
    for axis, length in enumerate((height, width)):
        small = ctx.emit("Or", small, _is_outside(ctx, info, axis, length, feature_stride))
    marks = ctx.emit("Where", small, ctx.const(-1, np.float64), marks)
    best = _select_best(ctx, boxes, marks, rpn_pre_nms_top_n, batch)
    chosen = _suppress(ctx, best, threshold, rpn_post_nms_top_n, batch)
    position = ctx.emit("Expand", emit_arange(ctx, batch, 3), ctx.ints([1, rpn_post_nms_top_n, 1]))
    rows = ctx.emit("Concat", position, chosen, axis=2)
    return cast(ctx, ctx.emit("Reshape", rows, ctx.ints([-1, 5])), ctx.result_type().dtype)


def _take_per_image(ctx: ExportContext, info: Value, position: int, rank: int) -> Value:
    """Return one number of each image, on the first of `rank` axes."""
    found = ctx.emit("Gather", info, ctx.const(position, np.int64), axis=1)
    return ctx.emit("Reshape", found, ctx.ints([-1] + [1] * (rank - 1)))


def _shift_anchors(ctx: ExportContext, base: Array, height: Dim, width: Dim, stride: int) -> Value:
    """Return ``(height, width, anchors, 4)``: the anchors of each cell."""
    down = ctx.emit(
        "Mul", emit_arange(ctx, height, 4), ctx.const([0, stride, 0, stride], np.float64)
    )
    right = ctx.emit(
        "Mul", emit_arange(ctx, width, 3), ctx.const([stride, 0, stride, 0], np.float64)
    )
    return ctx.emit("Add", ctx.emit("Add", down, right), ctx.const(base, np.float64))


def _split_corners(ctx: ExportContext, x: Value) -> tuple[Value, Value]:
    low, high = (ctx.emit("Gather", x, ctx.ints(indices), axis=-1) for indices in ((0, 1), (2, 3)))
    return low, high


def _predict(ctx: ExportContext, anchors: Value, offsets: Value, iou_loss: bool) -> Value:
    if iou_loss:
        return ctx.emit("Add", anchors, offsets)
    one, two = (ctx.const(value, np.float64) for value in (1, 2))
    low, high = _split_corners(ctx, anchors)
    near, far = _split_corners(ctx, offsets)
    size = ctx.emit("Add", ctx.emit("Sub", high, low), one)
    reach = ctx.emit("Div", ctx.emit("Sub", size, one), two)
    centre = ctx.emit("Add", ctx.emit("Add", low, reach), ctx.emit("Mul", near, size))
    grown = ctx.emit("Mul", ctx.emit("Exp", far), size)
    half = ctx.emit("Div", ctx.emit("Sub", grown, one), two)
    edges = [ctx.emit("Sub", centre, half), ctx.emit("Add", centre, half)]
    return ctx.emit("Concat", *edges, axis=-1)


def _clip(ctx: ExportContext, boxes: Value, info: Value) -> Value:
    """Return boxes within the images, whose heights come before their widths."""
    sizes = ctx.emit("Gather", info, ctx.ints([1, 0, 1, 0]), axis=1)
    last = ctx.emit("Sub", sizes, ctx.const(1, np.float64))
    most = ctx.emit("Reshape", last, ctx.ints([-1, 1, 1, 1, 4]))
    return ctx.emit("Max", ctx.emit("Min", boxes, most), ctx.const(0, np.float64))


def _is_small(ctx: ExportContext, boxes: Value, least: Value) -> Value:
    """Return whether one length of a box is less than it must be."""
    low, high = _split_corners(ctx, boxes)
    size = ctx.emit("Add", ctx.emit("Sub", high, low), ctx.const(1, np.float64))
    short = ctx.emit("Less", size, least)
    sides = [ctx.emit("Gather", short, ctx.const(side, np.int64), axis=4) for side in (0, 1)]
    return ctx.emit("Or", *sides)


def _is_outside(ctx: ExportContext, info: Value, axis: int, length: Dim, stride: int) -> Value:
    """Return whether cells of a map are behind the image, down for axis 0, else to the right."""
    size = ctx.emit("Div", _take_per_image(ctx, info, axis, 4), ctx.const(stride, np.float64))
    inside = ctx.emit("Less", emit_arange(ctx, length, 3 - axis), ctx.emit("Floor", size))
    return ctx.emit("Not", inside)


def _select_best(ctx: ExportContext, boxes: Value, marks: Value, most: int, batch: Dim) -> Value:
    """Return ``(n, boxes, 4)`` of the boxes with the best marks, in their order."""
    flat = ctx.emit("Reshape", marks, ctx.shape([batch, -1]))
    count = ctx.emit("Gather", ctx.emit("Shape", flat), ctx.ints([1]), axis=0)
    _, order = ctx.emit_tuple("TopK", flat, count, outputs=2, axis=1)
    if most > 0:
        order = ctx.emit("Slice", order, ctx.ints([0]), ctx.ints([most]), ctx.ints([1]))
    return _take_boxes(ctx, ctx.emit("Reshape", boxes, ctx.shape([batch, -1, 4])), order)


def _take_boxes(ctx: ExportContext, boxes: Value, order: Value) -> Value:
    index = ctx.emit("Expand", unsqueeze(ctx, order, [2]), ctx.ints([1, 1, 4]))
    return ctx.emit("GatherElements", boxes, index, axis=1)


def _suppress(ctx: ExportContext, boxes: Value, threshold: float, most: int, batch: Dim) -> Value:
    """Return the first boxes of those that stay, repeated in turn where there are too few."""
    low, high = _split_corners(ctx, boxes)
    least, greatest = ctx.emit("Min", low, high), ctx.emit("Max", low, high)
    beyond = ctx.emit("Add", greatest, ctx.const(1, np.float64))
    corners = cast(ctx, ctx.emit("Concat", least, beyond, axis=2), np.float32)
    count = ctx.emit("Gather", ctx.emit("Shape", boxes), ctx.ints([1]), axis=0)
    indices = range_to(ctx, ctx.emit("Reshape", count, ctx.ints([])))
    rank = cast(ctx, ctx.emit("Sub", count, indices), np.float32)
    marks = ctx.emit("Expand", rank, ctx.shape([batch, 1, 1]))
    limit = count if threshold >= 0 else ctx.ints([1])
    bound = ctx.const([min(max(threshold, 0), 1)], np.float32)
    kept = emit_reduce(
        ctx, "ReduceMax", select_boxes(ctx, corners, marks, limit, bound), [1], False
    )
    stays = ctx.emit("Greater", kept, ctx.const(0, np.int64))
    order, _, total = compact(ctx, stays, count)
    turn = ctx.emit("Mod", ctx.const(arange(most)), unsqueeze(ctx, total, [1]), fmod=0)
    return _take_boxes(ctx, boxes, ctx.emit("GatherElements", order, turn, axis=1))
