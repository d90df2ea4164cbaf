"""Regions of feature maps read between pixels, the image of each region apart."""

from __future__ import annotations

from typing import Literal

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Expr, TensorType, call, const, ranges, relay_op, sample
from serde.relay.ir.shapes import join_dim, require_float, require_same_dtype
from serde.relay.ir.traits import Fusion, FusionPattern, InRange, Regions
from serde.relay.ir.work import BY_VALUES
from serde.relay.op.vision.sampling import Samples, mean_of

__all__ = ["AlignedRegions"]

_ROIS = np.array([[1.5, 2.25, 9.0, 7.5], [0, 0, 4, 3], [6.5, 1.0, 6.75, 12.5]], np.float32)
_IMAGES = np.array([0, 1, 1], np.int64)


@dataclass(frozen=True, kw_only=True)
class AlignedRegions:
    """Attributes of ``serde.roi_align``."""

    pooled_size: tuple[int, ...]
    spatial_scale: float = 1.0
    sample_ratio: int = 0
    mode: Literal["avg", "max"] = "avg"
    half_pixel: bool = True


def _aligned_type(
    data: TensorType, rois: TensorType, images: TensorType, *, roi: AlignedRegions
) -> TensorType:
    require_float(data)
    require_same_dtype(data, rois)
    if data.rank != 4 or rois.rank != 2 or images.rank != 1 or len(roi.pooled_size) != 2:
        raise TypeInferenceError(f"expected images and regions, found {data!r} and {rois!r}")
    join_dim(rois.shape[1], 4)
    count = join_dim(rois.shape[0], images.shape[0])
    return TensorType((count, data.shape[1], *roi.pooled_size), data.dtype)


def _decompose_aligned(data: Expr, rois: Expr, images: Expr, *, roi: AlignedRegions) -> Expr:
    """Relay's regions begin with the number of their image, and are never narrower than one."""
    if roi.mode == "max":
        raise TypeInferenceError("the greatest part of a sample has no decomposition")
    dtype = rois.type.dtype if isinstance(rois.type, TensorType) else "float32"
    if roi.half_pixel:
        return _decompose_mean(
            data, rois, images, roi.pooled_size, roi.spatial_scale, roi.sample_ratio, dtype
        )
    numbers = call("expand_dims", call("cast", images, dtype=dtype), axis=1)
    return call(
        "vision.roi_align",
        data,
        call("concatenate", [numbers, rois], axis=1),
        pooled_size=roi.pooled_size,
        spatial_scale=roi.spatial_scale,
        sample_ratio=roi.sample_ratio,
    )


def _decompose_mean(
    data: Expr,
    rois: Expr,
    images: Expr,
    pooled_size: tuple[int, ...],
    scale: float,
    ratio: int,
    dtype: str,
) -> Expr:
    """Return the means of samples at the places of a grid, those far outside being zero."""
    space = data.type.shape[2:] if isinstance(data.type, TensorType) else ()
    fixed = [length for length in space if isinstance(length, int)]
    if len(fixed) < 2:
        raise TypeInferenceError(f"needs a fixed shape to read, found {data.type!r}")
    half, zero, one = (const(value, dtype) for value in (0.5, 0.0, 1.0))
    coordinates, near, samples = [], [], []
    for axis, (bins, length) in enumerate(zip(pooled_size, fixed, strict=True)):
        ends = [const(np.array([column]), "int64") for column in (1 - axis, 3 - axis)]
        start, end = (
            call("multiply", call("take", rois, each, axis=1, mode="fast"), const(scale, dtype))
            for each in ends
        )
        span = call("subtract", end, start)
        samples.append(Samples.of(span, bins, ratio, axis, dtype))
        within = call("multiply", span, samples[-1].parts)
        place = call("add", call("subtract", start, half), within)
        place = call("expand_dims", place, axis=2 - axis)
        inside = call("greater_equal", place, const(-1.0, dtype))
        near.append(
            call("logical_and", inside, call("less_equal", place, const(float(length), dtype)))
        )
        limited = call("minimum", call("maximum", place, zero), const(float(length - 1), dtype))
        moved = call("multiply", call("add", limited, half), const(2 / length, dtype))
        coordinates.append(call("subtract", moved, one))
    grid_y, grid_x = coordinates
    zeros_x, zeros_y = (call("zeros_like", each) for each in (grid_x, grid_y))
    places = [call("add", grid_x, zeros_y), call("add", grid_y, zeros_x)]
    read = call(
        "image.grid_sample",
        call("take", data, images, axis=0, mode="fast"),
        call("stack", places, axis=1),
        align_corners=False,
    )
    return mean_of(read, near, samples, pooled_size, dtype)


def _samples(start: float, span: float, bins: int, count: int, length: int) -> tuple[Array, ...]:
    """Return two neighbours of each sample, their weights, and which samples count."""
    at = start + (np.arange(bins * count) + 0.5) * span / (bins * max(count, 1))
    near = (at >= -1) & (at <= length)
    place = np.clip(at, 0, length - 1)
    low = np.floor(place).astype(np.int64)
    part = place - low
    return low, np.minimum(low + 1, length - 1), 1 - part, part, near


@relay_op(
    "serde.roi_align",
    traits=(
        BY_VALUES,
        Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),
        Regions(numbered=False),
        InRange(ranges.along_operand(2, 0, 0)),
    ),
    infer=_aligned_type,
    decompose=_decompose_aligned,
    samples=[
        sample((2, 3, 12, 10), _ROIS, _IMAGES, pooled_size=(3, 2), half_pixel=False),
        sample(
            (2, 3, 12, 10), _ROIS, _IMAGES, pooled_size=(3, 2), sample_ratio=2, spatial_scale=0.5
        ),
        sample((2, 2, 12, 10), _ROIS, _IMAGES, pooled_size=(2, 4), spatial_scale=0.75),
    ],
)
def roi_align(data: Array, rois: Array, images: Array, *, roi: AlignedRegions) -> Array:
    """The mean of bilinear samples in each bin of each region, as ONNX's RoiAlign has it.

    A region is (left, top, right, bottom) of the image that `images` tells. With `half_pixel` the
    centre of a pixel is at one half, and a region may be as narrow as it likes; else it is at
    least one pixel wide and high. The mode "max" takes the greatest weighted neighbour instead.
    """
    wide = data.astype(np.float64)
    rows, columns = roi.pooled_size
    out = np.zeros((len(rois), data.shape[1], rows, columns))
    for region, image, pooled in zip(rois.astype(np.float64), images, out, strict=True):
        left, top, right, bottom = region * roi.spatial_scale - (0.5 if roi.half_pixel else 0)
        height, width = bottom - top, right - left
        if not roi.half_pixel:
            height, width = max(height, 1.0), max(width, 1.0)
        down = roi.sample_ratio if roi.sample_ratio > 0 else int(np.ceil(height / rows))
        across = roi.sample_ratio if roi.sample_ratio > 0 else int(np.ceil(width / columns))
        if down < 1 or across < 1:
            continue
        given = wide[int(image)]
        *y, y_near = _samples(top, height, rows, down, data.shape[2])
        *x, x_near = _samples(left, width, columns, across, data.shape[3])
        near = y_near[:, None] & x_near
        parts = [
            np.where(near, given[:, y[i]][:, :, x[j]] * (y[2 + i][:, None] * x[2 + j]), 0)
            for i in (0, 1)
            for j in (0, 1)
        ]
        found = np.sum(parts, 0) if roi.mode == "avg" else np.max(parts, 0)
        bins = found.reshape(-1, rows, down, columns, across)
        pooled[...] = bins.mean((2, 4)) if roi.mode == "avg" else bins.max((2, 4))
    return out.astype(data.dtype)
