"""Boxes, their suppression, and regions of images, as they are written."""

from __future__ import annotations

from serde.relay.ir.dims import Dim
from serde.relay.op.vision.aligned import AlignedRegions
from serde.relay.op.vision.regions import RoiAlign
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS


@OPS.exports("vision.all_class_non_max_suppression")
def export_all_class_non_max_suppression(
    ctx: ExportContext,
    boxes: Value,
    scores: Value,
    max_output_boxes_per_class: Value,
    iou_threshold: Value,
    score_threshold: Value,
    *,
    output_format: str,
) -> tuple[Value, ...]:
    given = boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold
    if output_format == "tensorflow":
        return ctx.call_tuple(ctx.helper("all_class_images"), *given, outputs=3)
    return ctx.call_tuple(ctx.helper("all_class_rows"), *given, outputs=2)


@OPS.exports("vision.roi_align")
def export_roi_align(ctx: ExportContext, data: Value, rois: Value, *, roi: RoiAlign) -> Value:
    options = *ctx.sizes(roi.pooled_size), roi.spatial_scale, roi.sample_ratio, roi.mode == "avg"
    return ctx.call(ctx.helper("align_regions"), data, rois, *options)


@OPS.exports("serde.roi_align")
def export_serde_roi_align(
    ctx: ExportContext, data: Value, rois: Value, images: Value, *, roi: AlignedRegions
) -> Value:
    options = (
        *roi.pooled_size,
        roi.spatial_scale,
        roi.sample_ratio,
        roi.half_pixel,
        roi.mode == "avg",
    )
    return ctx.call(ctx.helper("align_boxes"), data, rois, images, *options)


@OPS.exports("vision.roi_pool")
def export_roi_pool(
    ctx: ExportContext,
    data: Value,
    rois: Value,
    *,
    pooled_size: tuple[Dim, ...],
    spatial_scale: float,
) -> Value:
    name = ctx.helper("pool_regions")
    return ctx.call(name, data, rois, *ctx.sizes(pooled_size), spatial_scale)
