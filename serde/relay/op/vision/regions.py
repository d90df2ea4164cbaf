"""Pooling of regions of feature maps, and Darknet's rearrangement of them."""

from __future__ import annotations

from functools import partial
from typing import Any as AnyValue, Literal

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Arguments, Array, Dim, Expr, call, relay_op, sample, tensor, tensor_type
from serde.relay.ir.shapes import layout_axes, require_float, require_same_dtype, require_window
from serde.relay.ir.traits import (
    Discontinuous,
    Float32,
    Fusion,
    FusionPattern,
    Layout,
    Moves,
    Regions,
    Values,
)
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import BY_VALUES
from serde.relay.lowering.regions import sample_regions

__all__ = ["RoiAlign"]

_ROIS = np.array(
    [[0, 1.5, 2.25, 9.0, 7.5], [1, 0, 0, 4, 3], [1, 6.5, 1.0, 6.75, 12.5], [0, -3, 8.5, 2.5, 19]],
    np.float32,
)


@dataclass(frozen=True, kw_only=True)
class RoiAlign:
    """Attributes of ``vision.roi_align``."""

    pooled_size: tuple[Dim, ...]
    spatial_scale: float
    sample_ratio: int = -1
    layout: Literal["NCHW", "NHWC"] = "NCHW"
    mode: Literal["avg", "max"] = "avg"


def _infer_pooled(
    data: TensorType, rois: TensorType, pooled_size: tuple[Dim, ...], layout: str
) -> TensorType:
    require_float(data)
    require_same_dtype(data, rois)
    axes = layout_axes(layout, "NCHW")
    if data.rank != 4 or rois.rank != 2 or (type(rois.shape[1]) is int and rois.shape[1] != 5):
        raise TypeInferenceError(
            f"expected images and regions of shape (n, 5), found {data!r} and {rois!r}"
        )
    require_window(2, pooled_size=_sizes(pooled_size))
    shape = list(data.shape)
    for axis, length in zip(axes, (rois.shape[0], data.shape[axes[1]], *pooled_size), strict=True):
        shape[axis] = length
    return TensorType(shape, data.dtype)


def _sizes(pooled_size: tuple[Dim, ...]) -> tuple[int, ...]:
    return tuple(length for length in pooled_size if isinstance(length, int))


def _roi_align_type(data: TensorType, rois: TensorType, *, roi: RoiAlign) -> TensorType:
    return _infer_pooled(data, rois, roi.pooled_size, roi.layout)


def _places(start: Array, span: Array, bins: int, count: int, length: int) -> tuple[Array, Array]:
    """Return where `count` samples of each bin are, within the axis, and which of them count.

    Coordinates have the precision of the regions.
    """
    size = span / span.dtype.type(bins)
    halves = np.arange(count).astype(span.dtype) + span.dtype.type(0.5)
    within = halves * size / span.dtype.type(count)
    at = (start + np.arange(bins).astype(span.dtype)[:, None] * size + within).reshape(-1)
    return np.clip(at, 0, length - 1), (at >= -1) & (at <= length)


def _interpolate(image: Array, at: Array, axis: int) -> Array:
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, image.shape[axis] - 1)
    share = (at - low).reshape([-1 if i == axis else 1 for i in range(image.ndim)])
    return np.take(image, low, axis) * (1 - share) + np.take(image, high, axis) * share


@relay_op(
    "vision.roi_align",
    traits=(BY_VALUES, Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE), Float32(), Regions),
    infer=_roi_align_type,
    decompose=partial(sample_regions, "float64", "float64"),
    meta_class="relay.attrs.ROIAlignAttrs",
    samples=[
        sample((2, 3, 12, 10), _ROIS, pooled_size=(3, 2), spatial_scale=1.0, sample_ratio=2),
        sample((2, 12, 10, 2), _ROIS, pooled_size=(2, 4), spatial_scale=0.5, layout="NHWC"),
        sample((2, 2, 12, 10), _ROIS, pooled_size=(2, 2), spatial_scale=0.75, mode="max"),
    ],
)
def roi_align(data: Array, rois: Array, *, roi: RoiAlign) -> Array:
    """The mean (or the greatest) of bilinear samples in each bin of each region.

    A region is (image, left, top, right, bottom), and `spatial_scale` its factor; it is at least
    one element wide and high. A bin has `sample_ratio` samples along each axis; if that is not
    positive, one for each element that it spans, rounded up. Samples more than one element
    outside are zero, those nearer take the edge.
    """
    images = data.transpose(layout_axes(roi.layout, "NCHW")).astype(np.float64)
    rows, columns = _sizes(roi.pooled_size)
    height, width = images.shape[2:]
    out = np.empty((len(rois), images.shape[1], rows, columns), data.dtype)
    work = np.float64 if data.dtype == np.float64 else np.float32
    for region, pooled in zip(rois.astype(work), out, strict=True):
        left, top, right, bottom = region[1:] * work(roi.spatial_scale)
        span_h, span_w = np.maximum(bottom - top, work(1)), np.maximum(right - left, work(1))
        down = roi.sample_ratio if roi.sample_ratio > 0 else int(np.ceil(span_h / rows))
        across = roi.sample_ratio if roi.sample_ratio > 0 else int(np.ceil(span_w / columns))
        y, y_counts = _places(top, span_h, rows, down, height)
        x, x_counts = _places(left, span_w, columns, across, width)
        found = _interpolate(_interpolate(images[int(region[0])], y, 1), x, 2)
        found = np.where(y_counts[:, None] & x_counts, found, 0.0)
        bins = found.reshape(-1, rows, down, columns, across)
        pooled[...] = bins.mean((2, 4)) if roi.mode == "avg" else bins.max((2, 4))
    return out.transpose(layout_axes("NCHW", roi.layout))


def _roi_pool_type(
    data: TensorType, rois: TensorType, *, pooled_size: tuple[Dim, ...], layout: str, **_: AnyValue
) -> TensorType:
    return _infer_pooled(data, rois, pooled_size, layout)


def _bins(start: int, end: int, count: int, length: int, dtype: type) -> list[slice]:
    """Return the elements of each bin of a region from `start` to `end`, both included."""
    size = dtype(max(end - start + 1, 1)) / dtype(count)
    edges = np.arange(count + 1).astype(dtype) * size
    low = np.clip(np.floor(edges[:-1]).astype(np.int64) + start, 0, length)
    high = np.clip(np.ceil(edges[1:]).astype(np.int64) + start, 0, length)
    return [slice(int(a), int(b)) for a, b in zip(low, high, strict=True)]


@relay_op(
    "vision.roi_pool",
    traits=(
        BY_VALUES,
        Values(0),
        Layout(),
        Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),
        Float32(),
        Discontinuous,
        Regions,
    ),
    infer=_roi_pool_type,
    meta_class="relay.attrs.ROIPoolAttrs",
    samples=[
        sample((2, 3, 12, 10), _ROIS, pooled_size=(3, 2), spatial_scale=1.0),
        sample((2, 12, 10, 2), _ROIS, pooled_size=(4, 7), spatial_scale=0.5, layout="NHWC"),
    ],
)
def roi_pool(
    data: Array,
    rois: Array,
    *,
    pooled_size: tuple[Dim, ...],
    spatial_scale: float,
    layout: Literal["NCHW", "NHWC"] = "NCHW",
) -> Array:
    """The greatest element in each bin of each region, 0 in an empty one.

    A region is (image, left, top, right, bottom); scaled, its edges are rounded to elements,
    half away from zero, and belong to it. Bins overlap where they do not divide it evenly.
    """
    images = data.transpose(layout_axes(layout, "NCHW"))
    rows, columns = _sizes(pooled_size)
    work = np.float64 if data.dtype == np.float64 else np.float32
    out = np.zeros((len(rois), images.shape[1], rows, columns), data.dtype)
    for roi, pooled in zip(rois.astype(work), out, strict=True):
        scaled = roi[1:] * work(spatial_scale)
        edges = np.sign(scaled) * np.floor(np.abs(scaled) + work(0.5))
        left, top, right, bottom = (int(edge) for edge in edges)
        image = images[int(roi[0])]
        across = _bins(left, right, columns, image.shape[2], work)
        for i, vertical in enumerate(_bins(top, bottom, rows, image.shape[1], work)):
            for j, horizontal in enumerate(across):
                region = image[:, vertical, horizontal]
                if region.size:
                    pooled[:, i, j] = region.max((1, 2))
    return out.transpose(layout_axes("NCHW", layout))


def _yolo_reorg_type(data: TensorType, *, stride: int) -> TensorType:
    if data.rank != 4 or stride < 1:
        raise TypeInferenceError(f"stride {stride} does not fit {data!r}")
    batch, channels, height, width = data.shape
    for length, step in ((channels, stride * stride), (height, stride), (width, stride)):
        if type(length) is int and length % step:
            raise TypeInferenceError(f"a length of {length} is no multiple of {step}")
    shape = (batch, channels * (stride * stride), height // stride, width // stride)
    return TensorType(shape, data.dtype)


def _decompose_yolo_reorg(data: Expr, *, stride: int) -> Expr:
    if stride == 1:
        return data
    _, channels, height, width = tensor_type(data).shape
    rows = channels // (stride * stride) * height
    parts = call("reshape", data, newshape=(0, rows, stride, width, stride))
    moved = call("transpose", parts, axes=(0, 2, 4, 1, 3))
    shape = (0, channels * (stride * stride), height // stride, width // stride)
    return call("reshape", moved, newshape=shape)


@relay_op(
    "vision.yolo_reorg",
    traits=(Moves(all=True),),
    infer=_yolo_reorg_type,
    decompose=_decompose_yolo_reorg,
    samples=[sample((2, 8, 4, 6), stride=2), sample(tensor((1, 2, 3, 3), "int32"))],
    arguments=Arguments(required=("stride",)),
)
def yolo_reorg(data: Array, *, stride: int = 1) -> Array:
    """Space to channels in Darknet's order, which takes the tensor for one of fewer channels.

    That has `stride` squared times less channels of larger images; of these, elements `stride`
    apart are gathered, and the result is then read in its own shape.
    """
    batch, channels, height, width = data.shape
    parts = data.reshape(batch, -1, height, stride, width, stride)
    moved = parts.transpose(0, 3, 5, 1, 2, 4)
    return moved.reshape(batch, channels * stride**2, height // stride, width // stride)
