"""Regions of feature maps."""

from __future__ import annotations

import numpy as np

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.conv.windows import fixed
from serde.onnx.ops.elementwise import cast
from serde.onnx.ops.shape import arranged
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim


@OPS.exports("vision.roi_align")
def export_roi_align(
    ctx: Ctx,
    x: Value,
    rois: Value,
    *,
    pooled_size: tuple[Dim, ...],
    spatial_scale: float,
    sample_ratio: int,
    layout: str,
    mode: str,
) -> Value:
    """ONNX has the images of the regions apart; from 16 on, the first centre is at one half."""
    if mode != "avg":
        raise Unsupported(
            "the greatest of ONNX is that of weighted neighbours, not of samples",
            hint="use mode='avg'",
        )
    height, width = fixed(pooled_size, "pooled_size")
    image = ctx.emit("Gather", rois, ctx.const(0, np.int64), axis=1)
    corners = ctx.emit("Slice", rois, ctx.ints([1]), ctx.ints([5]), ctx.ints([1]))
    found = ctx.emit(
        "RoiAlign",
        arranged(ctx, x, layout, "NCHW"),
        corners,
        cast(ctx, image, np.int64),
        coordinate_transformation_mode="output_half_pixel" if ctx.version >= 16 else None,
        mode="avg",
        output_height=height,
        output_width=width,
        sampling_ratio=max(sample_ratio, 0),
        spatial_scale=spatial_scale,
    )
    return arranged(ctx, found, "NCHW", layout)


@OPS.exports("vision.roi_pool")
def export_roi_pool(
    ctx: Ctx,
    x: Value,
    rois: Value,
    *,
    pooled_size: tuple[Dim, ...],
    spatial_scale: float,
    layout: str,
) -> Value:
    found = ctx.emit(
        "MaxRoiPool",
        arranged(ctx, x, layout, "NCHW"),
        rois,
        pooled_shape=fixed(pooled_size, "pooled_size"),
        spatial_scale=spatial_scale,
    )
    return arranged(ctx, found, "NCHW", layout)


@OPS.exports("vision.yolo_reorg")
def export_yolo_reorg(ctx: Ctx, x: Value, *, stride: int) -> Value:
    batch, channels, height, width = ctx.type(x).shape
    fewer = channels // (stride * stride)
    parts = ctx.emit("Reshape", x, ctx.shape([batch, fewer, height, stride, width, stride]))
    moved = ctx.emit("Transpose", parts, perm=[0, 3, 5, 1, 2, 4])
    return ctx.emit("Reshape", moved, ctx.shape(ctx.result_type().shape))
