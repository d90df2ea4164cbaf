"""Suppression of boxes whose rows may be laid out in any way."""

from __future__ import annotations

import math

import numpy as np

from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.elementwise.convert import fill
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.op.vision.boxes import BoxSuppression
from serde.walk.takes import Takes, between


@OPS.exports("serde.box_nms", takes=Takes(iou_threshold=between(0, math.inf)))
def export_box_nms(ctx: ExportContext, data: Value, *, nms: BoxSuppression) -> Value:
    """The scores of boxes that stay are scattered over nothing, then the rows sorted by them."""
    batch, number, width = ctx.type(data).shape
    if ctx.type(data).dtype != "float32":
        raise Unsupported(f"boxes of {ctx.type(data).dtype}; ONNX suppresses those of float32")
    score = _take_column(ctx, data, nms.score_index)
    if nms.id_index >= 0:
        named = ctx.emit(
            "Equal", _take_column(ctx, data, nms.id_index), ctx.const(nms.background_id, "float32")
        )
        score = ctx.emit("Where", named, ctx.const(-np.inf, np.float32), score)
    rows, most = data, ctx.shape([number])
    if nms.top_k > 0 and not (isinstance(number, int) and number <= nms.top_k):
        rows, score, most = _select_best(ctx, data, score, number, nms.top_k)
    one_class = nms.id_index < 0 or nms.force_suppress
    corners = _slice_columns(ctx, rows, nms.coord_start, nms.coord_start + 4)
    found = ctx.emit(
        "NonMaxSuppression",
        _to_corners(ctx, corners, nms.in_format),
        unsqueeze(ctx, score, [1]) if one_class
        else _spread_by_class(ctx, score, _take_column(ctx, rows, nms.id_index)),
        most,
        ctx.const([min(nms.iou_threshold, 1.0)], np.float32),
        ctx.const([nms.score_threshold], np.float32),
    )  # fmt: skip
    position = ctx.emit("Gather", found, ctx.ints([0, 2]), axis=1)
    if isinstance(batch, int) and isinstance(most.data, np.ndarray):
        shape = ctx.ints([batch, most.data.item()])
    else:
        shape = ctx.emit("Shape", score)
    nothing = fill(ctx, shape, -np.inf, "float32")
    marks = ctx.emit("ScatterND", nothing, position, ctx.emit("GatherND", score, position))
    marks, order = ctx.emit_tuple("TopK", marks, most, outputs=2, axis=1)
    stays = unsqueeze(
        ctx, ctx.emit("Greater", marks, ctx.const(nms.score_threshold, "float32")), [2]
    )
    minus = ctx.const(-1, np.float32)
    result = ctx.emit("Where", stays, _gather_rows(ctx, rows, order, width), minus)
    if rows is not data:
        result = _pad_rows(ctx, result, ctx.emit("Sub", ctx.shape([number]), most), minus)
    if nms.in_format != nms.out_format:
        result = _convert_format(ctx, result, nms.coord_start, nms.out_format)
    return result


def _gather_rows(ctx: ExportContext, rows: Value, order: Value, width: Dim) -> Value:
    """Return rows ``(n, boxes, width)`` of each image at indices ``(n, k)``."""
    indices = unsqueeze(ctx, order, [2])
    if ctx.version >= 12:
        return ctx.emit("GatherND", rows, indices, batch_dims=1)
    spread = ctx.emit("Expand", indices, ctx.shape([1, 1, width]))
    return ctx.emit("GatherElements", rows, spread, axis=1)


def _pad_rows(ctx: ExportContext, rows: Value, count: Value, value: Value) -> Value:
    """Return rows with some more behind them, all of one value."""
    sides = ctx.emit("Concat", ctx.ints([0] * 4), count, ctx.ints([0]), axis=0)
    return ctx.emit("Pad", rows, sides, value)


def _take_column(ctx: ExportContext, rows: Value, index: int) -> Value:
    return ctx.emit("Gather", rows, ctx.const(index, np.int64), axis=2)


def _slice_columns(ctx: ExportContext, rows: Value, begin: int, end: int) -> Value:
    return ctx.emit("Slice", rows, ctx.ints([begin]), ctx.ints([end]), ctx.ints([2]))


def _select_best(
    ctx: ExportContext, data: Value, score: Value, number: Dim, top_k: int
) -> tuple[Value, Value, Value]:
    """Return the rows with the best scores, these scores, and how many they are."""
    most = ctx.ints([min(number, top_k)]) if isinstance(number, int) else ctx.shape([number])
    score, order = ctx.emit_tuple("TopK", score, most, outputs=2, axis=1)
    if not isinstance(number, int):
        bounds = (ctx.ints([0]), ctx.ints([top_k]), ctx.ints([1]))
        score, order = ctx.emit("Slice", score, *bounds), ctx.emit("Slice", order, *bounds)
        most = ctx.emit("Gather", ctx.emit("Shape", score), ctx.ints([1]), axis=0)
    return _gather_rows(ctx, data, order, ctx.type(data).shape[2]), score, most


def _split_corners(ctx: ExportContext, boxes: Value) -> tuple[Value, Value]:
    return _slice_columns(ctx, boxes, 0, 2), _slice_columns(ctx, boxes, 2, 4)


def _to_corners(ctx: ExportContext, boxes: Value, form: str) -> Value:
    """Return two corners each; ONNX puts corners that are swapped in order, here they are empty."""
    low, high = _split_corners(ctx, boxes)
    if form == "center":
        reach = ctx.emit("Mul", high, ctx.const(0.5, np.float32))
        low, high = ctx.emit("Sub", low, reach), ctx.emit("Add", low, reach)
    return ctx.emit("Concat", low, ctx.emit("Max", low, high), axis=2)


def _spread_by_class(ctx: ExportContext, score: Value, class_: Value) -> Value:
    """Return scores of each class that occurs, none for boxes of others."""
    names = ctx.emit("Unique", class_)
    same = ctx.emit("Equal", unsqueeze(ctx, class_, [1]), unsqueeze(ctx, names, [1]))
    nothing = ctx.const(-np.inf, np.float32)
    return ctx.emit("Where", same, unsqueeze(ctx, score, [1]), nothing)


def _convert_format(ctx: ExportContext, rows: Value, start: int, form: str) -> Value:
    """Return rows whose boxes are in another form, those with a negative first number as is."""
    low, high = _split_corners(ctx, _slice_columns(ctx, rows, start, start + 4))
    half = ctx.const(0.5, np.float32)
    if form == "center":
        middle = ctx.emit("Mul", ctx.emit("Add", low, high), half)
        parts = [middle, ctx.emit("Sub", high, low)]
    else:
        reach = ctx.emit("Mul", high, half)
        parts = [ctx.emit("Sub", low, reach), ctx.emit("Add", low, reach)]
    before = [_slice_columns(ctx, rows, 0, start)] if start else []
    after = _slice_columns(ctx, rows, start + 4, np.iinfo(np.int64).max)
    made = ctx.emit("Concat", *before, *parts, after, axis=2)
    first = _slice_columns(ctx, rows, start, start + 1)
    negative = ctx.emit("Less", first, ctx.const(0, np.float32))
    return ctx.emit("Where", negative, rows, made)
