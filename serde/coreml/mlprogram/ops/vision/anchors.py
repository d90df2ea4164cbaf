"""Anchors of objects, and the boxes that they stand for."""

from __future__ import annotations

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.mlprogram.ops.vision.suppression import in_front, number
from serde.relay.ir.expr import Expr, Tuple
from serde.relay.ir.precision import as_dtype
from serde.relay.op.vision.anchors import prior_boxes
from serde.walk.expansion.tensors import fixed_shape, tensor_type


@OPS.expands("vision.multibox_prior")
def expand_multibox_prior(
    data: Expr,
    *,
    sizes: tuple[float, ...],
    ratios: tuple[float, ...],
    steps: tuple[float, ...],
    offsets: tuple[float, ...],
    clip: bool,
) -> Expr:
    """They follow from the lengths of a feature map alone."""
    height, width = fixed_shape(data, [2, 3])
    allocation.allow((height, width, len(sizes) + len(ratios) - 1, 4))
    boxes = prior_boxes(height, width, sizes, ratios, steps, offsets, clip)
    return relay.Constant(boxes.astype(numpy_dtype(tensor_type(data).dtype)))


@OPS.expands("vision.multibox_transform_loc")
def expand_multibox_transform_loc(
    cls_prob: Expr,
    loc_pred: Expr,
    anchor: Expr,
    *,
    clip: bool,
    threshold: float,
    variances: tuple[float, ...],
    keep_background: bool,
) -> Expr:
    """The class of an anchor is the best of those behind the first, the background."""
    dtype = tensor_type(cls_prob).dtype
    images, classes, anchors = fixed_shape(cls_prob)
    objects = relay.strided_slice(cls_prob, [1], [classes], [1], axes=[1])
    best = relay.cast(relay.argmax(objects, axis=(1,)), dtype)
    scores = relay.max(objects, axis=(1,))
    found = relay.logical_and(
        relay.greater_equal(scores, number(threshold, dtype)),
        relay.greater(scores, number(-1, dtype)),
    )
    boxes = _decode_boxes(relay.reshape(loc_pred, [images, anchors, 4]), anchor, variances)
    boxes = as_dtype(boxes, dtype)
    if clip:
        boxes = relay.clip(boxes, 0.0, 1.0)
    kinds = relay.where(found, best, number(-1, dtype))
    columns = [relay.expand_dims(each, 2) for each in (kinds, scores)]
    rows = relay.concatenate([*columns, boxes], axis=2)
    if keep_background:
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
