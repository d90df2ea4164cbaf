"""Any axes resized, with all that ONNX's Resize can be told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import Any as AnyValue, Final

from serde.core import dataclass, numpy_dtype
from serde.errors import Unsupported
from serde.relax.framework import Framework
from serde.relax.ops.image.interpolation import (
    AxisReading,
    as_float,
    cubic_weights,
    interpolate,
    linear_weights,
    number_of,
    round_even,
)
from serde.relax.ops.table import OPS, Export, Value
from serde.relay.ir import Call, Dim, is_float, limits, normalize_axes, tensor_type
from serde.relay.op.image.resampling import Resampling
from serde.walk.takes import Takes

_MOST_PARTS: Final = 1 << 16
"""Denominator of a factor whose product with a length is computed in integers."""


def _is_smooth(node: Call) -> bool:
    """Whether the weights do not depend on the factors, nor the factors on each other."""
    fixed = tensor_type(node.args[0]).concrete_shape is not None
    return not fixed or len(node.args) > 1


@dataclass(frozen=True)
class _Axis:
    """One axis: its lengths before and after, their ratio as told, and what part is read."""

    framework: Framework
    length: AnyValue
    size: AnyValue
    scale: AnyValue
    start: AnyValue
    end: AnyValue

    def place(self, mode: str) -> Callable[[AnyValue], AnyValue]:
        """Return where in the source an index of the result lies."""
        framework, tir = self.framework, self.framework.tir
        n, m = as_float(framework, self.length), as_float(framework, self.size)
        zero, half, one, two = (tir.const(value, "float64") for value in (0.0, 0.5, 1.0, 2.0))
        wide, last = self.scale * n, n - one
        steps = tir.Select(wide == one, one, wide - one)
        middle = (half * (self.start + self.end)) * last
        forms: dict[str, Callable[[AnyValue], AnyValue]] = {
            "align_corners": lambda x: tir.Select(wide == one, zero, x * last / steps),
            "asymmetric": lambda x: x / self.scale,
            "tf_half_pixel_for_nn": lambda x: (x + half) / self.scale,
            "tf_crop_and_resize": lambda x: tir.Select(
                wide == one, middle, self.start * last + x * (self.end - self.start) * last / steps
            ),
            "pytorch_half_pixel": lambda x: tir.Select(
                wide == one, zero - half, (x + half) / self.scale - half
            ),
            "half_pixel": lambda x: (x + half) / self.scale - half,
            "half_pixel_symmetric": lambda x: (
                (x + half) / self.scale - half + n / two * (one - m / wide)
            ),
        }
        return lambda index: forms[mode](as_float(framework, index))


def _nearest(framework: Framework, rounding: str) -> Callable[[AnyValue], AnyValue]:
    tir = framework.tir
    half = tir.const(0.5, "float64")
    forms: dict[str, Callable[[AnyValue], AnyValue]] = {
        "floor": tir.floor,
        "ceil": tir.ceil,
        "round_prefer_floor": lambda p: tir.ceil(p - half),
        "round_prefer_ceil": lambda p: tir.floor(p + half),
    }
    return forms[rounding]


@OPS.exports("serde.resize", takes=Takes(antialias=False, policy="stretch"), when=_is_smooth)
def export_serde_resize(
    ctx: Export,
    data: Value,
    roi: Value | None,
    scales: Value | None,
    sizes: Value | None,
    *,
    resize: Resampling,
) -> Value:
    """Of fixed lengths that are told, the decomposition says it in plain steps."""
    rank = ctx.type(data).rank
    named = normalize_axes(resize.axes, rank) if resize.axes else tuple(range(rank))
    attrs = {
        "method": resize.method,
        "mode": resize.mode,
        "rounding": resize.rounding,
        "cubic_alpha": resize.cubic_alpha,
        "exclude_outside": resize.exclude_outside,
        "extrapolation_value": resize.extrapolation_value,
    }
    lengths = _lengths(ctx, data, named, scales, sizes, resize.size, resize.scale)
    cropped = resize.mode == "tf_crop_and_resize"
    operands = {"scales": scales, "roi": roi if cropped else None}
    operands = {key: each for key, each in operands.items() if each is not None}
    region = resize.region if cropped else None
    compute = _resizing(ctx, data, named, resize.scale, region, list(operands), attrs)
    return ctx.emit_te(compute, data, lengths, *operands.values())


def _lengths(
    ctx: Export, data: Value, axes: Sequence[int], scales: Value | None, sizes: Value | None,
    size: tuple[Dim, ...] | None, scale: tuple[float, ...] | None,
) -> list[AnyValue]:  # fmt: skip
    """Return the lengths of the axes that are resized."""
    if size is not None:
        return ctx.dims(size)
    if sizes is not None:
        return ctx.read_shape(sizes)
    before = [ctx.extents(data)[axis] for axis in axes]
    if scale is not None:
        return [_scaled(ctx, *each) for each in zip(before, scale, strict=True)]
    framework = ctx.framework

    def scaled_lengths(image: AnyValue, factors: AnyValue) -> AnyValue:
        def length(which: AnyValue) -> AnyValue:
            found = None
            for number, axis in enumerate(axes):
                each = as_float(framework, image.shape[axis])
                found = (
                    each if found is None else framework.tir.Select(which == number, each, found)
                )
            return framework.tir.floor(found * factors[which].astype("float64")).astype("int64")

        return framework.te.compute((len(axes),), length, name="lengths")

    return ctx.read_shape(ctx.emit_te(scaled_lengths, data, scales))


def _scaled(ctx: Export, length: AnyValue, ratio: float) -> AnyValue:
    if isinstance(length, int):
        return floor(length * ratio)
    exact = Fraction(ratio)
    if exact.denominator > _MOST_PARTS:
        raise Unsupported(f"a length of {length} times {ratio} is not known")
    return ctx.framework.tir.floordiv(length * exact.numerator, exact.denominator)


def _resizing(
    ctx: Export, data: Value, axes: Sequence[int], scale: Sequence[float] | None,
    region: Sequence[float] | None, operands: Sequence[str], attrs: Mapping[str, AnyValue],
) -> Callable[..., AnyValue]:  # fmt: skip
    """Return what resizes an image to lengths; the names of the further tensors are `operands`."""
    framework, given = ctx.framework, ctx.type(data).dtype
    te, tir = framework.te, framework.tir
    exact = attrs["method"] == "nearest" or given == "float64"
    work = given if exact else "float32"
    count = len(axes)

    def resize(image: AnyValue, lengths: Sequence[AnyValue], *tensors: AnyValue) -> AnyValue:
        held = dict(zip(operands, tensors, strict=True))

        def number(values: Sequence[float] | None, key: str, at: int, default: float) -> AnyValue:
            if key in held:
                return held[key][at].astype("float64")
            value = default if values is None else values[at]
            return tir.const(float(value), "float64")

        result, places = image, []
        if work != given:
            result = te.compute(image.shape, lambda *p: image[p].astype(work), name="wide")
        for which, (axis, length) in enumerate(zip(axes, lengths, strict=True)):
            before = image.shape[axis]
            told = "roi" in held or "scales" in held or region is not None
            same = framework.are_equal(length, before) if scale is None else scale[which] == 1
            if same and not told:
                continue
            ratio = as_float(framework, length) / as_float(framework, before)
            if scale is not None or "scales" in held:
                ratio = number(scale, "scales", which, 1.0)
            ends = number(region, "roi", which, 0.0), number(region, "roi", count + which, 1.0)
            place = _Axis(framework, before, length, ratio, *ends).place(attrs["mode"])
            where = te.compute((length,), place, name="places")
            places.append((axis, where))
            result = interpolate(framework, result, _reading(framework, axis, where, attrs))
        return te.compute(
            result.shape,
            lambda *p: _finish(framework, image, result[p], places, p, given, work, attrs),
            name="resized",
        )

    return resize


def _reading(
    framework: Framework, axis: int, places: AnyValue, attrs: Mapping[str, AnyValue]
) -> AxisReading:
    if attrs["method"] == "nearest":
        return AxisReading(axis, places, _nearest(framework, attrs["rounding"]))
    linear, exclude = attrs["method"] == "linear", attrs["exclude_outside"]
    return AxisReading(
        axis,
        places,
        offsets=(0, 1) if linear else (-1, 0, 1, 2),
        weigh=linear_weights(framework)
        if linear
        else cubic_weights(framework, attrs["cubic_alpha"]),
        within=exclude,
        scaled=exclude,
    )


def _finish(
    framework: Framework, image: AnyValue, value: AnyValue, places: Sequence[tuple[int, AnyValue]],
    at: Sequence[AnyValue], given: str, work: str, attrs: Mapping[str, AnyValue],
) -> AnyValue:  # fmt: skip
    """Return an element, filled outside of what is cropped, rounded to a whole one if it is one."""
    tir = framework.tir
    if attrs["mode"] == "tf_crop_and_resize":
        fill = number_of(framework, attrs["extrapolation_value"], work)
        zero = tir.const(0.0, "float64")
        for axis, where in places:
            place, last = where[at[axis]], as_float(framework, image.shape[axis] - 1)
            value = tir.Select(tir.any(place < zero, place > last), fill, value)
    if work == given or is_float(given):
        return value.astype(given)
    bounds = limits(numpy_dtype(given))
    low, high = (tir.const(float(each), "float64") for each in (bounds.min, bounds.max))
    whole = round_even(framework, value.astype("float64"))
    return tir.max(tir.min(whole, high), low).astype("int64").astype(given)
