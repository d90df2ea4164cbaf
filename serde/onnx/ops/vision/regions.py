"""Regions of feature maps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

import serde.relay as relay
from serde.core.allocation import arange
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.conv.windows import require_fixed
from serde.onnx.ops.elementwise.convert import as_dtype, cast
from serde.onnx.ops.image.sampling import LINEAR, clamp, flatten_pixels, length_as_float64, sample
from serde.onnx.ops.reduce import emit_reduce
from serde.onnx.ops.shape.reshape import emit_range, reshape_along, unsqueeze
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.op.vision.aligned import AlignedRegions
from serde.relay.op.vision.regions import RoiAlign
from serde.walk.takes import Takes


@OPS.exports("vision.roi_align")
def export_roi_align(ctx: ExportContext, x: Value, rois: Value, *, roi: RoiAlign) -> Value:
    """ONNX has the images of the regions apart; from 16 on, the first centre is at one half.

    Its greatest is that of weighted neighbours, not of samples, which are then spelled out.
    """
    if roi.mode != "avg":
        return _max_of_samples(ctx, x, rois, roi.pooled_size, roi.spatial_scale, roi.sample_ratio)
    height, width = require_fixed(roi.pooled_size, "pooled_size")
    image = ctx.emit("Gather", rois, ctx.const(0, np.int64), axis=1)
    corners = ctx.emit("Slice", rois, ctx.ints([1]), ctx.ints([5]), ctx.ints([1]))
    return ctx.emit(
        "RoiAlign",
        x,
        corners,
        cast(ctx, image, np.int64),
        coordinate_transformation_mode="output_half_pixel" if ctx.version >= 16 else None,
        mode="avg",
        output_height=height,
        output_width=width,
        sampling_ratio=max(roi.sample_ratio, 0),
        spatial_scale=roi.spatial_scale,
    )


@dataclass(frozen=True)
class _Samples:
    """Samples along an axis of all regions, on five axes: region, and twice bin and sample.

    Attributes:
        position: Where they are, within the image, as float64.
        near: Whether they are no more than one pixel outside.
        real: Whether the bin has as many.
    """

    position: Value
    near: Value
    real: Value

    @classmethod
    def of(
        cls,
        ctx: ExportContext,
        edges: tuple[Value, Value],
        bins: int,
        ratio: int,
        length: Dim,
        axis: int,
    ) -> _Samples:
        """Return the samples between edges, float32 or float64 of shape (regions, 1, 1, 1, 1)."""
        start, end = edges
        dtype = ctx.type(start).dtype
        one, half = ctx.const(1, dtype), ctx.const(0.5, dtype)
        span = ctx.emit("Max", ctx.emit("Sub", end, start), one)
        number = ctx.const(bins, dtype)
        if ratio > 0:
            count, most = ctx.const(ratio, dtype), ctx.ints([ratio])
        else:
            count = ctx.emit("Ceil", ctx.emit("Div", span, number))
            every = ctx.emit("Concat", ctx.emit("Reshape", count, ctx.ints([-1])),
                             ctx.const([1], dtype), axis=0)  # fmt: skip
            most = cast(ctx, emit_reduce(ctx, "ReduceMax", every, [0], True), np.int64)
        size = ctx.emit("Div", span, number)
        steps = reshape_along(ctx, cast(ctx, emit_range(ctx, most), dtype), axis + 1, 5)
        within = ctx.emit("Mul", ctx.emit("Add", steps, half), size)
        within = ctx.emit("Div", within, count)
        parts = reshape_along(ctx, ctx.const(arange(bins), dtype), axis, 5)
        at = ctx.emit("Add", ctx.emit("Add", start, ctx.emit("Mul", parts, size)), within)
        position = cast(ctx, at, np.float64)
        whole = length_as_float64(ctx, length)
        far = ctx.emit("Less", position, ctx.const([-1], np.float64))
        near = ctx.emit("Not", ctx.emit("Or", far, ctx.emit("Less", whole, position)))
        last = ctx.emit("Sub", whole, ctx.const([1], np.float64))
        return cls(clamp(ctx, position, last), near, ctx.emit("Less", steps, count))


def _max_of_samples(
    ctx: ExportContext,
    x: Value,
    rois: Value,
    pooled_size: tuple[Dim, ...],
    scale: float,
    ratio: int,
) -> Value:
    """Return the greatest of the samples in each bin."""
    type_, shape = ctx.type(x), ctx.type(x).shape
    rows, columns = require_fixed(pooled_size, "pooled_size")
    work = "float64" if type_.dtype == "float64" else "float32"
    wide = as_dtype(ctx, rois, work)
    parts = [
        reshape_along(ctx, ctx.emit("Gather", wide, ctx.const(i, np.int64), axis=1), 0, 5)
        for i in range(5)
    ]
    scaled = [ctx.emit("Mul", each, ctx.const(scale, work)) for each in parts[1:]]
    left, top, right, bottom = (
        replace(each, type=TensorType((*ctx.type(rois).shape[:1], 1, 1, 1, 1), work))
        for each in scaled
    )
    down = _Samples.of(ctx, (top, bottom), rows, ratio, shape[2], 1)
    across = _Samples.of(ctx, (left, right), columns, ratio, shape[3], 3)
    found = sample(
        ctx,
        flatten_pixels(ctx, as_dtype(ctx, x, work), shape),
        cast(ctx, parts[0], np.float64),
        [down.position, across.position],
        5,
        [length_as_float64(ctx, length) for length in shape[2:]],
        LINEAR,
        work,
    )
    near = unsqueeze(ctx, ctx.emit("And", down.near, across.near), [5])
    real = unsqueeze(ctx, ctx.emit("And", down.real, across.real), [5])
    found = ctx.emit("Where", near, found, ctx.const(0, work))
    found = ctx.emit("Where", real, found, ctx.const(-np.inf, work))
    most = emit_reduce(ctx, "ReduceMax", found, [2, 4], False)
    most = ctx.emit("Transpose", most, perm=[0, 3, 1, 2])
    return most if work == type_.dtype else cast(ctx, most, type_.dtype)


@OPS.exports("vision.roi_pool")
def export_roi_pool(
    ctx: ExportContext,
    x: Value,
    rois: Value,
    *,
    pooled_size: tuple[Dim, ...],
    spatial_scale: float,
) -> Value:
    return ctx.emit(
        "MaxRoiPool",
        x,
        rois,
        pooled_shape=require_fixed(pooled_size, "pooled_size"),
        spatial_scale=spatial_scale,
    )


@OPS.imports("MaxRoiPool", since=(1, 22))
def import_max_roi_pool(
    ctx: ImportContext,
    x: Expr,
    rois: Expr,
    *,
    pooled_shape: tuple[int, ...],
    spatial_scale: float = 1.0,
) -> Expr:
    return relay.vision.roi_pool(x, rois, pooled_size=pooled_shape, spatial_scale=spatial_scale)


@OPS.exports("serde.roi_align", takes=Takes(half_pixel=False))
@OPS.exports("serde.roi_align", since=16)
def export_serde_roi_align(
    ctx: ExportContext, x: Value, rois: Value, images: Value, *, roi: AlignedRegions
) -> Value:
    centres = "half_pixel" if roi.half_pixel else "output_half_pixel"
    return ctx.emit(
        "RoiAlign",
        x,
        rois,
        as_dtype(ctx, images, "int64"),
        coordinate_transformation_mode=centres if ctx.version >= 16 else None,
        mode=roi.mode,
        output_height=roi.pooled_size[0],
        output_width=roi.pooled_size[1],
        sampling_ratio=max(roi.sample_ratio, 0),
        spatial_scale=roi.spatial_scale,
    )


@dataclass(frozen=True, kw_only=True)
class RoiAlignAttributes:
    """Attributes that the versions of RoiAlign share."""

    mode: Literal["avg", "max"] = "avg"
    output_height: int = 1
    output_width: int = 1
    sampling_ratio: int = 0
    spatial_scale: float = 1.0


@OPS.imports("RoiAlign", since=(16, 22))
def import_roi_align(
    ctx: ImportContext,
    x: Expr,
    rois: Expr,
    batch_indices: Expr,
    *,
    coordinate_transformation_mode: Literal["half_pixel", "output_half_pixel"] = "half_pixel",
    align: RoiAlignAttributes,
) -> Expr:
    return call(
        "serde.roi_align",
        x,
        rois,
        batch_indices,
        pooled_size=(align.output_height, align.output_width),
        spatial_scale=align.spatial_scale,
        sample_ratio=align.sampling_ratio,
        mode=align.mode,
        half_pixel=coordinate_transformation_mode == "half_pixel",
    )


@OPS.imports("RoiAlign", since=10)
def import_roi_align_v10(
    ctx: ImportContext, x: Expr, rois: Expr, batch_indices: Expr, *, align: RoiAlignAttributes
) -> Expr:
    mode: Final = "output_half_pixel"
    return import_roi_align(
        ctx, x, rois, batch_indices, coordinate_transformation_mode=mode, align=align
    )
