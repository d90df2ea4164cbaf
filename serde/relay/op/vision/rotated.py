"""Regions of feature maps that are rotated, read between pixels."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Regions, TensorType, relay_op, sample
from serde.relay.ir.shapes import join_dim, require_float, require_same_dtype
from serde.relay.ir.work import BY_VALUES
from serde.relay.lowering.regions import rotate_regions

__all__ = ["between"]


def _rotated_type(
    data: TensorType, rois: TensorType, *, pooled_size: tuple[int, ...], **_: AnyValue
) -> TensorType:
    require_float(data)
    require_same_dtype(data, rois)
    if data.rank != 4 or rois.rank != 2 or len(pooled_size) != 2:
        raise TypeInferenceError(f"expected images and regions, found {data!r} and {rois!r}")
    join_dim(rois.shape[1], 6)
    return TensorType((rois.shape[0], data.shape[1], *pooled_size), data.dtype)


_ROIS = np.array([[0, 5, 6, 6, 4, 30], [1, 2, 2, 9, 0.5, -75], [1, 8, 11, 5, 8, 200]], np.float32)


@relay_op(
    "serde.roi_align_rotated",
    traits=(BY_VALUES, Regions),
    infer=_rotated_type,
    decompose=rotate_regions,
    samples=[
        sample((2, 3, 12, 10), _ROIS, pooled_size=(3, 2), sample_ratio=2),
        sample((2, 2, 12, 10), _ROIS, pooled_size=(2, 4), spatial_scale=0.5, sample_ratio=1),
        sample((2, 2, 12, 10), _ROIS, pooled_size=(2, 4), spatial_scale=0.75),
    ],
)
def roi_align_rotated(
    data: Array,
    rois: Array,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float = 1.0,
    sample_ratio: int = -1,
) -> Array:
    """The mean of bilinear samples in each bin of each region, which is rotated (Ma et al., 2018).

    A region is (image, x, y, width, height, degrees) around its centre, and at least one element
    wide and high. A bin has `sample_ratio` samples along each axis; if that is not positive, one
    for each element that it spans, rounded up. Samples more than one element outside are zero.
    """
    rows, columns = pooled_size
    height, width = data.shape[2:]
    out = np.zeros((len(rois), data.shape[1], rows, columns))
    for roi, pooled in zip(rois.astype(np.float64), out, strict=True):
        x, y, wide, high = roi[1:5] * spatial_scale
        wide, high = max(wide, 1.0), max(high, 1.0)
        down = sample_ratio if sample_ratio > 0 else int(np.ceil(high / rows))
        across = sample_ratio if sample_ratio > 0 else int(np.ceil(wide / columns))
        yy = (((np.arange(rows * down) + 0.5) / (rows * down) - 0.5) * high)[:, None]
        xx = ((np.arange(columns * across) + 0.5) / (columns * across) - 0.5) * wide
        sine, cosine = np.sin(np.deg2rad(roi[5])), np.cos(np.deg2rad(roi[5]))
        at_y, at_x = yy * cosine - xx * sine + y, xx * cosine + yy * sine + x
        near = (at_y >= -1) & (at_y <= height) & (at_x >= -1) & (at_x <= width)
        read = between(data[int(roi[0])].astype(np.float64), at_y, at_x)
        bins = np.where(near, read, 0).reshape(-1, rows, down, columns, across)
        pooled[...] = bins.mean((2, 4))
    return out.astype(data.dtype)


def between(image: Array, y: Array, x: Array) -> Array:
    """Return ``(C, *places)`` of a ``(C, H, W)`` image between its pixels, edges being held."""
    height, width = image.shape[1:]
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    top, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    down, right = y - top, x - left
    below, beside = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    upper = image[:, top, left] * (1 - right) + image[:, top, beside] * right
    lower = image[:, below, left] * (1 - right) + image[:, below, beside] * right
    result: Array = upper * (1 - down) + lower * down
    return result
