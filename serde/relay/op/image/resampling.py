"""Resizing of any axes, with all that ONNX's Resize can be told."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any as AnyValue, Literal

import numpy as np

import serde.core.allocation as allocation
from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Array, Dim, Expr, TensorType, call, const, relay_op, sample
from serde.relay.ir.shapes import is_float, normalize_axes
from serde.relay.ir.traits import Float32, Fusion, FusionPattern, RoundsLengths
from serde.relay.ir.work import times
from serde.relay.op.image.interpolation import cubic_weights

__all__ = ["Method", "Mode", "Policy", "Resampling", "Rounding", "nearest"]

Method = Literal["nearest", "linear", "cubic"]
Mode = Literal[
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
]
Rounding = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
Policy = Literal["stretch", "not_larger", "not_smaller"]


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """Attributes of ``serde.resize``."""

    size: tuple[Dim, ...] | None = None
    scale: tuple[float, ...] | None = None
    region: tuple[float, ...] | None = None
    axes: tuple[int, ...] = ()
    method: Method = "nearest"
    mode: Mode = "half_pixel"
    rounding: Rounding = "round_prefer_floor"
    cubic_alpha: float = -0.75
    exclude_outside: bool = False
    extrapolation_value: float = 0.0
    antialias: bool = False
    policy: Policy = "stretch"


@dataclass(frozen=True)
class _Axis:
    """One axis: its lengths before and after, their ratio as told, and what part is read."""

    length: int
    size: int
    scale: float
    start: float = 0.0
    end: float = 1.0

    def positions(self, mode: str) -> Array:
        """Return where in the source each result lies."""
        return allocation.at_positions(self.size, lambda x: self._positions(x + 0.0, mode))

    def _positions(self, x: Array, mode: str) -> Array:
        wide = self.scale * self.length
        if mode == "align_corners":
            return np.zeros(len(x)) if wide == 1 else x * (self.length - 1) / (wide - 1)
        if mode == "asymmetric":
            return x / self.scale
        if mode == "tf_half_pixel_for_nn":
            return (x + 0.5) / self.scale
        if mode == "tf_crop_and_resize":
            last = self.length - 1
            if wide == 1:
                return np.full(len(x), 0.5 * (self.start + self.end) * last)
            return self.start * last + x * (self.end - self.start) * last / (wide - 1)
        if mode == "pytorch_half_pixel" and wide == 1:
            return np.full(len(x), -0.5)
        places = (x + 0.5) / self.scale - 0.5
        if mode == "half_pixel_symmetric":
            places = places + self.length / 2 * (1 - self.size / wide)
        return places

    @property
    def is_kept(self) -> bool:
        """Whether nothing changes along it."""
        return self.size == self.length and self.scale == 1 and (self.start, self.end) == (0, 1)


def nearest(positions: Array, rounding: str) -> Array:
    """Return the whole numbers that positions are rounded to."""
    if rounding == "floor":
        return np.floor(positions)
    if rounding == "ceil":
        return np.ceil(positions)
    return (
        np.ceil(positions - 0.5) if rounding == "round_prefer_floor" else np.floor(positions + 0.5)
    )


def _keys(distance: Array, alpha: float) -> Array:
    t = np.abs(distance)
    near = ((alpha + 2) * t - (alpha + 3)) * t * t + 1
    far = ((alpha * t - 5 * alpha) * t + 8 * alpha) * t - 4 * alpha
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def _taps(
    axis: _Axis, positions: Array, attrs: Mapping[str, AnyValue]
) -> list[tuple[Array, Array]]:
    """Return the source indices and weights of the neighbours of each place.

    Against aliasing the kernel is stretched where the axis shrinks.
    """
    whole = np.floor(positions)
    part = positions - whole
    scale = min(axis.scale, 1.0) if attrs["antialias"] else 1.0
    if attrs["method"] == "linear":
        first = int(np.floor(-1 / scale)) + 1
        offsets = np.arange(first, 2 - first)
        weights = [np.clip(1 - np.abs((offset - part) * scale), 0, 1) for offset in offsets]
    elif scale == 1:
        offsets = np.arange(-1, 3)
        weights = cubic_weights(part, attrs["cubic_alpha"])
    else:
        first = int(np.floor(-2 / scale)) + 1
        offsets = np.arange(first, 2 - first)
        weights = [_keys((offset - part) * scale, attrs["cubic_alpha"]) for offset in offsets]
    indices = [(whole + offset).astype(np.int64) for offset in offsets]
    if attrs["exclude_outside"]:
        pairs = zip(weights, indices, strict=True)
        weights = [w * ((i >= 0) & (i < axis.length)) for w, i in pairs]
    if attrs["exclude_outside"] or scale < 1:
        total = np.sum(weights, 0)
        weights = [each / np.where(total == 0, 1, total) for each in weights]
    clipped = [np.clip(index, 0, axis.length - 1) for index in indices]
    return list(zip(clipped, weights, strict=True))


def _axes(
    shape: Sequence[int],
    region: Sequence[float] | None,
    scale: Sequence[float] | None,
    size: Sequence[int] | None,
    attrs: Mapping[str, AnyValue],
) -> dict[int, _Axis]:
    """Return the axes that are resized."""
    named = normalize_axes(attrs["axes"], len(shape)) if attrs["axes"] else range(len(shape))
    lengths = [shape[axis] for axis in named]
    count = len(lengths)
    if size is not None:
        ratios = [new / old for new, old in zip(size, lengths, strict=True)]
        if attrs["policy"] != "stretch":
            same = min(ratios) if attrs["policy"] == "not_larger" else max(ratios)
            ratios = [same] * count
            size = [int(same * length + 0.5) for length in lengths]
    else:
        ratios = [float(each) for each in scale or ()]
        pairs = zip(lengths, ratios, strict=True)
        size = [int(np.floor(length * ratio)) for length, ratio in pairs]
    ends = [(0.0, 1.0)] * count
    if region is not None and attrs["mode"] == "tf_crop_and_resize":
        ends = [(float(region[i]), float(region[count + i])) for i in range(count)]
    return {
        axis: _Axis(length, new, ratio, *span)
        for axis, length, new, ratio, span in zip(named, lengths, size, ratios, ends, strict=True)
    }


def _scaled_length(length: Dim, ratio: float) -> Dim:
    """Return a length times a ratio of float32, rounded down."""
    if not 0 < ratio < math.inf:
        raise TypeInferenceError(f"a length is scaled by {ratio}")
    if isinstance(length, int):
        return int(np.floor(length * ratio))
    exact = Fraction(ratio)
    if isinstance(length, Any) or exact.denominator > 1 << 16:
        return Any()
    return length * exact.numerator // exact.denominator


def _resize_type(
    data: TensorType, roi: TensorType | None, scales: TensorType | None, sizes: TensorType | None,
    *, size: tuple[Dim, ...] | None, scale: tuple[float, ...] | None,
    region: tuple[float, ...] | None, axes: tuple[int, ...], policy: str, antialias: bool,
    method: str, mode: str, **_: AnyValue,
) -> TensorType:  # fmt: skip
    """Lengths are anonymous where sizes or scales are operands."""
    if sum(each is not None for each in (scales, sizes, size, scale)) != 1:
        raise TypeInferenceError("expected scales or lengths, one of them")
    if mode == "tf_crop_and_resize" and (roi is None) == (region is None):
        raise TypeInferenceError("tf_crop_and_resize needs a region")
    if antialias and method == "nearest":
        raise TypeInferenceError("nearest elements are not smoothed")
    named = normalize_axes(axes, data.rank) if axes else tuple(range(data.rank))
    lengths = [data.shape[axis] for axis in named]
    given = scale if size is None else size
    if given is not None and len(given) != len(named):
        raise TypeInferenceError(f"{len(given)} numbers for {len(named)} axes of {data!r}")
    new: list[Dim] = [Any()] * len(named)
    if scale is not None:
        new = [_scaled_length(length, ratio) for length, ratio in zip(lengths, scale, strict=True)]
    elif size is not None:
        new = _apply_policy(lengths, size, policy)
    shape = list(data.shape)
    for axis, length in zip(named, new, strict=True):
        if shape[axis] == 0 and length != 0:
            raise TypeInferenceError(f"{data!r} has nothing to resize")
        shape[axis] = length
    return TensorType(shape, data.dtype)


def _apply_policy(lengths: Sequence[Dim], size: Sequence[Dim], policy: str) -> list[Dim]:
    """Return the lengths that axes get which are asked to have a size."""
    if policy == "stretch":
        return list(size)
    before = [length for length in lengths if isinstance(length, int)]
    wanted = [length for length in size if isinstance(length, int)]
    if len(before) < len(lengths) or len(wanted) < len(size):
        return [Any()] * len(lengths)
    attrs = {"axes": (), "policy": policy, "mode": "half_pixel"}
    return [each.size for each in _axes(before, None, None, wanted, attrs).values()]


def _decompose_resize(
    data: Expr, roi: Expr | None, scales: Expr | None, sizes: Expr | None,
    *, size: tuple[Dim, ...] | None, scale: tuple[float, ...] | None,
    region: tuple[float, ...] | None, **attrs: AnyValue,
) -> Expr:  # fmt: skip
    """Neighbours are looked up along each axis and weighed."""
    type_ = data.type
    if not isinstance(type_, TensorType) or type_.concrete_shape is None:
        raise TypeInferenceError(f"needs a fixed shape to resize, found {type_!r}")
    if any(each is not None for each in (roi, scales, sizes)):
        raise TypeInferenceError("a size or region that is computed has no decomposition")
    wanted = None if size is None else [length for length in size if isinstance(length, int)]
    if size is not None and wanted is not None and len(wanted) < len(size):
        raise TypeInferenceError(f"needs a fixed shape to resize to, found {size}")
    exact = attrs["method"] == "nearest" or type_.dtype == "float64"
    work = type_.dtype if exact else "float32"
    result = data if work == type_.dtype else call("cast", data, dtype=work)
    beyond: Array = np.zeros((1,) * type_.rank, np.bool_)
    spans = _axes(type_.concrete_shape, region, scale, wanted, attrs)
    for axis, span in spans.items():
        if span.is_kept:
            continue
        shape = [-1 if each == axis else 1 for each in range(type_.rank)]
        positions = span.positions(attrs["mode"])
        if attrs["mode"] == "tf_crop_and_resize":
            beyond = beyond | ((positions < 0) | (positions > span.length - 1)).reshape(shape)
        if attrs["method"] == "nearest":
            index = np.clip(nearest(positions, attrs["rounding"]), 0, span.length - 1)
            result = call("take", result, const(index, "int64"), axis=axis, mode="fast")
            continue
        parts = [
            call(
                "multiply",
                call("take", result, const(index, "int64"), axis=axis, mode="fast"),
                const(weight.reshape(shape), work),
            )
            for index, weight in _taps(span, positions, attrs)
        ]
        result = parts[0]
        for part in parts[1:]:
            result = call("add", result, part)
    if beyond.any():
        outside = const(attrs["extrapolation_value"], work)
        result = call("where", const(beyond, "bool"), outside, result)
    if work == type_.dtype:
        return result
    if not is_float(type_.dtype):
        limits = np.iinfo(type_.dtype)
        low, high = float(limits.min), float(limits.max)
        result = call("clip", _round_half_even(result), a_min=low, a_max=high)
    return call("cast", result, dtype=type_.dtype)


def _round_half_even(data: Expr) -> Expr:
    """Return the nearest whole numbers, of two the even one."""
    half, two = const(0.5, "float32"), const(2.0, "float32")
    raised = call("floor", call("add", data, half))
    tie = call("equal", raised, call("add", data, half))
    odd = call("not_equal", call("floor_mod", raised, two), const(0.0, "float32"))
    lower = call("subtract", raised, const(1.0, "float32"))
    return call("where", call("logical_and", tie, odd), lower, raised)


_SCALE = (1, 1, float(np.float32(0.6)), float(np.float32(0.6)))


@relay_op(
    "serde.resize",
    traits=(
        times(8), Fusion(FusionPattern.INJECTIVE), Float32("resizing", default=False),
        RoundsLengths("scale", "axes"),
    ),
    infer=_resize_type,
    decompose=_decompose_resize,
    samples=[
        sample((1, 2, 4, 4), scale=_SCALE, method="linear", mode="half_pixel_symmetric"),
        sample((1, 2, 4, 4), scale=_SCALE, method="linear", antialias=True),
        sample((1, 2, 4, 4), scale=_SCALE, method="cubic", antialias=True, cubic_alpha=-0.5),
        sample((1, 2, 4, 4), scale=_SCALE, method="cubic", exclude_outside=True),
        sample((1, 2, 4, 4), scale=(1.5, 2.5), axes=(2, 3), mode="asymmetric", rounding="floor"),
        sample((1, 1, 4, 4), size=(3, 3), region=(0.375, 0.625, 0.625, 1.75), axes=(2, 3),
               method="linear", mode="tf_crop_and_resize", extrapolation_value=10.0),
        sample((1, 1, 2, 4), size=(7, 8), axes=(2, 3), policy="not_larger"),
        sample((3, 5), size=(6, 4), mode="align_corners", rounding="ceil"),
        sample((5, 3), size=(7, 3), method="linear", mode="pytorch_half_pixel"),
        sample((4, 5), scale=(2, 1.5), mode="tf_half_pixel_for_nn", rounding="floor"),
        sample((4, 5), scale=(0.5, 1.75), method="linear", mode="tf_half_pixel_for_nn"),
    ],
)  # fmt: skip
def resize(
    data: Array, roi: Array | None, scales: Array | None, sizes: Array | None, *, resize: Resampling
) -> Array:
    """`data` with `axes`, or all of them, resized to lengths or by factors.

    The lengths are `size`, or `sizes` where they are computed, the factors `scale` or `scales`; a
    factor counts as it is told even where it does not give a whole length. `region` or `roi`
    (starts, then ends, relative) is what tf_crop_and_resize reads. All else is as ONNX's Resize
    has it.
    """
    attrs = {
        "axes": resize.axes,
        "method": resize.method,
        "mode": resize.mode,
        "cubic_alpha": resize.cubic_alpha,
        "exclude_outside": resize.exclude_outside,
        "antialias": resize.antialias,
        "policy": resize.policy,
    }
    given = resize.size if sizes is None else sizes.tolist()
    wanted = None if given is None else [each for each in given if isinstance(each, int)]
    factors = resize.scale if scales is None else scales.tolist()
    part = resize.region if roi is None else roi.tolist()
    exact = resize.method == "nearest" or data.dtype == np.float64
    result = data if exact else data.astype(np.float32)
    masks = []
    for axis, span in _axes(data.shape, part, factors, wanted, attrs).items():
        if span.is_kept:
            continue
        shape = [-1 if each == axis else 1 for each in range(data.ndim)]
        positions = span.positions(resize.mode)
        masks.append(((positions < 0) | (positions > span.length - 1)).reshape(shape))
        if resize.method == "nearest":
            index = np.clip(nearest(positions, resize.rounding), 0, span.length - 1).astype(
                np.int64
            )
            result = np.take(result, index, axis)
            continue
        total = 0
        for index, weight in _taps(span, positions, attrs):
            shaped = weight.reshape(shape).astype(result.dtype)
            total = total + np.take(result, index, axis) * shaped
        result = np.asarray(total)
    if resize.mode == "tf_crop_and_resize":
        for mask in masks:
            result = np.where(mask, result.dtype.type(resize.extrapolation_value), result)
    if data.dtype.kind in "iu" and not exact:
        limits = np.iinfo(data.dtype)
        result = np.clip(np.rint(result), limits.min, limits.max)
    return result.astype(data.dtype, copy=False)
