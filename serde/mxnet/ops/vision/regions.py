"""Regions of feature maps: proposed, and pooled."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.layout import FLOATS, arranged, tensor_type
from serde.mxnet.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call, Expr, TupleGetItem
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType


@OPS.imports("_contrib_ROIAlign")
def import_roi_align(
    ctx: ImportContext,
    data: Expr,
    rois: Expr,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
    sample_ratio: int = -1,
    position_sensitive: bool = False,
    aligned: bool = False,
) -> Expr:
    """Aligned, the centre of a pixel is at one half, and a region may be narrower than one."""
    shown = _within(ctx, rois)
    if aligned:
        image, corners = relay.split(shown, [1], axis=1)
        images = relay.cast(relay.squeeze(image, [1]), "int32")
        result: Expr = call(
            "serde.roi_align", data, corners, images, pooled_size=pooled_size,
            spatial_scale=spatial_scale, sample_ratio=max(sample_ratio, 0), half_pixel=True,
        )  # fmt: skip
    else:
        result = relay.vision.roi_align(data, shown, pooled_size, spatial_scale, sample_ratio)
    if position_sensitive:
        result = _of_its_bin(ctx, data, result, pooled_size)
    return _known(ctx, rois, result)


def _between_pixels(call: Call) -> bool:
    floats = tensor_type(call.args[0]).dtype in FLOATS
    return bool(floats and call.attrs["half_pixel"] and call.attrs["mode"] == "avg")


@OPS.exports("serde.roi_align", when=_between_pixels)
def export_roi_align_aligned(
    ctx: ExportContext,
    data: Value,
    rois: Value,
    images: Value,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
    sample_ratio: int,
    mode: str,
    half_pixel: bool,
) -> Value:
    if mode != "avg":
        raise Unsupported("the greatest parts of samples; MXNet takes their mean")
    numbers = ctx.emit("Cast", images, dtype=ctx.type(rois).dtype)
    rows = ctx.emit("Concat", ctx.emit("expand_dims", numbers, axis=1), rois, dim=1, num_args=2)
    return ctx.emit(
        "_contrib_ROIAlign", data, rows, pooled_size=pooled_size, spatial_scale=spatial_scale,
        sample_ratio=sample_ratio, aligned=True,
    )  # fmt: skip


@OPS.imports("ROIPooling")
def import_roi_pooling(
    ctx: ImportContext,
    data: Expr,
    rois: Expr,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
) -> Expr:
    pooled = relay.vision.roi_pool(data, _within(ctx, rois), pooled_size, spatial_scale)
    return _known(ctx, rois, pooled)


@OPS.imports("_contrib_RROIAlign")
def import_rroi_align(
    ctx: ImportContext,
    data: Expr,
    rois: Expr,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
    sampling_ratio: int = -1,
) -> Expr:
    return call(
        "serde.roi_align_rotated", data, rois, pooled_size=pooled_size,
        spatial_scale=spatial_scale, sample_ratio=sampling_ratio,
    )  # fmt: skip


@OPS.exports("serde.roi_align_rotated")
def export_roi_align_rotated(
    ctx: ExportContext,
    data: Value,
    rois: Value,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
    sample_ratio: int,
) -> Value:
    return ctx.emit(
        "_contrib_RROIAlign", data, rois, pooled_size=pooled_size, spatial_scale=spatial_scale,
        sampling_ratio=sample_ratio,
    )  # fmt: skip


def _within(ctx: ImportContext, rois: Expr) -> Expr:
    """Return regions, those of no image (a negative number) as of the first."""
    least = np.array([0, *[-np.inf] * 4], ctx.type(rois).dtype)
    return relay.maximum(rois, relay.Constant(least))


def _known(ctx: ImportContext, rois: Expr, pooled: Expr) -> Expr:
    """Return what was pooled, zero for regions of no image."""
    dtype = ctx.type(rois).dtype
    image = relay.strided_slice(rois, [0], [1], [1], axes=[1])
    nowhere = relay.less(relay.expand_dims(image, 2, 2), relay.const(0, dtype))
    return relay.where(nowhere, relay.const(0, dtype), pooled)


def _of_its_bin(ctx: ImportContext, data: Expr, pooled: Expr, size: tuple[int, ...]) -> Expr:
    """Return for each bin the channels that are its own: those of a number are all bins' once."""
    bins = size[0] * size[1]
    (channels,) = ctx.static_lengths(data, [1])
    if channels % bins:
        raise Unsupported(f"{channels} channels for {bins} bins")
    apart = relay.reshape(pooled, (-1, channels // bins, bins * bins))
    own = relay.strided_slice(apart, [0], [bins * bins], [bins + 1], axes=[2])
    return relay.reshape(own, (-1, channels // bins, *size))


def _channels_first(call: Call) -> bool:
    return bool(call.attrs["layout"] == "NCHW" and tensor_type(call.args[0]).dtype in FLOATS)


def _window(pooled_size: tuple[Dim, ...]) -> tuple[int, ...]:
    shape = TensorType(pooled_size, "int32").concrete_shape
    if shape is None:
        raise Unsupported(f"regions pooled to open lengths {pooled_size}")
    return shape


@OPS.exports("vision.roi_align", when=_channels_first)
def export_roi_align(
    ctx: ExportContext,
    data: Value,
    rois: Value,
    *,
    pooled_size: tuple[Dim, ...],
    spatial_scale: float,
    sample_ratio: int,
    layout: str,
    mode: str,
) -> Value:
    if mode != "avg":
        raise Unsupported("the greatest of the samples; MXNet takes their mean")
    return ctx.emit(
        "_contrib_ROIAlign", data, rois, pooled_size=_window(pooled_size),
        spatial_scale=spatial_scale, sample_ratio=sample_ratio,
    )  # fmt: skip


@OPS.exports("vision.roi_pool", when=_channels_first)
def export_roi_pool(
    ctx: ExportContext,
    data: Value,
    rois: Value,
    *,
    pooled_size: tuple[Dim, ...],
    spatial_scale: float,
    layout: str,
) -> Value:
    return ctx.emit(
        "ROIPooling", data, rois, pooled_size=_window(pooled_size), spatial_scale=spatial_scale
    )


def _declare_moved(name: str) -> None:
    @OPS.expands(name)
    def expand_regions(data: Expr, rois: Expr, *, layout: str, **attrs: AnyValue) -> Expr:
        if layout == "NCHW":
            raise Unsupported(f"regions of {tensor_type(data).dtype}")
        result = call(name, arranged(data, layout, "NCHW"), rois, layout="NCHW", **attrs)
        return arranged(result, "NCHW", layout)


for _name in ("vision.roi_align", "vision.roi_pool"):
    _declare_moved(_name)


@OPS.imports("_contrib_Proposal", "_contrib_MultiProposal")
def import_proposal(
    ctx: ImportContext,
    cls_prob: Expr,
    bbox_pred: Expr,
    im_info: Expr,
    *,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    threshold: float = 0.7,
    rpn_min_size: int = 16,
    scales: tuple[float, ...] = (4.0, 8.0, 16.0, 32.0),
    ratios: tuple[float, ...] = (0.5, 1.0, 2.0),
    feature_stride: int = 16,
    output_score: bool = False,
    iou_loss: bool = False,
) -> Expr | list[Expr]:
    name = "serde.scored_proposal" if output_score else "vision.proposal"
    result = call(
        name, cls_prob, bbox_pred, im_info, scales=scales, ratios=ratios,
        feature_stride=feature_stride, threshold=threshold, rpn_pre_nms_top_n=rpn_pre_nms_top_n,
        rpn_post_nms_top_n=rpn_post_nms_top_n, rpn_min_size=rpn_min_size, iou_loss=iou_loss,
    )  # fmt: skip
    return [TupleGetItem(result, 0), TupleGetItem(result, 1)] if output_score else result


@OPS.exports("serde.scored_proposal")
def export_scored_proposal(
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
) -> list[Value]:
    rows, scores = ctx.emit_tuple(
        "_contrib_MultiProposal", cls_prob, bbox_pred, im_info, outputs=2, scales=scales,
        ratios=ratios, feature_stride=feature_stride, threshold=threshold,
        rpn_pre_nms_top_n=rpn_pre_nms_top_n, rpn_post_nms_top_n=rpn_post_nms_top_n,
        rpn_min_size=rpn_min_size, iou_loss=iou_loss, output_score=True,
    )  # fmt: skip
    return [rows, scores]


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
    """The operator for one image reads no second one."""
    batch = ctx.type(cls_prob).shape[0]
    return ctx.emit(
        "_contrib_Proposal" if batch == 1 else "_contrib_MultiProposal", cls_prob, bbox_pred,
        im_info, scales=scales, ratios=ratios, feature_stride=feature_stride, threshold=threshold,
        rpn_pre_nms_top_n=rpn_pre_nms_top_n, rpn_post_nms_top_n=rpn_post_nms_top_n,
        rpn_min_size=rpn_min_size, iou_loss=iou_loss,
    )  # fmt: skip
