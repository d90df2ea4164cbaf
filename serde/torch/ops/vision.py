"""Converters of this category.

Operators of torchvision on regions and boxes. Source:
https://github.com/pytorch/vision/tree/main/torchvision/csrc/ops/cpu
"""

from __future__ import annotations

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.relay.ir import Constant, Dim, Expr, call
from serde.torch.ops.index.slicing import cut
from serde.torch.ops.shape.lengths import broadcast, reshape, sizes_of
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value


@OPS.imports("torchvision::nms")
def import_nms(ctx: Import, dets: Expr, scores: Expr, *, iou_threshold: float) -> Expr:
    """Boxes that stay, the best first."""
    rows = call(
        "serde.non_max_suppression",
        relay.expand_dims(dets, axis=0),
        relay.expand_dims(scores, axis=0, num_newaxis=2),
        ctx.scalar(ctx.size(dets, 0), "int64"),
        relay.const(iou_threshold, "float32"),
    )
    return relay.squeeze(cut(ctx, rows, 1, 2, 3), axis=(1,))


def _column(ctx: Import, rois: Expr, place: int) -> Expr:
    """Return one number of each region."""
    return relay.squeeze(cut(ctx, rois, 1, place, place + 1), axis=(1,))


def _images(ctx: Import, rois: Expr) -> Expr:
    """Return the number of the image of each region."""
    return ctx.cast(_column(ctx, rois, 0), "int64")


def _align(
    ctx: Import, x: Expr, rois: Expr, pooled_size: tuple[int, int], spatial_scale: float,
    sampling_ratio: int,
    *, aligned: bool,
) -> Expr:  # fmt: skip
    return call(
        "serde.roi_align", x, cut(ctx, rois, 1, 1), _images(ctx, rois), pooled_size=pooled_size,
        spatial_scale=spatial_scale, sample_ratio=max(sampling_ratio, 0), half_pixel=aligned,
    )  # fmt: skip


@OPS.imports("torchvision::roi_align")
def import_roi_align(
    ctx: Import, input: Expr, rois: Expr,
    *, spatial_scale: float, pooled_height: SymInt, pooled_width: SymInt, sampling_ratio: int,
    aligned: bool,
) -> Expr:  # fmt: skip
    size = ctx.fixed(pooled_height), ctx.fixed(pooled_width)
    return _align(ctx, input, rois, size, spatial_scale, sampling_ratio, aligned=aligned)


def _bins(
    ctx: Import, rois: Expr, axis: int, count: int, length: int, scale: float, extra: int
) -> Expr:
    """Return which elements of an axis are in each bin of each region: ``(n, count, length)``.

    Args:
        ctx: Context.
        rois: Regions: image, left, top, right, bottom.
        axis: 0 for rows, 1 for columns.
        count: Number of bins.
        length: Length of the axis.
        scale: Factor of the edges, which are then rounded.
        extra: 1 where the last element belongs to a region, and bins reach the end of the axis.
    """
    dtype = ctx.dtype(rois)
    number = numpy_dtype(dtype)
    first, last = (
        relay.round(relay.multiply(_column(ctx, rois, place), relay.const(scale, dtype)))
        for place in (2 - axis, 4 - axis)
    )
    span = relay.add(relay.subtract(last, first), relay.const(extra, dtype))
    step = relay.divide(relay.maximum(span, relay.const(1, dtype)), relay.const(count, dtype))
    start, width = (relay.expand_dims(each, axis=1) for each in (first, step))
    edges = []
    for place, rounded in ((0, relay.floor), (1, relay.ceil)):
        numbers = Constant((allocation.arange(count) + place).astype(number)[None])
        edge = relay.add(rounded(relay.multiply(width, numbers)), start)
        held = relay.clip(edge, 0.0, float(length - 1 + extra))
        edges.append(relay.expand_dims(held, axis=2))
    at = Constant(allocation.arange(length).astype(number).reshape(1, 1, -1))
    return relay.logical_and(relay.greater_equal(at, edges[0]), relay.less(at, edges[1]))


@OPS.imports("torchvision::roi_pool")
def import_roi_pool(
    ctx: Import,
    input: Expr,
    rois: Expr,
    *,
    spatial_scale: float,
    pooled_height: SymInt,
    pooled_width: SymInt,
) -> tuple[Expr, Expr]:
    """The greatest element of each bin, and where it lies in its plane; -1 in an empty bin."""
    size = ctx.fixed(pooled_height), ctx.fixed(pooled_width)
    pooled = relay.vision.roi_pool(input, rois, size, spatial_scale)
    lengths = ctx.static_lengths(input, [2, 3])
    rows, columns = (
        _bins(ctx, rois, axis, size[axis], lengths[axis], spatial_scale, 1) for axis in (0, 1)
    )
    inside = relay.logical_and(
        relay.expand_dims(relay.expand_dims(rows, axis=2), axis=4),
        relay.expand_dims(relay.expand_dims(columns, axis=1), axis=3),
    )
    images = relay.take(input, _images(ctx, rois), axis=0, mode="fast")
    planes = relay.expand_dims(images, axis=2, num_newaxis=2)
    least = relay.const(-np.inf, ctx.dtype(input))
    seen = relay.where(relay.expand_dims(inside, axis=1), planes, least)
    *front, _, _ = sizes_of(ctx, seen)
    flat = reshape(ctx, seen, [*front, lengths[0] * lengths[1]])
    places = ctx.cast(relay.argmax(flat, axis=(-1,)), "int32")
    empty = relay.equal(relay.max(flat, axis=(-1,)), least)
    return pooled, relay.where(empty, relay.const(-1, "int32"), places)


def _channel_mapping(ctx: Import, rois: Expr, channels: int, size: tuple[int, int]) -> Expr:
    """Return from which channel each bin of each region is read."""
    places = allocation.arange(channels, dtype=np.int32).reshape(1, -1, *size)
    wanted: list[SymInt] = [ctx.size(rois, 0), *places.shape[1:]]
    return broadcast(ctx, Constant(places), wanted)


@OPS.imports("torchvision::ps_roi_align")
def import_ps_roi_align(
    ctx: Import, input: Expr, rois: Expr,
    *, spatial_scale: float, pooled_height: SymInt, pooled_width: SymInt, sampling_ratio: int,
) -> tuple[Expr, Expr]:  # fmt: skip
    """Each bin has channels of its own; of all channels at all bins, these are taken."""
    rows, columns = ctx.fixed(pooled_height), ctx.fixed(pooled_width)
    (channels,) = ctx.static_lengths(input, [1])
    whole = _align(ctx, input, rois, (rows, columns), spatial_scale, sampling_ratio, aligned=True)
    parts = relay.reshape(whole, newshape=(-1, channels // (rows * columns), *(rows, columns) * 2))
    found = relay.einsum([parts], "kcijij->kcij")
    return found, _channel_mapping(ctx, rois, channels, (rows, columns))


@OPS.imports("torchvision::ps_roi_pool")
def import_ps_roi_pool(
    ctx: Import,
    input: Expr,
    rois: Expr,
    *,
    spatial_scale: float,
    pooled_height: SymInt,
    pooled_width: SymInt,
) -> tuple[Expr, Expr]:
    """The mean of each bin in channels of its own; the last row and column are left out."""
    size = ctx.fixed(pooled_height), ctx.fixed(pooled_width)
    channels, *lengths = ctx.static_lengths(input, [1, 2, 3])
    dtype = ctx.dtype(input)
    images = relay.take(input, _images(ctx, rois), axis=0, mode="fast")
    depth = channels // (size[0] * size[1])
    parts = relay.reshape(images, newshape=(-1, depth, *size, *lengths))
    rows, columns = (
        ctx.cast(_bins(ctx, rois, axis, size[axis], lengths[axis], spatial_scale, 0), dtype)
        for axis in (0, 1)
    )
    total = relay.einsum([parts, rows, columns], "kcijhw,kih,kjw->kcij")
    counts = [relay.sum(each, axis=(2,)) for each in (rows, columns)]
    area = relay.multiply(
        relay.reshape(counts[0], newshape=(-1, 1, size[0], 1)),
        relay.reshape(counts[1], newshape=(-1, 1, 1, size[1])),
    )
    mean = relay.divide(total, relay.maximum(area, relay.const(1, dtype)))
    return mean, _channel_mapping(ctx, rois, channels, size)


@OPS.imports("torchvision::deform_conv2d")
def import_deform_conv2d(
    ctx: Import, input: Expr, weight: Expr, offset: Expr, mask: Expr, bias: Expr,
    *, stride_h: SymInt, stride_w: SymInt, pad_h: SymInt, pad_w: SymInt, dilation_h: SymInt,
    dilation_w: SymInt, groups: SymInt, offset_groups: SymInt, use_mask: bool,
) -> Expr:  # fmt: skip
    pads = ctx.fixed(pad_h), ctx.fixed(pad_w)
    return call(
        "serde.deform_conv2d", input, weight, offset, bias, mask if use_mask else None,
        strides=(ctx.fixed(stride_h), ctx.fixed(stride_w)), padding=pads * 2,
        dilation=(ctx.fixed(dilation_h), ctx.fixed(dilation_w)), groups=ctx.fixed(groups),
        offset_groups=ctx.fixed(offset_groups),
    )  # fmt: skip


@OPS.exports("vision.all_class_non_max_suppression")
def export_all_class_non_max_suppression(
    ctx: Export, boxes: Value, scores: Value, max_output_boxes_per_class: Value,
    iou_threshold: Value, score_threshold: Value,
    *, output_format: str,
) -> tuple[Value, ...]:  # fmt: skip
    given = boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold
    if output_format == "tensorflow":
        return ctx.call_tuple(ctx.helper("all_class_images"), *given, outputs=3)
    return ctx.call_tuple(ctx.helper("all_class_rows"), *given, outputs=2)


@OPS.exports("vision.roi_pool")
def export_roi_pool(
    ctx: Export, data: Value, rois: Value, *, pooled_size: tuple[Dim, ...], spatial_scale: float
) -> Value:
    name = ctx.helper("pool_regions")
    return ctx.call(name, data, rois, *ctx.sizes(pooled_size), spatial_scale)
