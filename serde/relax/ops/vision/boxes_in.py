"""Importers of boxes and regions."""

from __future__ import annotations

from typing import Any as AnyValue
from typing import Literal

import serde.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call

__all__: list[str] = []


@OPS.imports("relax.vision.roi_pool")
def import_roi_pool(
    ctx: ImportContext,
    data: Expr,
    rois: Expr,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
    layout: Literal["NCHW", "NHWC"],
) -> Expr:
    return relay.vision.roi_pool(data, rois, pooled_size, spatial_scale, layout=layout)


@OPS.imports("relax.vision.roi_align")
def import_roi_align(
    ctx: ImportContext,
    data: Expr,
    rois: Expr,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
    sample_ratio: int,
    aligned: bool,
    layout: Literal["NCHW", "NHWC"],
    mode: Literal["avg", "max"],
) -> Expr:
    """A region begins with its image; aligned, it is as narrow as it likes, but not moved."""
    if not aligned:
        return relay.vision.roi_align(
            data, rois, pooled_size, spatial_scale,
            sample_ratio=sample_ratio, layout=layout, mode=mode,
        )  # fmt: skip
    if mode != "avg":
        raise Unsupported(f"mode={mode!r} of aligned regions has no counterpart")
    x = data if layout == "NCHW" else relay.layout_transform(data, layout, "NCHW")
    images, places = relay.split(rois, (1,), axis=1)
    boxes = relay.add(places, ctx.like(rois, 0.5 / spatial_scale))
    found = call(
        "serde.roi_align", x, boxes, relay.cast(relay.squeeze(images, axis=[1]), "int64"),
        pooled_size=pooled_size, spatial_scale=spatial_scale, sample_ratio=max(sample_ratio, 0),
        half_pixel=True,
    )  # fmt: skip
    return found if layout == "NCHW" else relay.layout_transform(found, "NCHW", layout)


@OPS.imports("relax.vision.get_valid_counts")
def import_get_valid_counts(
    ctx: ImportContext, data: Expr, *, score_threshold: float, id_index: int, score_index: int
) -> list[Expr]:
    found = relay.vision.get_valid_counts(
        data, score_threshold, id_index=id_index, score_index=score_index
    )
    return [found[place] for place in range(3)]


@OPS.imports("relax.vision.multibox_transform_loc")
def import_multibox_transform_loc(
    ctx: ImportContext,
    cls_pred: Expr,
    loc_pred: Expr,
    anchor: Expr,
    *,
    clip: bool,
    threshold: float,
    variances: tuple[float, ...],
    keep_background: bool,
    apply_softmax: bool = True,
) -> list[Expr]:
    """The corners (top, left, bottom, right) of all anchors, and the scores of all classes.

    Relay's operator of this name gives those of objects only.
    """
    batch, _, count = ctx.type(cls_pred).shape
    left, top, right, bottom = relay.split(anchor, 4, axis=2)
    moves = relay.reshape(loc_pred, (batch, count, 4))
    x, y, width, height = relay.split(
        relay.multiply(moves, ctx.like(loc_pred, variances)), 4, axis=2
    )

    def around(low: Expr, high: Expr, move: Expr, growth: Expr) -> tuple[Expr, Expr]:
        half = ctx.like(low, 0.5)
        size = relay.subtract(high, low)
        centre = relay.multiply(relay.add(low, high), half)
        middle = relay.add(relay.multiply(move, size), centre)
        reach = relay.multiply(relay.multiply(half, relay.exp(growth)), size)
        return relay.subtract(middle, reach), relay.add(middle, reach)

    lower, upper = around(top, bottom, y, height), around(left, right, x, width)
    boxes = relay.concatenate([lower[0], upper[0], lower[1], upper[1]], axis=2)
    boxes = relay.clip(boxes, 0.0, 1.0) if clip else boxes
    scores = relay.nn.softmax(cls_pred, axis=1) if apply_softmax else cls_pred
    least, none = ctx.like(scores, threshold), ctx.like(scores, 0)
    scores = relay.where(relay.greater_equal(scores, least), scores, none)
    if not keep_background:
        classes = ctx.static_lengths(cls_pred, [1])[0]
        objects = ctx.const(allocation.arange(classes)[:, None] > 0, "bool")
        scores = relay.where(objects, scores, none)
    return [boxes, scores]


@OPS.imports("relax.vision.non_max_suppression")
def import_non_max_suppression(
    ctx: ImportContext,
    data: Expr,
    valid_count: Expr,
    indices: Expr,
    *,
    max_output_size: int,
    iou_threshold: float,
    force_suppress: bool,
    top_k: int,
    coord_start: int,
    score_index: int,
    id_index: int,
    return_indices: bool,
    invalid_to_bottom: bool,
    soft_nms_sigma: float,
    score_threshold: float,
) -> list[Expr]:
    if soft_nms_sigma:
        raise Unsupported("scores that fade by overlap have no counterpart")
    if score_threshold > 0:
        raise Unsupported(f"score_threshold={score_threshold} has no counterpart")
    found: AnyValue = relay.vision.non_max_suppression(
        data, valid_count, indices, max_output_size, iou_threshold, force_suppress, top_k,
        coord_start, score_index, id_index, return_indices, invalid_to_bottom,
    )  # fmt: skip
    return [found[0], found[1]] if return_indices else [found]


@OPS.imports("relax.vision.all_class_non_max_suppression")
def import_all_class_non_max_suppression(
    ctx: ImportContext,
    boxes: Expr,
    scores: Expr,
    max_output_boxes_per_class: Expr,
    iou_threshold: Expr,
    score_threshold: Expr,
    *,
    output_format: AnyValue,
) -> list[Expr]:
    """In the first of the two formats there are no rows behind the last one."""
    found = relay.vision.all_class_non_max_suppression(
        boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold, output_format
    )
    if output_format == "tensorflow":
        return [found[place] for place in range(3)]
    rows, count = found[0], found[1]
    end = relay.concatenate([relay.cast(count, "int64"), ctx.const([3], "int64")], axis=0)
    begin, steps = ctx.const([0, 0], "int64"), ctx.const([1, 1], "int64")
    return [relay.strided_slice(rows, begin, end, steps), count]
