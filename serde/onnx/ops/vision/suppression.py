"""Non-maximum suppression: of boxes that overlap, the best stays."""

from __future__ import annotations

import numpy as np

from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import as_dtype, cast, fill
from serde.onnx.ops.reduce import emit_reduce
from serde.onnx.ops.shape.reshape import squeeze, unsqueeze
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.weights import numpy_dtype


def compact(ctx: ExportContext, valid: Value, count: Value) -> tuple[Value, Value, Value]:
    """Return the order that puts what is valid first, where that ends, and how much it is.

    Args:
        ctx: Where nodes are written.
        valid: Truth values of two axes.
        count: Length of the second, as a vector.
    """
    dropped = cast(ctx, ctx.emit("Not", valid), np.int64)
    end = squeeze(ctx, count, [0])
    indices = ctx.emit("Range", ctx.const(0, np.int64), end, ctx.const(1, np.int64))
    keys = ctx.emit("Add", ctx.emit("Mul", dropped, count), indices)
    _, order = ctx.emit_tuple("TopK", keys, count, outputs=2, axis=1, largest=0)
    total = emit_reduce(ctx, "ReduceSum", cast(ctx, valid, np.int64), [1], True)
    return order, ctx.emit("Less", indices, total), squeeze(ctx, total, [1])


def move_rows(
    ctx: ExportContext, rows: Value, order: Value, first: Value, width: Value, dtype: str
) -> Value:
    """Return rows in another order, -1 behind the first ones.

    `width` is the length of the last axis, as a vector.
    """
    ones = ctx.emit("Concat", ctx.ints([1, 1]), width, axis=0)
    index = ctx.emit("Expand", unsqueeze(ctx, order, [2]), ones)
    found = ctx.emit("GatherElements", rows, index, axis=1)
    return ctx.emit("Where", unsqueeze(ctx, first, [2]), found, ctx.const(-1, numpy_dtype(dtype)))


@OPS.exports("vision.get_valid_counts")
def export_get_valid_counts(
    ctx: ExportContext, x: Value, threshold: Value, *, id_index: int, score_index: int
) -> tuple[Value, Value, Value]:
    type_ = ctx.type(x)
    score = ctx.emit("Gather", x, ctx.const(score_index, np.int64), axis=2)
    valid = ctx.emit("Greater", score, as_dtype(ctx, threshold, type_.dtype))
    if id_index >= 0:
        class_ = ctx.emit("Gather", x, ctx.const(id_index, np.int64), axis=2)
        negative = ctx.emit("Less", class_, ctx.scalar_like(x, 0))
        valid = ctx.emit("And", valid, ctx.emit("Not", negative))
    order, first, total = compact(ctx, valid, ctx.shape([type_.shape[1]]))
    rows = move_rows(ctx, x, order, first, ctx.shape([type_.shape[2]]), type_.dtype)
    indices = ctx.emit("Where", first, order, ctx.const(-1, np.int64))
    return cast(ctx, total, np.int32), rows, cast(ctx, indices, np.int32)


def just_below(ctx: ExportContext, threshold: Value) -> Value:
    """Return the float32 just below a positive one, above which just what is at least that lies.

    The product with the number just below 1 is rounded to it.
    """
    return ctx.emit("Mul", threshold, ctx.const(np.nextafter(np.float32(1), np.float32(0))))


def clamp_overlap(ctx: ExportContext, overlap: Value) -> Value:
    """Return a threshold of overlap as ONNX takes it: a vector, from 0 to 1."""
    bound = ctx.emit("Max", overlap, ctx.const(0, np.float32))
    return ctx.emit("Reshape", ctx.emit("Min", bound, ctx.const(1, np.float32)), ctx.ints([1]))


def select_boxes(
    ctx: ExportContext,
    corners: Value,
    marks: Value,
    most: Value,
    overlap: Value,
    least: Value | None = None,
) -> Value:
    """Return which boxes of which class stay, as numbers 0 and 1 of int64.

    Args:
        ctx: Where nodes are written.
        corners: ``(n, boxes, 4)`` of float32, two opposite corners each.
        marks: ``(n, classes, boxes)`` of float32.
        most: How many boxes of a class may stay, a vector of int64.
        overlap: Above which a box goes, see :func:`clamp_overlap`.
        least: What a box must be marked above to take part, a vector of float32; 0 if left out.
    """
    least = ctx.const([0], np.float32) if least is None else least
    found = ctx.emit("NonMaxSuppression", corners, marks, most, overlap, least)
    count = ctx.emit("Gather", ctx.emit("Shape", found), ctx.ints([0]), axis=0)
    zeros = fill(ctx, ctx.emit("Shape", marks), 0, "int64")
    return ctx.emit("ScatterND", zeros, found, fill(ctx, count, 1, "int64"))


@OPS.exports("vision.non_max_suppression")
def export_non_max_suppression(
    ctx: ExportContext,
    data: Value,
    valid_count: Value,
    indices: Value,
    max_output_size: Value,
    iou_threshold: Value,
    *,
    force_suppress: bool,
    top_k: int,
    coord_start: int,
    score_index: int,
    id_index: int,
    return_indices: bool,
    invalid_to_bottom: bool,
) -> Value | tuple[Value, Value]:
    """Boxes are sorted first; ranks in place of scores keep the order where scores are equal."""
    type_ = ctx.type(data)
    if type_.dtype != "float32":
        raise Unsupported(f"boxes of {type_.dtype}; ONNX suppresses those of float32")
    number, width = (ctx.shape([dim]) for dim in type_.shape[1:])
    positions = range_to(ctx, squeeze(ctx, number, [0]))
    bound = as_dtype(ctx, iou_threshold, "float32")
    active = ctx.emit("Greater", bound, ctx.const(0, np.float32))
    count = unsqueeze(ctx, as_dtype(ctx, valid_count, "int64"), [1])
    order, taken = _select_best(ctx, data, score_index, positions, count, number, active, top_k)
    rows = move_rows(ctx, data, order, taken, width, type_.dtype)
    score = ctx.emit("Gather", rows, ctx.const(score_index, np.int64), axis=2)
    takes_part = ctx.emit("And", taken, ctx.emit("Greater", score, ctx.const(0, np.float32)))
    rank = cast(ctx, ctx.emit("Sub", number, positions), np.float32)
    marks = unsqueeze(ctx, ctx.emit("Where", takes_part, rank, ctx.const(-1, np.float32)), [1])
    if id_index >= 0 and not force_suppress:
        marks = _spread_by_class(
            ctx, marks, ctx.emit("Gather", rows, ctx.const(id_index, np.int64), axis=2)
        )
    columns = (ctx.ints([coord_start]), ctx.ints([coord_start + 4]), ctx.ints([2]))
    corners = ctx.emit("Slice", rows, *columns)
    kept = select_boxes(ctx, corners, marks, number, clamp_overlap(ctx, just_below(ctx, bound)))
    kept = emit_reduce(ctx, "ReduceMax", kept, [1], False)
    dropped = _is_suppressed(ctx, kept, takes_part, as_dtype(ctx, max_output_size, "int64"))
    dropped = ctx.emit("And", dropped, active)
    rows = ctx.emit("Where", unsqueeze(ctx, dropped, [2]), ctx.const(-1, np.float32), rows)
    if not return_indices:
        return _move_to_front(ctx, rows, number, width) if invalid_to_bottom else rows
    found = ctx.emit("GatherElements", as_dtype(ctx, indices, "int32"), order, axis=1)
    kept = ctx.emit("And", taken, ctx.emit("Not", dropped))
    found = ctx.emit("Where", kept, found, ctx.const(-1, np.int32))
    stays = ctx.emit("Not", ctx.emit("Less", found, ctx.const(0, np.int32)))
    order, first, total = compact(ctx, stays, number)
    found = ctx.emit("GatherElements", found, order, axis=1)
    found = ctx.emit("Where", first, found, ctx.const(-1, np.int32))
    return found, unsqueeze(ctx, cast(ctx, total, np.int32), [1])


def _move_to_front(ctx: ExportContext, rows: Value, number: Value, width: Value) -> Value:
    """Return the rows whose first number is not negative in front of the others."""
    head = ctx.emit("Gather", rows, ctx.const(0, np.int64), axis=2)
    stays = ctx.emit("Not", ctx.emit("Less", head, ctx.const(0, np.float32)))
    order, first, _ = compact(ctx, stays, number)
    return move_rows(ctx, rows, order, first, width, "float32")


def range_to(ctx: ExportContext, end: Value) -> Value:
    """Return 0, 1, ... below `end`, a number of int64."""
    return ctx.emit("Range", ctx.const(0, np.int64), end, ctx.const(1, np.int64))


def _select_best(
    ctx: ExportContext,
    data: Value,
    score_index: int,
    indices: Value,
    count: Value,
    number: Value,
    active: Value,
    top_k: int,
) -> tuple[Value, Value]:
    """Return an order that puts the best of the first `count` rows first, and which it takes.

    Where nothing is suppressed, the rows keep their order and all of them are taken.
    """
    valid = ctx.emit("Less", indices, count)
    score = ctx.emit("Gather", data, ctx.const(score_index, np.int64), axis=2)
    keys = ctx.emit("Where", valid, score, ctx.const(-np.inf, np.float32))
    _, order = ctx.emit_tuple("TopK", keys, number, outputs=2, axis=1)
    order = ctx.emit("Where", active, order, indices)
    if top_k <= 0:
        return order, valid
    best = ctx.emit("Less", indices, ctx.ints([top_k]))
    kept = ctx.emit("Or", best, ctx.emit("Not", active))
    return order, ctx.emit("And", valid, kept)


def _spread_by_class(ctx: ExportContext, marks: Value, classes: Value) -> Value:
    """Return marks of each class that occurs, 0 for boxes of others."""
    flat = ctx.emit("Reshape", classes, ctx.ints([-1]))
    names = ctx.emit("Unique", flat)
    same = ctx.emit("Equal", unsqueeze(ctx, classes, [1]), unsqueeze(ctx, names, [1]))
    return ctx.emit("Where", same, marks, ctx.const(0, np.float32))


def _is_suppressed(ctx: ExportContext, kept: Value, takes_part: Value, limit: Value) -> Value:
    """Return which rows go: those that overlap, and all behind the last that may stay."""
    negative = ctx.emit("Less", limit, ctx.const(0, np.int64))
    most = ctx.emit("Where", negative, ctx.const(np.iinfo(np.int64).max), limit)
    until = ctx.emit("CumSum", kept, ctx.const(1, np.int64), exclusive=1)
    late = ctx.emit("Not", ctx.emit("Less", until, most))
    suppressed = ctx.emit("And", takes_part, ctx.emit("Equal", kept, ctx.const(0, np.int64)))
    return ctx.emit("Or", suppressed, late)


@OPS.exports("serde.non_max_suppression")
def export_serde_non_max_suppression(
    ctx: ExportContext,
    boxes: Value,
    scores: Value,
    limit: Value | None,
    overlap: Value | None,
    least: Value | None,
    *,
    center_point_box: bool,
) -> Value:
    """All but the number of boxes are float32."""
    given = [
        None if limit is None else as_dtype(ctx, limit, "int64"),
        *(None if each is None else as_dtype(ctx, each, "float32") for each in (overlap, least)),
    ]
    while given and given[-1] is None:
        given.pop()
    return ctx.emit(
        "NonMaxSuppression",
        as_dtype(ctx, boxes, "float32"),
        as_dtype(ctx, scores, "float32"),
        *given,
        center_point_box=int(center_point_box) or None,
    )


@OPS.imports("NonMaxSuppression", since=(10, 11))
def import_non_max_suppression(
    ctx: ImportContext,
    boxes: Expr,
    scores: Expr,
    max_output_boxes_per_class: Expr | None = None,
    iou_threshold: Expr | None = None,
    score_threshold: Expr | None = None,
    *,
    center_point_box: bool = False,
) -> Expr:
    return call(
        "serde.non_max_suppression",
        boxes,
        scores,
        max_output_boxes_per_class,
        iou_threshold,
        score_threshold,
        center_point_box=center_point_box,
    )
