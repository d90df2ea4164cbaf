"""Regions of feature maps read between pixels, the image of each region apart."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Array, TensorType, ranges, relay_op, sample
from serde.relay.ir.shapes import join_dim, require_float, require_same_dtype
from serde.relay.ir.traits import Fusion, FusionPattern, InRange, Regions
from serde.relay.ir.work import BY_VALUES
from serde.relay.lowering.regions import align_regions

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
    decompose=partial(align_regions, "float64", "float64"),
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
