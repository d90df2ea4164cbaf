"""Objects in images."""

from __future__ import annotations

from serde.coreml.mlprogram.ops.vision.suppression import suppress
from serde.coreml.neuralnetwork.ops.table import LAYERS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay import cast
from serde.relay.ir.expr import Expr


@LAYERS.imports("NonMaximumSuppression")
def import_non_maximum_suppression(
    ctx: Import, boxes: Expr, scores: Expr, overlap: Expr | None = None, least: Expr | None = None,
    most: Expr | None = None,
    *, iou_threshold: float = 0.0, score_threshold: float = 0.0, max_boxes: int = 0,
    per_class_suppression: bool = False,
) -> list[Expr]:  # fmt: skip
    """What an input gives goes before what the layer says."""
    known = [
        default if given is None else float(ctx.constant(given).reshape(()))
        for given, default in (
            (overlap, iou_threshold),
            (least, score_threshold),
            (most, max_boxes),
        )
    ]
    if ctx.type(boxes).rank != 3 or ctx.type(scores).rank != 3:
        raise Unsupported(f"boxes of {ctx.type(boxes).rank} axes")
    found = suppress(
        ctx, boxes, scores, iou_threshold=known[0], score_threshold=known[1],
        max_boxes=int(known[2]), per_class=per_class_suppression,
    )  # fmt: skip
    return [*found[:2], *(cast(each, "float32") for each in found[2:])]


@LAYERS.exports("non_maximum_suppression")
def export_non_maximum_suppression(
    ctx: Export, boxes: Value, scores: Value,
    *, iou_threshold: float, score_threshold: float, max_boxes: int,
    per_class_suppression: bool = False,
) -> tuple[Value, ...]:  # fmt: skip
    return ctx.layers(
        "NonMaximumSuppression",
        [boxes, scores],
        iou_threshold=iou_threshold,
        score_threshold=score_threshold,
        max_boxes=max_boxes,
        per_class_suppression=per_class_suppression,
    )
