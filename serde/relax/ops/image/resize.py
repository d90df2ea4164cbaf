"""Images resized to lengths or by factors, in attributes or in operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue, Final

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import Array
from serde.errors import Unsupported
from serde.relax.framework import Framework
from serde.relax.ops.image.interpolation import (
    AxisReading,
    as_float,
    cubic_weights,
    interpolate,
    linear_weights,
    number_of,
    truncate,
)
from serde.relax.ops.table import OPS, Export, Import, Shape, Value
from serde.relay.ir import Dim, Expr
from serde.relay.op.image.resize import ImageResize

_GUARD: Final = 1e-5
"""Distance from a whole number below which floor and ceil take it for that number, as in Relay."""

_MOST_PARTS: Final = 1 << 16
"""Denominator of a factor whose product with a length is computed in integers."""


def _place(
    framework: Framework, mode: str, length: AnyValue, size: AnyValue, ends: Sequence[AnyValue]
) -> Callable[[AnyValue], AnyValue]:
    """Return where in an axis each index of the result lies."""
    tir = framework.tir
    n, m = as_float(framework, length), as_float(framework, size)
    one, two, half = (tir.const(value, "float64") for value in (1.0, 2.0, 0.5))
    start, end = ends

    def half_pixel(x: AnyValue) -> AnyValue:
        return ((two * x + one) * n - m) / (two * m)

    def crop(x: AnyValue) -> AnyValue:
        last = n - one
        middle = half * (start + end) * last
        steps = tir.max(m - one, one)
        return tir.Select(m == one, middle, start * last + x * ((end - start) * last) / steps)

    forms: dict[str, Callable[[AnyValue], AnyValue]] = {
        "align_corners": lambda x: x * (n - one) / tir.max(m - one, one),
        "asymmetric": lambda x: x * n / m,
        "tf_half_pixel_for_nn": lambda x: (two * x + one) * n / (two * m),
        "tf_crop_and_resize": crop,
        "pytorch_half_pixel": lambda x: tir.Select(
            m == one, tir.const(0.0, "float64"), half_pixel(x)
        ),
        "half_pixel": half_pixel,
    }
    return lambda index: forms[mode](as_float(framework, index))


def _rounding(framework: Framework, mode: str, rounding: str) -> Callable[[AnyValue], AnyValue]:
    """Return what rounds a place to an element."""
    tir = framework.tir
    guard, half = tir.const(_GUARD, "float64"), tir.const(0.5, "float64")
    forms: dict[str, Callable[[AnyValue], AnyValue]] = {
        "floor": lambda p: tir.floor(p + guard),
        "ceil": lambda p: tir.ceil(p - guard),
        "round_prefer_floor": lambda p: tir.ceil(p - half),
        "round_prefer_ceil": lambda p: tir.floor(p + half),
        "round": lambda p: tir.floor(p + half),  # Halves below 0 are clipped to 0 anyhow.
    }
    return forms[rounding or ("round" if mode == "align_corners" else "floor")]


def _widen(framework: Framework, image: AnyValue, dtype: str) -> AnyValue:
    """Return an image in the dtype in which it is resized."""
    if str(image.dtype) == dtype:
        return image
    return framework.te.compute(image.shape, lambda *p: image[p].astype(dtype), name="wide")


def resize_axes(
    ctx: Export, data: Value, axes: Sequence[int], sizes: Sequence[AnyValue],
    attrs: Mapping[str, AnyValue], roi: Sequence[float] | Value | None = None, dtype: str = "",
) -> Value:  # fmt: skip
    """Write an image resized along axes, as ``image.resize2d`` has it.

    Args:
        ctx: Where it is written.
        data: The image.
        axes: What is resized.
        sizes: Lengths of these axes then.
        attrs: The method, and how places are counted and rounded.
        roi: Starts and ends of what is read, for ``tf_crop_and_resize``.
        dtype: That of the result, if not of the image.
    """
    framework, given = ctx.framework, ctx.type(data).dtype
    tir, te = framework.tir, framework.te
    method, mode = attrs["method"], attrs["coordinate_transformation_mode"]
    work = given if method == "nearest_neighbor" or given == "float64" else "float32"

    def resize(image: AnyValue, sizes: Sequence[AnyValue], *edges: AnyValue) -> AnyValue:
        result, places = _widen(framework, image, work), []
        for number, (axis, size) in enumerate(zip(axes, sizes, strict=True)):
            ends = _ends(framework, edges[0] if edges else roi, number, len(axes))
            place = _place(framework, mode, image.shape[axis], size, ends)
            where = te.compute((size,), place, name="places")
            places.append((axis, where))
            result = interpolate(framework, result, _reading(framework, axis, where, attrs))

        def finish(*p: AnyValue) -> AnyValue:
            value = result[p]
            if mode == "tf_crop_and_resize":
                zero = tir.const(0.0, "float64")
                fill = number_of(framework, attrs["extrapolation_value"], work)
                for axis, where in places:
                    last = as_float(framework, image.shape[axis] - 1)
                    at = where[p[axis]]
                    value = tir.Select(tir.any(at < zero, at > last), fill, value)
            return truncate(value, work, dtype or given)

        return te.compute(result.shape, finish, name="resized")

    operands = [roi] if isinstance(roi, Value) else []
    return ctx.emit_te(resize, data, list(sizes), *operands)


def _ends(
    framework: Framework, roi: AnyValue, number: int, count: int
) -> tuple[AnyValue, AnyValue]:
    """Return the start and the end of what is read of an axis."""
    if roi is None:
        return framework.tir.const(0.0, "float64"), framework.tir.const(0.0, "float64")
    if isinstance(roi, (tuple, list)):
        start, end = (
            framework.tir.const(float(roi[at]), "float64") for at in (number, count + number)
        )
        return start, end
    return roi[number].astype("float64"), roi[count + number].astype("float64")


def _reading(
    framework: Framework, axis: int, places: AnyValue, attrs: Mapping[str, AnyValue]
) -> AxisReading:
    method, mode = attrs["method"], attrs["coordinate_transformation_mode"]
    if method == "nearest_neighbor":
        nearest = _rounding(framework, mode, attrs.get("rounding_method", ""))
        return AxisReading(axis, places, nearest)
    if method == "linear":
        weigh = linear_weights(framework)
        return AxisReading(axis, places, offsets=(0, 1), weigh=weigh)
    exclude = bool(attrs.get("cubic_exclude"))
    weigh = cubic_weights(framework, attrs.get("cubic_alpha", -0.5))
    return AxisReading(
        axis, places, offsets=(-1, 0, 1, 2), weigh=weigh, within=exclude, scaled=exclude
    )


@OPS.exports("image.resize1d", "image.resize2d", "image.resize3d")
def export_resize(
    ctx: Export,
    data: Value,
    *,
    size: tuple[Dim, ...] | None,
    roi: tuple[float, ...] | None,
    resize: ImageResize,
) -> Value:
    dtype = resize.dtype_of(ctx.type(data).dtype)
    sizes = ctx.dims(size or ())
    return resize_axes(ctx, data, range(2, ctx.type(data).rank), sizes, vars(resize), roi, dtype)


@OPS.exports("dyn.image.resize2d")
def export_dynamic_resize(
    ctx: Export, data: Value, size: Value, roi: Value, *, resize: ImageResize
) -> Value:
    dtype = resize.dtype_of(ctx.type(data).dtype)
    used = roi if resize.coordinate_transformation_mode == "tf_crop_and_resize" else None
    sizes = ctx.read_shape(size)
    return resize_axes(ctx, data, range(2, ctx.type(data).rank), sizes, vars(resize), used, dtype)


@OPS.imports("relax.image.resize2d", "relax.image.resize3d")
def import_resize(
    ctx: Import, data: Expr,
    *, size: Shape, roi: AnyValue, layout: str, method: str, coordinate_transformation_mode: str,
    rounding_method: str, cubic_alpha: float, cubic_exclude: int, extrapolation_value: float,
    out_dtype: str | None,
) -> Expr:  # fmt: skip
    aligns = coordinate_transformation_mode == "align_corners"
    rounds = rounding_method or ("round" if aligns else "floor")
    if method == "nearest_neighbor" and rounds == "round":
        return _resize_to_even(ctx, data, size, layout, coordinate_transformation_mode)
    build: AnyValue = relay.image.resize2d if len(size.dims) == 2 else relay.image.resize3d
    known = ctx.dims_of(size)
    target: AnyValue = ctx.shape_tensor(size) if known is None else known
    return build(
        data, target, roi=tuple(map(float, roi)) if roi else None, layout=layout, method=method,
        coordinate_transformation_mode=coordinate_transformation_mode,
        rounding_method=rounding_method, cubic_alpha=cubic_alpha, cubic_exclude=cubic_exclude,
        extrapolation_value=extrapolation_value, out_dtype=out_dtype,
    )  # fmt: skip


def _resize_to_even(ctx: Import, x: Expr, size: Shape, layout: str, mode: str) -> Expr:
    """Return the nearest elements; TVM takes the even one of two as near, Relay the latter."""
    axes = [layout.index(letter) for letter in "DHW" if letter in layout]
    lengths, wanted = ctx.static_lengths(x, axes), ctx.known_dims(size)
    for axis, length, target in zip(axes, lengths, wanted, strict=True):
        if not isinstance(target, int):
            raise Unsupported("the nearest elements need a size that is fixed")
        places = np.rint(_places(mode, length, target)).clip(0, length - 1)
        x = relay.take(x, ctx.const(places, "int64"), axis=axis, mode="clip")
    return x


def _places(mode: str, length: int, target: int) -> Array:
    """Return where the elements of a resized axis are, in float32 as TVM has it."""
    steps = allocation.arange(target, dtype=np.float32)
    scale = np.float32(length) / np.float32(target)
    if mode == "align_corners":
        return steps * (np.float32(length - 1) / np.float32(target - 1)) if target > 1 else steps
    if mode == "asymmetric":
        return steps * scale
    if mode == "tf_half_pixel_for_nn":
        return (steps + np.float32(0.5)) * scale
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and target > 1):
        return (steps + np.float32(0.5)) * scale - np.float32(0.5)
    if mode == "pytorch_half_pixel":
        return steps
    raise Unsupported(f"coordinate_transformation_mode={mode!r} of nearest elements")
