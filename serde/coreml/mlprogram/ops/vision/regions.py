"""Regions of images, pooled; anchors of objects, and the boxes that they stand for."""

from __future__ import annotations

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.mlprogram.ops.vision.suppression import number
from serde.errors import Unsupported
from serde.relay.ir import Dim, Expr, TensorType, TupleGetItem, Var, as_dtype, call, tensor_type
from serde.relay.op.control.body import close
from serde.walk.expansion.tensors import fixed_shape

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
