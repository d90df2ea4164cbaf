"""Resampling of images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any as AnyValue
from typing import Final

import numpy as np

from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.conv.windows import SPATIAL, fixed
from serde.onnx.ops.elementwise.convert import cast, chosen, widened
from serde.onnx.ops.shape.layout import arranged
from serde.onnx.ops.shape.reshape import integers, require_short
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Any, Dim, product
from serde.relay.op.image.interpolation import Interpolation
from serde.weights import Array

METHODS = {
    "nearest_neighbor": "nearest",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "cubic": "cubic",
    "bicubic": "cubic",
}

ROUNDING = {
    "floor": "floor",
    "ceil": "ceil",
    "round": "round_prefer_ceil",
    "round_prefer_floor": "round_prefer_floor",
    "round_prefer_ceil": "round_prefer_ceil",
}
"""Relay's ``round`` takes a half away from zero; coordinates that matter are not negative."""


def resize(
    ctx: ExportContext,
    x: Value,
    *,
    sizes: Value | None = None,
    scales: Value | None = None,
    **attrs: AnyValue,
) -> Value:
    """Emit Resize; up to 12 its region and scales cannot be left out, only be empty."""
    empty = ctx.const(np.zeros(0, np.float32)) if ctx.version < 13 else None
    if scales is not None:
        return ctx.emit("Resize", x, empty, scales, **attrs)
    return ctx.emit("Resize", x, empty, empty, sizes, **attrs)


DROPPED: Final = "tf_half_pixel_for_nn"
"""Coordinates that ONNX has at versions 11 and 12 alone: half a pixel further than half_pixel."""

SHIFTED: Final = MappingProxyType(
    {("nearest", "floor"): "round_prefer_ceil", ("nearest", "round_prefer_floor"): "ceil"}
)
"""For a method and a rounding the rounding that half a pixel before finds the same by."""


def coordinates_of(version: int, mode: str, method: str, rounding: str) -> tuple[str, str]:
    """Return coordinates and rounding as a version of ONNX has them.

    Raises:
        Unsupported: It has none that mean the same.
    """
    if mode != DROPPED or version < 13:
        return mode, rounding
    if (method, rounding) not in SHIFTED:
        what = f"coordinates of {DROPPED} for {method} {rounding}".rstrip()
        raise Unsupported(f"{what}, which ONNX dropped at version 13", hint="use opset 12")
    return "half_pixel", SHIFTED[method, rounding]


def _nearest(coordinates: str, rounding: str) -> str:
    """Return how the nearest element is found; where Relay leaves it open, by the coordinates."""
    return ROUNDING[rounding or ("round" if coordinates == "align_corners" else "floor")]


def _resize(ndim: int) -> Callable[..., Value]:
    def export_resize(
        ctx: ExportContext,
        x: Value,
        *,
        size: tuple[Dim, ...] | None,
        roi: tuple[float, ...] | None,
        layout: str,
        method: str,
        coordinate_transformation_mode: str,
        rounding_method: str,
        cubic_alpha: float,
        cubic_exclude: int,
        extrapolation_value: float,
        out_dtype: np.dtype[AnyValue] | None,
    ) -> Value:
        """Runtimes resize one axis, or three by cubics, as the axes of images only.

        ONNX dropped one mode of coordinates, and takes a region for all axes alike: with
        these the neighbours are looked up.
        """
        shape = ctx.result_type().shape
        axes = [layout.index(letter) for letter in SPATIAL[ndim]]
        ends = [dim for axis in axes for dim in (ctx.type(x).shape[axis], shape[axis])]
        is_fixed = all(isinstance(dim, int) for dim in ends)
        dropped = coordinate_transformation_mode == DROPPED and (is_fixed or ndim == 1)
        if coordinate_transformation_mode == "tf_crop_and_resize" or dropped:
            how_read = Interpolation(
                method,
                coordinate_transformation_mode,
                rounding_method,
                cubic_alpha,
                bool(cubic_exclude),
            )
            return _looked_up(ctx, x, how_read, layout, ndim, roi, extrapolation_value)
        mode = METHODS[method]
        coordinates, rounding = coordinates_of(
            ctx.version,
            coordinate_transformation_mode,
            mode,
            _nearest(coordinate_transformation_mode, rounding_method) if mode == "nearest" else "",
        )
        wanted = "NC" + SPATIAL[ndim]
        lengths = [ctx.type(x).shape[layout.index(letter)] for letter in wanted]
        sizes = [shape[layout.index(letter)] for letter in wanted]
        image = arranged(ctx, widened(ctx, x, ctx.result_type().dtype), layout, wanted)
        how: dict[str, AnyValue] = {
            "mode": mode,
            "coordinate_transformation_mode": coordinates,
            "nearest_mode": rounding or None,
            "cubic_coeff_a": cubic_alpha if mode == "cubic" else None,
            "exclude_outside": cubic_exclude if mode == "cubic" else None,
        }
        # ONNX Runtime moves a transposition past a cubic Resize, which it then refuses.
        moved = mode == "cubic" and (ndim == 3 or ctx.maker(image) == "Transpose")
        if ndim == 1 or moved:
            result = _axis_by_axis(ctx, image, lengths, sizes, how)
        else:
            result = resize(ctx, image, sizes=ctx.shape(sizes), **how)
        return arranged(ctx, result, wanted, layout)

    return export_resize


for _ndim in SPATIAL:
    OPS.exports(f"image.resize{_ndim}d")(_resize(_ndim))


def _looked_up(
    ctx: ExportContext,
    x: Value,
    how: Interpolation,
    layout: str,
    ndim: int,
    roi: tuple[float, ...] | None,
    outside: float,
) -> Value:
    """Gather the neighbours along each axis and weigh them; lengths are fixed."""
    given, result = ctx.type(x), ctx.result_type()
    region = roi or (0.0,) * (2 * ndim)
    exact = how.method == "nearest_neighbor" or given.dtype == "float64"
    work = given.dtype if exact else "float32"
    found = widened(ctx, x, work)
    beyond: Array = np.zeros((1,) * given.rank, np.bool_)
    for i, letter in enumerate(SPATIAL[ndim]):
        axis = layout.index(letter)
        shape = [-1 if each == axis else 1 for each in range(given.rank)]
        (length,), (size,) = ctx.static_lengths(x, [axis]), fixed([result.shape[axis]], "size")
        require_short(size, f"size {size}")
        places = how.places(length, size, region[i], region[ndim + i])
        beyond = beyond | ((places < 0) | (places > length - 1)).reshape(shape)
        parts = []
        for index, weight in how.taps(places, length):
            part = ctx.emit("Gather", found, ctx.const(index, np.int64), axis=axis)
            if weight is not None:
                part = ctx.emit("Mul", part, ctx.const(weight.reshape(shape), work))
            parts.append(part)
        found = parts[0]
        for part in parts[1:]:
            found = ctx.emit("Add", found, part)
    if how.mode == "tf_crop_and_resize" and beyond.any():
        found = chosen(ctx, ctx.const(beyond), ctx.const(outside, work), found, work)
    return found if work == result.dtype else cast(ctx, found, result.dtype)


def _axis_by_axis(
    ctx: ExportContext,
    x: Value,
    lengths: Sequence[Dim],
    sizes: Sequence[Dim],
    how: Mapping[str, AnyValue],
) -> Value:
    """Resize the spatial axes in turn, each as the width of images one pixel high."""
    shape = list(lengths)
    for axis in range(2, len(shape)):
        rows = product(shape[1:axis])
        columns = product(shape[axis + 1 :])
        if columns == 1:
            folded = [shape[0], rows, 1, shape[axis]]
            grown: list[Dim] = [shape[0], rows, 1, sizes[axis]]
        else:
            folded = [shape[0], rows, shape[axis], columns]
            grown = [shape[0], rows, sizes[axis], columns]
        x = ctx.emit("Reshape", x, ctx.shape(folded))
        x = resize(ctx, x, sizes=ctx.shape(grown), **how)
        shape[axis] = sizes[axis]
    return ctx.emit("Reshape", x, ctx.shape(shape))


@OPS.exports("dyn.image.resize2d")
def export_dyn_resize2d(
    ctx: ExportContext,
    x: Value,
    size: Value,
    roi: Value,
    *,
    layout: str,
    method: str,
    coordinate_transformation_mode: str,
    rounding_method: str,
    cubic_alpha: float,
    cubic_exclude: int,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    if coordinate_transformation_mode == "tf_crop_and_resize":
        raise Unsupported(f"coordinate_transformation_mode={coordinate_transformation_mode!r}")
    mode = METHODS[method]
    coordinates, rounding = coordinates_of(
        ctx.version,
        coordinate_transformation_mode,
        mode,
        _nearest(coordinate_transformation_mode, rounding_method) if mode == "nearest" else "",
    )
    image = arranged(ctx, widened(ctx, x, ctx.result_type().dtype), layout, "NCHW")
    kept = ctx.emit("Slice", ctx.emit("Shape", image), ctx.ints([0]), ctx.ints([2]))
    result = resize(
        ctx,
        image,
        sizes=ctx.emit("Concat", kept, integers(ctx, size), axis=0),
        mode=mode,
        coordinate_transformation_mode=coordinates,
        nearest_mode=rounding or None,
        cubic_coeff_a=cubic_alpha if mode == "cubic" else None,
        exclude_outside=cubic_exclude if mode == "cubic" else None,
    )
    return arranged(ctx, result, "NCHW", layout)


def _scaled(
    ctx: ExportContext, x: Value, scales: Value, layout: str, method: str, coordinates: str
) -> Value:
    """Resize to rounded lengths, which ONNX would cut off; the scales are a vector of float64."""
    wanted = "NC" + SPATIAL[len(layout) - 2]
    image = arranged(ctx, x, layout, wanted)
    lengths = ctx.emit("Shape", image)
    kept = ctx.emit("Slice", lengths, ctx.ints([0]), ctx.ints([2]))
    space = ctx.emit("Slice", lengths, ctx.ints([2]), ctx.ints([len(wanted)]))
    grown = ctx.emit("Mul", cast(ctx, space, np.float64), scales)
    rounded = ctx.emit("Floor", ctx.emit("Add", grown, ctx.const(0.5, np.float64)))
    sizes = ctx.emit("Concat", kept, cast(ctx, rounded, np.int64), axis=0)
    result = resize(ctx, image, sizes=sizes, **_coordinates(method, coordinates))
    return arranged(ctx, result, wanted, layout)


def _coordinates(method: str, coordinates: str) -> dict[str, AnyValue]:
    mode = METHODS[method]
    return {
        "mode": mode,
        "coordinate_transformation_mode": coordinates,
        "nearest_mode": _nearest(coordinates, "") if mode == "nearest" else None,
        "cubic_coeff_a": -0.5 if mode == "cubic" else None,
    }


def _upsampled(
    ctx: ExportContext,
    x: Value,
    scales: Sequence[float],
    layout: str,
    method: str,
    coordinates: str,
) -> Value:
    """Resize by whole scales, or to lengths that are known or computed from the scales."""
    wanted = "NC" + SPATIAL[len(scales)]
    shape = ctx.result_type().shape
    sizes = [shape[layout.index(letter)] for letter in wanted]
    whole = all(scale == int(scale) for scale in scales)
    if not whole and any(isinstance(size, Any) for size in sizes[2:]):
        return _scaled(ctx, x, ctx.const(scales, np.float64), layout, method, coordinates)
    how = _coordinates(method, coordinates)
    image = arranged(ctx, x, layout, wanted)
    if whole:
        result = resize(ctx, image, scales=ctx.const([1.0, 1.0, *scales], np.float32), **how)
    else:
        result = resize(ctx, image, sizes=ctx.shape(sizes), **how)
    return arranged(ctx, result, wanted, layout)


@OPS.exports("nn.upsampling")
def export_upsampling(
    ctx: ExportContext,
    x: Value,
    *,
    scale_h: float,
    scale_w: float,
    layout: str,
    method: str,
    align_corners: bool,
) -> Value:
    coordinates = "align_corners" if align_corners else "asymmetric"
    return _upsampled(ctx, x, (scale_h, scale_w), layout, method, coordinates)


@OPS.exports("nn.upsampling3d")
def export_upsampling3d(
    ctx: ExportContext,
    x: Value,
    *,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str,
    method: str,
    coordinate_transformation_mode: str,
) -> Value:
    scales = (scale_d, scale_h, scale_w)
    return _upsampled(ctx, x, scales, layout, method, coordinate_transformation_mode)


def _joined(ctx: ExportContext, scales: Sequence[Value]) -> Value:
    """Return scalars as one vector of float64."""
    parts = [ctx.emit("Reshape", cast(ctx, scale, np.float64), ctx.ints([1])) for scale in scales]
    return ctx.emit("Concat", *parts, axis=0)


@OPS.exports("dyn.nn.upsampling")
def export_dyn_upsampling(
    ctx: ExportContext,
    x: Value,
    scale_h: Value,
    scale_w: Value,
    *,
    layout: str,
    method: str,
    align_corners: bool,
) -> Value:
    coordinates = "align_corners" if align_corners else "asymmetric"
    return _scaled(ctx, x, _joined(ctx, (scale_h, scale_w)), layout, method, coordinates)


@OPS.exports("dyn.nn.upsampling3d")
def export_dyn_upsampling3d(
    ctx: ExportContext,
    x: Value,
    scale_d: Value,
    scale_h: Value,
    scale_w: Value,
    *,
    layout: str,
    method: str,
    coordinate_transformation_mode: str,
) -> Value:
    scales = _joined(ctx, (scale_d, scale_h, scale_w))
    return _scaled(ctx, x, scales, layout, method, coordinate_transformation_mode)
