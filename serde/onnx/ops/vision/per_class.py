"""Suppression of overlapping boxes of each class on its own."""

from __future__ import annotations

import numpy as np

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise import widened
from serde.onnx.ops.shape import unsqueeze
from serde.onnx.ops.table import OPS


@OPS.exports("vision.all_class_non_max_suppression")
def export_all_class_non_max_suppression(
    ctx: Ctx,
    boxes: Value,
    scores: Value,
    limit: Value,
    iou: Value,
    threshold: Value,
    *,
    output_format: str,
) -> tuple[Value, Value]:
    """Relay drops a box at the threshold of overlap, ONNX above it: it gets the number before."""
    if output_format != "onnx":
        raise Unsupported(
            "the detections of all classes in one order", hint="use output_format='onnx'"
        )
    bound = np.float32(ctx.constant(iou).item())
    if not 0 < bound <= 1:
        raise Unsupported(f"iou_threshold {bound}: expected more than 0, and at most 1")
    most = int(ctx.constant(limit).item())
    batch, number = ctx.type(scores).shape[0], ctx.type(scores).shape[2]
    rows = batch * ctx.type(scores).shape[1] * number
    selected = ctx.emit(
        "NonMaxSuppression",
        widened(ctx, boxes, "float32"),
        widened(ctx, scores, "float32"),
        ctx.ints([most]) if most > 0 else ctx.shape([number]),
        ctx.const([np.nextafter(bound, np.float32(0))], np.float32),
        unsqueeze(ctx, widened(ctx, threshold, "float32"), [0]),
    )
    count = ctx.emit("Gather", ctx.emit("Shape", selected), ctx.ints([0]), axis=0)
    missing = ctx.emit("Sub", ctx.shape([rows]), count)
    widths = ctx.emit("Concat", ctx.ints([0, 0]), missing, ctx.ints([0]), axis=0)
    return ctx.emit("Pad", selected, widths, ctx.const(0, np.int64)), count
