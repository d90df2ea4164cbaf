"""Non-maximum suppression: of boxes that overlap, the best stays."""

from __future__ import annotations

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import as_dtype
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.walk.takes import Takes, dtypes

_NARROW = dtypes("float16", "float32")


@OPS.exports("serde.non_max_suppression", takes=Takes(boxes=_NARROW, scores=_NARROW))
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
