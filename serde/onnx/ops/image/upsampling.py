"""Upsampling by factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.conv.windows import SPATIAL
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.image.interpolation import emit_resize
from serde.onnx.ops.image.resize import METHODS, ResizeAttributes, build_resize, choose_rounding
from serde.onnx.ops.shape.layout import to_layout
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Any
from serde.relay.ir.expr import Expr
from serde.relay.op.image.upsampling import Upsampling, Upsampling3d

UpsampleMode = Literal["nearest", "linear", "bilinear"]


def _const_scales(values: Sequence[AnyValue]) -> Expr:
    return relay.const(np.array(values, np.float32))


def _resize_to_scales(
    ctx: ExportContext, x: Value, scales: Value, upsampling: Upsampling | Upsampling3d
) -> Value:
    """Resize to ``round(length * scale)``, which ONNX would cut off; scales are float64."""
    layout = upsampling.layout
    wanted = "NC" + SPATIAL[len(layout) - 2]
    image = to_layout(ctx, x, layout, wanted)
    lengths = ctx.emit("Shape", image)
    kept = ctx.emit("Slice", lengths, ctx.ints([0]), ctx.ints([2]))
    space = ctx.emit("Slice", lengths, ctx.ints([2]), ctx.ints([len(wanted)]))
    grown = ctx.emit("Mul", cast(ctx, space, np.float64), scales)
    rounded = ctx.emit("Floor", ctx.emit("Add", grown, ctx.const(0.5, np.float64)))
    sizes = ctx.emit("Concat", kept, cast(ctx, rounded, np.int64), axis=0)
    result = emit_resize(ctx, image, sizes=sizes, **_resize_attributes(upsampling))
    return to_layout(ctx, result, wanted, layout)


def _resize_attributes(upsampling: Upsampling | Upsampling3d) -> dict[str, AnyValue]:
    mode, coordinates = METHODS[upsampling.method], upsampling.interpolation.mode
    return {
        "mode": mode,
        "coordinate_transformation_mode": coordinates,
        "nearest_mode": choose_rounding(coordinates, "") if mode == "nearest" else None,
        "cubic_coeff_a": -0.5 if mode == "cubic" else None,
    }


def _emit_upsampling(
    ctx: ExportContext, x: Value, scales: Sequence[float], upsampling: Upsampling | Upsampling3d
) -> Value:
    """Resize by whole scales, or to lengths that are known or computed from the scales."""
    layout = upsampling.layout
    wanted = "NC" + SPATIAL[len(scales)]
    shape = ctx.result_type().shape
    sizes = [shape[layout.index(letter)] for letter in wanted]
    whole = all(scale == int(scale) for scale in scales)
    if not whole and any(isinstance(size, Any) for size in sizes[2:]):
        return _resize_to_scales(ctx, x, ctx.const(scales, np.float64), upsampling)
    how = _resize_attributes(upsampling)
    image = to_layout(ctx, x, layout, wanted)
    if whole:
        result = emit_resize(ctx, image, scales=ctx.const([1.0, 1.0, *scales], np.float32), **how)
    else:
        result = emit_resize(ctx, image, sizes=ctx.shape(sizes), **how)
    return to_layout(ctx, result, wanted, layout)


@OPS.exports("nn.upsampling")
def export_upsampling(
    ctx: ExportContext, x: Value, *, scale_h: float, scale_w: float, upsampling: Upsampling
) -> Value:
    return _emit_upsampling(ctx, x, (scale_h, scale_w), upsampling)


@OPS.imports("Upsample", since=(9, 10))
def import_upsample(
    ctx: ImportContext, x: Expr, scales: Expr, *, mode: UpsampleMode = "nearest"
) -> Expr:
    resize = ResizeAttributes(
        coordinate_transformation_mode="asymmetric",
        mode="nearest" if mode == "nearest" else "linear",
        nearest_mode="floor",
    )
    return build_resize(ctx, x, scales, resize=resize)


@OPS.imports("Upsample", since=7)
def import_upsample_v7(
    ctx: ImportContext, x: Expr, *, scales: tuple[float, ...], mode: UpsampleMode = "nearest"
) -> Expr:
    return import_upsample(ctx, x, _const_scales(scales), mode=mode)


@OPS.imports("Upsample", since=1)
def import_upsample_v1(
    ctx: ImportContext,
    x: Expr,
    *,
    height_scale: float,
    width_scale: float,
    mode: UpsampleMode = "nearest",
) -> Expr:
    return import_upsample(ctx, x, _const_scales([1.0, 1.0, height_scale, width_scale]), mode=mode)


@OPS.exports("nn.upsampling3d")
def export_upsampling3d(
    ctx: ExportContext,
    x: Value,
    *,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    upsampling: Upsampling3d,
) -> Value:
    return _emit_upsampling(ctx, x, (scale_d, scale_h, scale_w), upsampling)


def _concat_scalars(ctx: ExportContext, scales: Sequence[Value]) -> Value:
    """Return scalars as one vector of float64."""
    parts = [ctx.emit("Reshape", cast(ctx, scale, np.float64), ctx.ints([1])) for scale in scales]
    return ctx.emit("Concat", *parts, axis=0)


@OPS.exports("dyn.nn.upsampling")
def export_dyn_upsampling(
    ctx: ExportContext, x: Value, scale_h: Value, scale_w: Value, *, upsampling: Upsampling
) -> Value:
    return _resize_to_scales(ctx, x, _concat_scalars(ctx, (scale_h, scale_w)), upsampling)


@OPS.exports("dyn.nn.upsampling3d")
def export_dyn_upsampling3d(
    ctx: ExportContext,
    x: Value,
    scale_d: Value,
    scale_h: Value,
    scale_w: Value,
    *,
    upsampling: Upsampling3d,
) -> Value:
    scales = _concat_scalars(ctx, (scale_d, scale_h, scale_w))
    return _resize_to_scales(ctx, x, scales, upsampling)
