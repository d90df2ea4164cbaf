"""Scaling by factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any as AnyValue

import serde.relay as relay
from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.mlprogram.import_context import ImportContext
from serde.coreml.mlprogram.ops.image.resize import last_lengths, resize_last_axes
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.mlprogram.type_domains import HALVES
from serde.coreml.value import Value
from serde.errors import Unsupported
from serde.relay.ir.expr import Call, Expr, tensor_type
from serde.relay.op.image.upsampling import Upsampling
from serde.walk.takes import Takes


def _upsample(ctx: ImportContext, x: Expr, scales: Sequence[float], method: str, mode: str) -> Expr:
    """Return an image scaled; open lengths by whole factors only."""
    rank = ctx.type(x).rank
    last = ctx.type(x).shape[rank - 2 :]
    if all(isinstance(length, int) for length in last):
        size = [
            math.floor(n * scale) for n, scale in zip(last_lengths(ctx, x, 2), scales, strict=True)
        ]
        return resize_last_axes(ctx, x, size, method, mode)
    if any(scale != int(scale) for scale in scales):
        raise Unsupported(f"open lengths of {ctx.type(x)!r} scaled by {list(scales)} ({mode})")
    if rank != 4 or mode == "half_pixel":
        how: dict[str, AnyValue] = {"method": "linear", "mode": mode}
        if method == "nearest_neighbor":
            how = {"method": "nearest", "mode": mode, "rounding": "floor"}
        ratios, axes = tuple(map(float, scales)), (rank - 2, rank - 1)
        return relay.serde.resize(x, None, None, None, scale=ratios, axes=axes, **how)
    name = "nearest_neighbor" if method == "nearest_neighbor" else "bilinear"
    align = mode == "align_corners"
    height, width = scales
    return relay.nn.upsampling(x, height, width, method=name, align_corners=align)


@OPS.imports("upsample_nearest_neighbor")
def import_upsample_nearest_neighbor(
    ctx: ImportContext, x: Expr, *, scale_factor_height: float = 1, scale_factor_width: float = 1
) -> Expr:
    """Lengths are rounded down, and the places are those of the ratio of lengths."""
    scales = (scale_factor_height, scale_factor_width)
    return _upsample(ctx, x, scales, "nearest_neighbor", "asymmetric")


@OPS.imports("upsample_bilinear", since=(1, 16))
def import_upsample_bilinear(
    ctx: ImportContext,
    x: Expr,
    *,
    scale_factor_height: float = 1,
    scale_factor_width: float = 1,
    align_corners: bool = True,
    half_pixel_centers: bool | None = None,
) -> Expr:
    centres = not align_corners if half_pixel_centers is None else half_pixel_centers
    if align_corners and centres:
        raise Unsupported("corners aligned and centres of half a pixel at once")
    mode = "align_corners" if align_corners else "half_pixel" if centres else "asymmetric"
    return _upsample(ctx, x, (scale_factor_height, scale_factor_width), "linear", mode)


def _open_and_whole(node: Call) -> bool:
    """Whether open lengths are scaled by whole factors, which MIL does without knowing them."""
    attrs = node.attrs
    factors = (attrs["scale_h"], attrs["scale_w"])
    fixed = all(isinstance(length, int) for length in tensor_type(node.args[0]).shape[2:])
    whole = all(factor == int(factor) for factor in factors)
    plain = attrs["method"] == "nearest_neighbor" and not attrs["align_corners"]
    linear = attrs["method"] == "bilinear" and attrs["align_corners"]
    return not fixed and whole and (plain or linear)


@OPS.exports("nn.upsampling", takes=Takes(data=HALVES), when=_open_and_whole)
def export_upsampling(
    ctx: ExportContext, data: Value, *, scale_h: float, scale_w: float, upsampling: Upsampling
) -> Value:
    factors = {
        "scale_factor_height": ctx.const(int(scale_h), "int32"),
        "scale_factor_width": ctx.const(int(scale_w), "int32"),
    }
    if upsampling.method == "nearest_neighbor":
        return ctx.emit("upsample_nearest_neighbor", x=data, **factors)
    return ctx.emit("upsample_bilinear", x=data, align_corners=True, **factors)
