"""Images in other sizes; channels come last."""

from __future__ import annotations

from functools import partial

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr
from serde.relay.lowering.regions import reads_between
from serde.tflite.ops.table import OPS, Export, Import, Value


def _import_resize(
    ctx: Import,
    x: Expr,
    size: Expr,
    *,
    method: str,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
) -> Expr:
    if align_corners and half_pixel_centers:
        raise Unsupported("align_corners and half_pixel_centers, of which one holds")
    mode, rounding = "asymmetric", "floor"
    if align_corners:
        mode, rounding = "align_corners", "round"
    elif half_pixel_centers:
        mode, rounding = "half_pixel", "round_prefer_ceil"
    return relay.image.resize2d(
        x,
        ctx.ints(size),
        layout="NHWC",
        method=method,
        coordinate_transformation_mode=mode,
        rounding_method="" if method == "linear" else rounding,
    )


_METHODS = {"linear": "RESIZE_BILINEAR", "nearest_neighbor": "RESIZE_NEAREST_NEIGHBOR"}
OPS.imports("RESIZE_BILINEAR")(partial(_import_resize, method="linear"))
OPS.imports("RESIZE_NEAREST_NEIGHBOR")(partial(_import_resize, method="nearest_neighbor"))
_ROUNDINGS = {
    ("align_corners", "round"), ("asymmetric", "floor"), ("half_pixel", "round_prefer_ceil"),
}  # fmt: skip


def _is_written(node: Call) -> bool:
    """Whether sampling points are those that TFLite has."""
    attrs = node.attrs
    mode, rounding = attrs["coordinate_transformation_mode"], attrs["rounding_method"]
    known = mode in ("align_corners", "asymmetric", "half_pixel")
    if attrs["method"] == "nearest_neighbor":
        known = (mode, rounding) in _ROUNDINGS
    return attrs["layout"] == "NHWC" and attrs["method"] in _METHODS and known


@OPS.exports(
    "image.resize2d",
    when=_is_written,
    ignored=(
        "size", "roi", "layout", "rounding_method", "cubic_alpha", "cubic_exclude",
        "extrapolation_value", "out_dtype",
    ),
)  # fmt: skip
def export_resize2d(
    ctx: Export, data: Value, *, method: str, coordinate_transformation_mode: str
) -> Value:
    size = ctx.shape(ctx.result_type().shape[1:3])
    mode = coordinate_transformation_mode
    options = {"align_corners": mode == "align_corners", "half_pixel_centers": mode == "half_pixel"}
    return ctx.emit(_METHODS[method], data, size, **options)


def _repeats(node: Call) -> bool:
    """Whether each pixel is repeated a whole number of times."""
    attrs, scales = node.attrs, (node.attrs["scale_h"], node.attrs["scale_w"])
    known = attrs["layout"] == "NHWC" and attrs["method"] == "nearest_neighbor"
    return known and all(each >= 1 and each == int(each) for each in scales)


@OPS.exports("nn.upsampling", when=_repeats, ignored=("scale_h", "scale_w", "layout", "method"))
def export_upsampling(ctx: Export, data: Value, *, align_corners: bool) -> Value:
    size = ctx.shape(ctx.result_type().shape[1:3])
    options = {"align_corners": False, "half_pixel_centers": False}
    return ctx.emit("RESIZE_NEAREST_NEIGHBOR", data, size, **options)


# Positions in float32: TFLite computes in nothing wider.
for _name, _rule in reads_between("float32", "int32").items():
    OPS.expands(_name)(_rule)
