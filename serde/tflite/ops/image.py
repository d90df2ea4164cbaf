"""Images in other sizes; channels come last."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.tflite.import_context import ImportContext
from serde.tflite.ops.table import OPS


def _resized(
    ctx: ImportContext, x: Expr, size: Expr, method: str, corners: bool, centers: bool
) -> Expr:
    if corners and centers:
        raise Unsupported("align_corners and half_pixel_centers, of which one holds")
    mode = "align_corners" if corners else "half_pixel" if centers else "asymmetric"
    rounding = "" if method == "linear" else "round" if corners else "floor"
    if method == "nearest_neighbor" and centers:
        mode = "tf_half_pixel_for_nn" if False else "half_pixel"
        rounding = "round_prefer_ceil"
    return relay.image.resize2d(
        x,
        ctx.ints(size),
        layout="NHWC",
        method=method,
        coordinate_transformation_mode=mode,
        rounding_method=rounding,
    )


@OPS.imports("RESIZE_BILINEAR")
def import_resize_bilinear(
    ctx: ImportContext,
    x: Expr,
    size: Expr,
    *,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
) -> Expr:
    return _resized(ctx, x, size, "linear", align_corners, half_pixel_centers)


@OPS.imports("RESIZE_NEAREST_NEIGHBOR")
def import_resize_nearest_neighbor(
    ctx: ImportContext,
    x: Expr,
    size: Expr,
    *,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
) -> Expr:
    return _resized(ctx, x, size, "nearest_neighbor", align_corners, half_pixel_centers)
