"""Non-maximum suppression: of boxes that overlap, the best stays."""

from __future__ import annotations

import numpy as np

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import as_dtype, fill
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


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


def range_to(ctx: ExportContext, end: Value) -> Value:
    """Return 0, 1, ... below `end`, a number of int64."""
    return ctx.emit("Range", ctx.const(0, np.int64), end, ctx.const(1, np.int64))


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
