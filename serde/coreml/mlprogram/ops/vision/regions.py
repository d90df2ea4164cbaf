"""Regions of images, pooled; anchors of objects, and the boxes that they stand for."""

from __future__ import annotations

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.mlprogram.ops.vision.suppression import in_front, number
from serde.errors import Unsupported
from serde.relay.ir import Dim, Expr, Tuple, TupleGetItem, Var, as_dtype, call, tensor_type
from serde.relay.ir.types import TensorType
from serde.relay.op.control.body import close
from serde.relay.op.vision.anchors import Decoding, Priors, prior_boxes
from serde.relay.op.vision.regions import RoiAlign
from serde.walk.expansion.sampling import Pixels, between, linear_weights
from serde.walk.expansion.tensors import fixed_shape


@OPS.expands("vision.roi_align")
def expand_roi_align(data: Expr, rois: Expr, *, roi: RoiAlign) -> Expr:
    """Every sample of every region is looked up; regions must have one number of samples."""
    size = TensorType(roi.pooled_size, "int32").concrete_shape
    if size is None or roi.sample_ratio <= 0:
        raise Unsupported("regions of which each has its own number of samples")
    images = as_dtype(data, "float32")
    (count,) = fixed_shape(rois, [0])
    channels, *space = fixed_shape(images, [1, 2, 3])
    which, *edges = relay.split(as_dtype(rois, "float32"), 5, axis=1)
    scale = number(roi.spatial_scale, "float32")
    left, top, right, bottom = (relay.multiply(each, scale) for each in edges)
    lines, near = [], []
    for first, last, bins, length in zip((top, left), (bottom, right), size, space, strict=True):
        at = _samples(first, last, bins, roi.sample_ratio)
        inside = relay.logical_and(
            relay.greater_equal(at, number(-1, "float32")),
            relay.less_equal(at, number(length, "float32")),
        )
        near.append(relay.cast(inside, "float32"))
        lines.append(relay.clip(at, 0.0, float(length - 1)))
    rows, columns = (bins * roi.sample_ratio for bins in size)
    positions = [
        relay.reshape(relay.repeat(lines[0], columns, 1), [count, rows * columns]),
        relay.reshape(relay.tile(lines[1], (1, rows)), [count, rows * columns]),
    ]
    pixels = Pixels(images, relay.cast(which, "int32"))
    found = between(pixels, positions, linear_weights, lambda place, _length: place, zeros=False)
    counts = relay.multiply(relay.expand_dims(near[0], 2), relay.expand_dims(near[1], 1))
    found = relay.multiply(found, relay.reshape(counts, [count, rows * columns, 1]))
    pool = relay.mean if roi.mode == "avg" else relay.max
    down = relay.reshape(found, [count * size[0], roi.sample_ratio, columns * channels])
    down = pool(down, axis=(1,))
    across = relay.reshape(down, [count * size[0] * size[1], roi.sample_ratio, channels])
    result = relay.reshape(pool(across, axis=(1,)), [count, *size, channels])
    return as_dtype(relay.transpose(result, [0, 3, 1, 2]), tensor_type(data).dtype)


def _samples(first: Expr, last: Expr, bins: int, samples: int) -> Expr:
    """Return where the samples of regions lie along an axis: (regions, bins * samples)."""
    span = relay.maximum(relay.subtract(last, first), number(1, "float32"))
    steps = (allocation.arange(bins * samples) + 0.5) / (bins * samples)
    return relay.add(first, relay.multiply(span, relay.const(steps[None], "float32")))


_LOWEST = float(np.finfo(np.float32).min)


@OPS.expands("vision.roi_pool")
def expand_roi_pool(
    data: Expr, rois: Expr, *, pooled_size: tuple[Dim, ...], spatial_scale: float, layout: str
) -> Expr:
    """One region after the other: the elements of each bin are those that a mask lets through.

    All regions at once would take a copy of the image for each.
    """
    size = TensorType(pooled_size, "int32").concrete_shape
    if size is None:
        raise Unsupported("regions that are pooled to a size that is not fixed")
    images = as_dtype(data, "float32")
    height, width = fixed_shape(images, [2, 3])
    region, inner = Var("region", TensorType((5,), "float32")), Var("images", images.type)
    which, *edges = relay.split(region, 5, axis=0)
    image = relay.squeeze(relay.take(inner, relay.cast(which, "int32"), axis=0, mode="fast"), [0])
    left, top, right, bottom = (
        _round(relay.multiply(each, number(spatial_scale, "float32"))) for each in edges
    )
    across, seen_across = _bin_masks(left, right, size[1], width)
    down, seen_down = _bin_masks(top, bottom, size[0], height)
    lowest = number(_LOWEST, "float32")
    lines = relay.where(across, relay.expand_dims(image, 2), lowest)
    columns = relay.max(lines, axis=(3,))
    rows = relay.where(relay.expand_dims(down, 2), relay.expand_dims(columns, 1), lowest)
    found = relay.max(rows, axis=(2,))
    seen = relay.logical_and(relay.expand_dims(seen_down, 1), seen_across)
    found = relay.where(seen, found, number(0, "float32"))
    body, captures = close([region, inner], [found])
    walked = call("serde.scan", (), (as_dtype(rois, "float32"),), (images, *captures), body=body)
    return as_dtype(TupleGetItem(walked, 0), tensor_type(data).dtype)


def _round(edge: Expr) -> Expr:
    """Return an edge as a whole number, halves away from zero."""
    half = relay.floor(relay.add(relay.abs(edge), number(0.5, "float32")))
    return relay.multiply(relay.sign(edge), half)


def _bin_masks(first: Expr, last: Expr, bins: int, length: int) -> tuple[Expr, Expr]:
    """Return which elements of an axis are in which bin, (bins, length), and which bins have any.

    Args:
        first: The first element of a region, of one element.
        last: Its last.
        bins: Number of bins.
        length: Length of the axis.
    """
    one = number(1, "float32")
    span = relay.maximum(relay.add(relay.subtract(last, first), one), one)
    step = relay.divide(span, number(bins, "float32"))
    marks = relay.multiply(relay.const(allocation.arange(bins + 1), "float32"), step)
    begins = relay.strided_slice(marks, [0], [bins], [1], axes=[0])
    ends = relay.strided_slice(marks, [1], [bins + 1], [1], axes=[0])
    low = relay.clip(relay.add(relay.floor(begins), first), 0.0, float(length))
    high = relay.clip(relay.add(relay.ceil(ends), first), 0.0, float(length))
    positions = relay.const(allocation.arange(length), "float32")
    inside = relay.logical_and(
        relay.greater_equal(positions, relay.expand_dims(low, 1)),
        relay.less(positions, relay.expand_dims(high, 1)),
    )
    return inside, relay.greater(high, low)


@OPS.expands("vision.multibox_prior")
def expand_multibox_prior(data: Expr, *, priors: Priors) -> Expr:
    """They follow from the lengths of a feature map alone."""
    height, width = fixed_shape(data, [2, 3])
    allocation.allow((height, width, len(priors.sizes) + len(priors.ratios) - 1, 4))
    boxes = prior_boxes(height, width, priors)
    return relay.Constant(boxes.astype(numpy_dtype(tensor_type(data).dtype)))


@OPS.expands("vision.multibox_transform_loc")
def expand_multibox_transform_loc(
    cls_prob: Expr, loc_pred: Expr, anchor: Expr, *, decoding: Decoding
) -> Expr:
    """The class of an anchor is the best of those behind the first, the background."""
    dtype = tensor_type(cls_prob).dtype
    images, classes, anchors = fixed_shape(cls_prob)
    objects = relay.strided_slice(cls_prob, [1], [classes], [1], axes=[1])
    best = relay.cast(relay.argmax(objects, axis=(1,)), dtype)
    scores = relay.max(objects, axis=(1,))
    found = relay.logical_and(
        relay.greater_equal(scores, number(decoding.threshold, dtype)),
        relay.greater(scores, number(-1, dtype)),
    )
    boxes = _decode_boxes(relay.reshape(loc_pred, [images, anchors, 4]), anchor, decoding.variances)
    boxes = as_dtype(boxes, dtype)
    if decoding.clip:
        boxes = relay.clip(boxes, 0.0, 1.0)
    kinds = relay.where(found, best, number(-1, dtype))
    columns = [relay.expand_dims(each, 2) for each in (kinds, scores)]
    rows = relay.concatenate([*columns, boxes], axis=2)
    if decoding.keep_background:
        return Tuple([rows, relay.const(allocation.full(images, anchors, np.int32))])
    total = relay.sum(relay.cast(found, "int32"), axis=(1,))
    return Tuple([in_front(rows, found, -1), total])


def _decode_boxes(offsets: Expr, anchor: Expr, variances: tuple[float, ...]) -> Expr:
    """Return the corners of boxes that are given by how they differ from anchors."""
    dtype = tensor_type(anchor).dtype
    low, high = relay.split(anchor, 2, axis=2)
    half = number(0.5, dtype)
    size = relay.subtract(high, low)
    centre = relay.multiply(relay.add(low, high), half)
    moved, grown = relay.split(relay.multiply(offsets, relay.const(variances, dtype)), 2, axis=2)
    middle = relay.add(relay.multiply(moved, size), centre)
    reach = relay.multiply(relay.multiply(relay.exp(grown), size), half)
    ends = [relay.subtract(middle, reach), relay.add(middle, reach)]
    return relay.concatenate(ends, axis=2)
