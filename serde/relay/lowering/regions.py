"""Regions of images, of which samples between pixels are pooled.

Positions are computed in a dtype `precision`, and pixels counted in a dtype `numbers`: float64
where a target has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

import numpy as np

from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.relay.ir import Dim, Expr, as_dtype, call, const, number_like, tensor_type
from serde.relay.lowering.layout import arranged
from serde.relay.lowering.sampling import (
    LINEAR,
    Length,
    Pixels,
    as_work,
    columns_of,
    crop_and_resize,
    hold,
    of_all_channels,
    sample_grid,
)

__all__ = ["align_regions", "reads_between", "rotate_regions", "sample_regions"]


def reads_between(precision: str, numbers: str) -> Mapping[str, Callable[..., Expr]]:
    """Return what makes each operator that reads between pixels, for a target without float64."""
    rules: dict[str, Callable[..., Expr]] = {
        "image.crop_and_resize": crop_and_resize,
        "image.grid_sample": sample_grid,
        "serde.roi_align": align_regions,
        "vision.roi_align": sample_regions,
    }
    return {name: partial(rule, precision, numbers) for name, rule in rules.items()}


def sample_regions(
    precision: str,
    numbers: str,
    data: Expr,
    rois: Expr,
    *,
    pooled_size: tuple[Dim, ...],
    spatial_scale: float,
    sample_ratio: int,
    layout: str,
    mode: str,
) -> Expr:
    """Regions begin with the number of their image, and are at least one element wide and high."""
    size = [length for length in pooled_size if isinstance(length, int)]
    if len(size) < 2:
        raise Unsupported("regions that are pooled to a size that is not fixed")
    which, *edges = columns_of(as_work(rois), 5)
    images = as_work(arranged(data, layout, "NCHW"))
    samples = _samples(edges, size, spatial_scale, 0.0, 1.0, sample_ratio)
    found = _pool(precision, numbers, images, which, samples, size, mode)
    return as_dtype(arranged(found, "NCHW", layout), tensor_type(data).dtype)


def align_regions(
    precision: str,
    numbers: str,
    data: Expr,
    rois: Expr,
    images: Expr,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
    sample_ratio: int,
    mode: str,
    half_pixel: bool,
) -> Expr:
    """The greatest is that of weighted neighbours; means are Relay's, or read along a grid."""
    if mode == "avg" and not half_pixel:
        which = call("expand_dims", as_dtype(images, tensor_type(rois).dtype), axis=1)
        whole = call("concatenate", (which, rois), axis=1)
        return call(
            "vision.roi_align", data, whole, pooled_size=pooled_size,
            spatial_scale=spatial_scale, sample_ratio=sample_ratio,
        )  # fmt: skip
    shift, least = (0.5, None) if half_pixel else (0.0, 1.0)
    if mode == "avg":
        edges = columns_of(rois, 4)
        samples = _samples(edges, pooled_size, spatial_scale, shift, least, sample_ratio)
        places = [call("expand_dims", each.at, axis=2 - axis) for axis, each in enumerate(samples)]
        return _pool_along_grid(data, images, places, samples, pooled_size)
    edges = columns_of(as_work(rois), 4)
    samples = _samples(edges, pooled_size, spatial_scale, shift, least, sample_ratio)
    which = call("expand_dims", images, axis=1)
    found = _pool(precision, numbers, as_work(data), which, samples, pooled_size, mode, joined=mode)
    return as_dtype(found, tensor_type(data).dtype)


def rotate_regions(
    data: Expr, rois: Expr, *, pooled_size: tuple[int, ...], spatial_scale: float, sample_ratio: int
) -> Expr:
    """Samples around the middle of a region are turned, and moved to where that is."""
    which, *numbers = columns_of(rois, 6)
    x, y, wide, high = (
        call("multiply", each, number_like(spatial_scale, each)) for each in numbers[:4]
    )
    angle = call("multiply", numbers[4], number_like(np.pi / 180, x))
    x, y, angle = (call("expand_dims", each, axis=2) for each in (x, y, angle))
    cosine, sine = (call(name, angle) for name in ("cos", "sin"))
    steps, samples = [], []
    for axis, (span, bins) in enumerate(zip((high, wide), pooled_size, strict=True)):
        span = call("maximum", span, number_like(1, span))
        middle = call("multiply", span, number_like(-0.5, span))
        samples.append(_Samples.of(middle, span, bins, sample_ratio, axis))
        steps.append(call("expand_dims", samples[-1].at, axis=2 - axis))
    down, across = steps
    low = call("subtract", call("multiply", down, cosine), call("multiply", across, sine))
    right = call("add", call("multiply", across, cosine), call("multiply", down, sine))
    places = [call("add", low, y), call("add", right, x)]
    images = call("squeeze", as_dtype(which, "int32"), axis=(1,))
    return _pool_along_grid(data, images, places, samples, pooled_size)


@dataclass(frozen=True)
class _Samples:
    """Samples of all regions along an axis.

    Attributes:
        at: Where they are, ``(regions, samples)``: down bin by bin, and across first one of each
            bin, so that those of a bin are pooled over one axis.
        real: Which of them a region has, ``(regions, samples)``; None if all.
        count: How many a bin of each region has, ``(regions, 1)``, at least 1; None if all have
            as many.
    """

    at: Expr
    real: Expr | None = None
    count: Expr | None = None

    @classmethod
    def of(cls, start: Expr, span: Expr, bins: int, ratio: int, axis: int) -> _Samples:
        """Return `ratio` samples a bin, or if that is not positive one for each element it spans.

        Args:
            start: Where regions begin, ``(regions, 1)``, in elements.
            span: How long they are.
            bins: How many bins.
            ratio: How many samples a bin.
            axis: 0 down, 1 across.
        """
        dtype = tensor_type(span).dtype
        if ratio > 0:
            places = (np.arange(bins * ratio) + 0.5) / (bins * ratio)
            placed = np.moveaxis(places.reshape(bins, ratio), axis, 0)
            return cls(
                call("add", start, call("multiply", span, const(placed.reshape(1, -1), dtype)))
            )
        one, number = const(1, dtype), const(bins, dtype)
        found = call("ceil", call("divide", span, number))
        every = [call("reshape", found, newshape=(-1,)), const(np.ones(1), dtype)]
        most = call("max", call("concatenate", every, axis=0))  # There may be no regions.
        steps = call("arange", const(0, dtype), most, one, dtype=dtype)
        count = call("maximum", found, one)
        within = call("divide", call("add", steps, const(0.5, dtype)), count)
        first = const(np.expand_dims(np.arange(bins), 1 - axis), dtype)
        added = call("add", call("expand_dims", within, axis=1 + axis), first)
        parts = call("divide", added, number)
        real = call("expand_dims", call("less", steps, found), axis=1 + axis)
        real = call("broadcast_to_like", real, parts)
        parts, real = (call("reshape", each, newshape=(0, -1)) for each in (parts, real))
        return cls(call("add", start, call("multiply", span, parts)), real, count)


def _samples(
    edges: Sequence[Expr], size: Sequence[int], scale: float, shift: float, least: float | None,
    ratio: int,
) -> list[_Samples]:  # fmt: skip
    """Return samples down and across of regions: left, top, right, bottom.

    Args:
        edges: Each ``(regions, 1)``.
        size: How many bins down, and across.
        scale: Factor of the edges.
        shift: What is taken off them then.
        least: How wide and high regions are at least.
        ratio: How many samples a bin; if not positive, one for each element.
    """
    scaled = [call("multiply", each, number_like(scale, each)) for each in edges]
    found = []
    for axis, bins in enumerate(size):
        start, end = scaled[1 - axis], scaled[3 - axis]
        span = call("subtract", end, start)
        span = span if least is None else call("maximum", span, number_like(least, span))
        start = call("subtract", start, number_like(shift, start)) if shift else start
        found.append(_Samples.of(start, span, bins, ratio, axis))
    return found


def _pool(
    precision: str,
    numbers: str,
    images: Expr,
    which: Expr,
    samples: Sequence[_Samples],
    size: Sequence[int],
    mode: str,
    joined: str = "sum",
) -> Expr:
    """Return ``(regions, C, bins down, bins across)``; bins without samples are zero.

    Args:
        precision: The dtype of positions.
        numbers: That of numbers of pixels.
        images: ``(N, C, H, W)``.
        which: The number of the image of each region, ``(regions, 1)``.
        samples: Those down, and across.
        size: How many bins down, and across.
        mode: Whether their mean is taken, "avg", or the greatest, "max".
        joined: What joins the weighted neighbours of a sample.
    """
    batch = call("expand_dims", as_dtype(which, numbers), axis=2)
    pixels = Pixels(images, batch, precision)
    held, near = [], []
    for axis, (line, length) in enumerate(zip(samples, pixels.lengths, strict=True)):
        at = call("expand_dims", as_dtype(line.at, precision), axis=2 - axis)
        near += _near(at, length)
        held.append(hold(at, length))
    found = pixels.read(held, LINEAR, joined=joined)
    real = _real(samples)
    found = _unless(found, near if mode == "max" else near + real, 0)
    if real and mode == "max":
        found = _unless(found, real, -math.inf)
    shape = (0, size[0], -1, size[1], tensor_type(images).shape[1])
    bins = call("reshape", found, newshape=shape)
    if mode == "max":
        found = call("max", bins, axis=(2,))
        if real:
            none = call("equal", found, number_like(-math.inf, found))
            found = call("where", none, number_like(0, found), found)
        return call("transpose", found, axes=(0, 3, 1, 2))
    return call("transpose", _mean(bins, 2, samples), axes=(0, 3, 1, 2))


def _unless(found: Expr, conditions: Sequence[Expr], value: float) -> Expr:
    """Return samples of which all conditions hold, and a number for others."""
    seen = of_all_channels(reduce(partial(call, "logical_and"), conditions))
    return call("where", seen, found, number_like(value, found))


def _near(at: Expr, length: Length) -> list[Expr]:
    low = call("greater_equal", at, number_like(-1, at))
    return [low, call("less_equal", at, length.whole)]


def _real(samples: Sequence[_Samples]) -> list[Expr]:
    return [
        call("expand_dims", each.real, axis=2 - axis)
        for axis, each in enumerate(samples)
        if each.real is not None
    ]


def _mean(bins: Expr, axis: int, samples: Sequence[_Samples]) -> Expr:
    """Return the mean over an axis of five, of which only the samples that a region has count."""
    down, across = (each.count for each in samples)
    if down is None or across is None:
        return call("mean", bins, axis=(axis,))
    number = call("expand_dims", call("multiply", down, across), axis=2, num_newaxis=2)
    return call("divide", call("sum", bins, axis=(axis,)), number)


def _pool_along_grid(
    data: Expr, images: Expr, places: Sequence[Expr], samples: Sequence[_Samples],
    size: Sequence[int],
) -> Expr:  # fmt: skip
    """Return the means of samples that are read at places of a grid, those far outside being zero.

    Args:
        data: ``(N, C, H, W)``.
        images: The number of the image of each region.
        places: Down and across, of shapes that broadcast to ``(regions, samples, samples)``.
        samples: Those down, and across.
        size: How many bins down, and across.
    """
    dtype = tensor_type(places[0]).dtype
    coordinates, near = [], []
    for axis, place in enumerate(places):
        length = Length.of(data, 2 + axis, dtype)
        near += _near(place, length)
        middle = call("add", hold(place, length), const(0.5, dtype))
        scaled = call("multiply", middle, call("divide", const(2, dtype), length.whole))
        coordinates.append(call("subtract", scaled, const(1, dtype)))
    if tensor_type(places[0]).shape != tensor_type(places[1]).shape:
        zeros = [call("zeros_like", each) for each in coordinates[::-1]]
        coordinates = [call("add", *each) for each in zip(coordinates, zeros, strict=True)]
    read = call(
        "image.grid_sample",
        call("take", data, images, axis=0, mode="fast"),
        call("stack", coordinates[::-1], axis=1),
        align_corners=False,
    )
    seen = reduce(partial(call, "logical_and"), [*near, *_real(samples)])
    kept = call("where", call("expand_dims", seen, axis=1), read, const(0.0, dtype))
    bins = call("reshape", kept, newshape=(0, 0, size[0], -1, size[1]))
    return _mean(bins, 3, samples)
