"""Resampling of images."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any as AnyValue

import numpy as np

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.conv import pads
from serde.onnx.ops.elementwise import cast, widened
from serde.onnx.ops.shape import arranged, integers, unsqueeze
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim
from serde.relay.op.image.morphology import lowest
from serde.relay.shapes import is_float
from serde.weights import numpy_dtype

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
    ctx: Ctx,
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


@OPS.exports("nn.upsampling")
def export_upsampling(
    ctx: Ctx,
    x: Value,
    *,
    scale_h: float,
    scale_w: float,
    layout: str,
    method: str,
    align_corners: bool,
) -> Value:
    moved = arranged(ctx, x, layout, "NCHW")
    mode = METHODS[method]
    coordinates = "align_corners" if align_corners else "asymmetric"
    scales = ctx.const([1.0, 1.0, scale_h, scale_w], np.float32)
    result = resize(
        ctx,
        moved,
        scales=scales,
        mode=mode,
        coordinate_transformation_mode=coordinates,
        nearest_mode=_nearest(coordinates, "") if mode == "nearest" else None,
        cubic_coeff_a=-0.5 if mode == "cubic" else None,
    )
    return arranged(ctx, result, "NCHW", layout)


def _nearest(coordinates: str, rounding: str) -> str:
    """Return how the nearest element is found; where Relay leaves it open, by the coordinates."""
    return ROUNDING[rounding or ("round" if coordinates == "align_corners" else "floor")]


@OPS.exports("image.resize2d")
def export_resize2d(
    ctx: Ctx,
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
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    if coordinate_transformation_mode in ("tf_crop_and_resize", "tf_half_pixel_for_nn"):
        raise Unsupported(f"coordinate_transformation_mode={coordinate_transformation_mode!r}")
    mode = METHODS[method]
    shape = ctx.result_type().shape
    order = [layout.index(letter) for letter in "NCHW"]
    wide = widened(ctx, x, ctx.result_type().dtype)
    result = resize(
        ctx,
        arranged(ctx, wide, layout, "NCHW"),
        sizes=ctx.shape([shape[axis] for axis in order]),
        mode=mode,
        coordinate_transformation_mode=coordinate_transformation_mode,
        nearest_mode=_nearest(coordinate_transformation_mode, rounding_method)
        if mode == "nearest"
        else None,
        cubic_coeff_a=cubic_alpha if mode == "cubic" else None,
        exclude_outside=cubic_exclude if mode == "cubic" else None,
    )
    return arranged(ctx, result, "NCHW", layout)


@OPS.exports("image.dilation2d")
def export_dilation2d(
    ctx: Ctx,
    x: Value,
    weight: Value,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilations: tuple[int, ...],
    data_layout: str,
    kernel_layout: str,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    """The greatest of the sums, one slice of the image for each place of the window."""
    dtype = ctx.result_type().dtype
    kernel = ctx.static_lengths(weight, [kernel_layout.index(letter) for letter in "HW"])
    counts = [ctx.result_type().shape[data_layout.index(letter)] for letter in "HW"]
    image = arranged(ctx, x, data_layout, "NCHW")
    sides = pads(padding, 2)
    if any(sides):
        least = ctx.const(lowest(numpy_dtype(ctx.type(x).dtype)))
        image = ctx.emit("Pad", image, ctx.ints([0, 0, *sides[:2], 0, 0, *sides[2:]]), least)
    window = arranged(ctx, weight, kernel_layout, "HWI")
    if ctx.type(x).dtype != dtype:
        image, window = cast(ctx, image, dtype), cast(ctx, window, dtype)
    sums = []
    for place in np.ndindex(*kernel):
        starts = [at * step for at, step in zip(place, dilations, strict=True)]
        ends = [s + (n - 1) * by + 1 for s, n, by in zip(starts, counts, strides, strict=True)]
        region = ctx.emit(
            "Slice", image, ctx.ints(starts), ctx.shape(ends), ctx.ints([2, 3]), ctx.ints(strides)
        )
        element = ctx.emit("GatherND", window, ctx.ints(place))
        sums.append(ctx.emit("Add", region, unsqueeze(ctx, element, [1, 2])))
    if ctx.version >= 12 or is_float(dtype):
        return arranged(ctx, ctx.emit("Max", *sums), "NCHW", data_layout)
    return arranged(ctx, reduce(partial(_greater, ctx), sums), "NCHW", data_layout)


def _greater(ctx: Ctx, a: Value, b: Value) -> Value:
    """Before 12, Max takes no integers."""
    return ctx.emit("Where", ctx.emit("Greater", a, b), a, b)


@OPS.exports("dyn.image.resize2d")
def export_dyn_resize2d(
    ctx: Ctx,
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
    if coordinate_transformation_mode in ("tf_crop_and_resize", "tf_half_pixel_for_nn"):
        raise Unsupported(f"coordinate_transformation_mode={coordinate_transformation_mode!r}")
    mode = METHODS[method]
    image = arranged(ctx, widened(ctx, x, ctx.result_type().dtype), layout, "NCHW")
    kept = ctx.emit("Slice", ctx.emit("Shape", image), ctx.ints([0]), ctx.ints([2]))
    result = resize(
        ctx,
        image,
        sizes=ctx.emit("Concat", kept, integers(ctx, size), axis=0),
        mode=mode,
        coordinate_transformation_mode=coordinate_transformation_mode,
        nearest_mode=_nearest(coordinate_transformation_mode, rounding_method)
        if mode == "nearest"
        else None,
        cubic_coeff_a=cubic_alpha if mode == "cubic" else None,
        exclude_outside=cubic_exclude if mode == "cubic" else None,
    )
    return arranged(ctx, result, "NCHW", layout)


def _scaled(
    ctx: Ctx, x: Value, scales: Sequence[Value], layout: str, method: str, coordinates: str
) -> Value:
    """Resize to rounded lengths, which ONNX would cut off."""
    wanted = "NC" + {2: "HW", 3: "DHW"}[len(scales)]
    image = arranged(ctx, x, layout, wanted)
    lengths = ctx.emit("Shape", image)
    kept = ctx.emit("Slice", lengths, ctx.ints([0]), ctx.ints([2]))
    space = ctx.emit("Slice", lengths, ctx.ints([2]), ctx.ints([len(wanted)]))
    parts = [ctx.emit("Reshape", cast(ctx, scale, np.float64), ctx.ints([1])) for scale in scales]
    grown = ctx.emit("Mul", cast(ctx, space, np.float64), ctx.emit("Concat", *parts, axis=0))
    rounded = ctx.emit("Floor", ctx.emit("Add", grown, ctx.const(0.5, np.float64)))
    mode = METHODS[method]
    result = resize(
        ctx,
        image,
        sizes=ctx.emit("Concat", kept, cast(ctx, rounded, np.int64), axis=0),
        mode=mode,
        coordinate_transformation_mode=coordinates,
        nearest_mode=_nearest(coordinates, "") if mode == "nearest" else None,
        cubic_coeff_a=-0.5 if mode == "cubic" else None,
    )
    return arranged(ctx, result, wanted, layout)


@OPS.exports("dyn.nn.upsampling")
def export_dyn_upsampling(
    ctx: Ctx,
    x: Value,
    scale_h: Value,
    scale_w: Value,
    *,
    layout: str,
    method: str,
    align_corners: bool,
) -> Value:
    coordinates = "align_corners" if align_corners else "asymmetric"
    return _scaled(ctx, x, (scale_h, scale_w), layout, method, coordinates)


@OPS.exports("dyn.nn.upsampling3d")
def export_dyn_upsampling3d(
    ctx: Ctx,
    x: Value,
    scale_d: Value,
    scale_h: Value,
    scale_w: Value,
    *,
    layout: str,
    method: str,
    coordinate_transformation_mode: str,
) -> Value:
    scales = (scale_d, scale_h, scale_w)
    return _scaled(ctx, x, scales, layout, method, coordinate_transformation_mode)
