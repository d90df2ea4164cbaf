"""Elements in other places, by moves that NNEF has."""

from __future__ import annotations

import serde.relay as relay
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import normalize_axis
from serde.walk.expansion.blocks import (
    expand_batch_to_space,
    expand_depth_to_space,
    expand_space_to_batch,
    expand_space_to_depth,
)
from serde.walk.expansion.tensors import fixed_shape

__all__: list[str] = []


OPS.expands("nn.depth_to_space")(expand_depth_to_space)


OPS.expands("nn.space_to_depth")(expand_space_to_depth)


OPS.expands("nn.space_to_batch_nd")(expand_space_to_batch)


OPS.expands("nn.batch_to_space_nd")(expand_batch_to_space)


@OPS.expands("repeat")
def expand_repeat(data: Expr, *, repeats: int, axis: int | None) -> Expr:
    """Copies along a new axis become one with the axis before it."""
    if axis is None:
        data, axis = relay.reshape(data, [-1]), 0
    shape = list(fixed_shape(data))
    place = normalize_axis(axis, len(shape))
    counts = [1] * (len(shape) + 1)
    counts[place + 1] = repeats
    wide = relay.tile(relay.expand_dims(data, axis=place + 1), counts)
    shape[place] *= repeats
    return relay.reshape(wide, shape)


@OPS.expands("reverse")
def expand_reverse(data: Expr, *, axis: int) -> Expr:
    """A slice that goes back."""
    length = fixed_shape(data)[axis]
    return relay.strided_slice(data, [length - 1], [-length - 1], [-1], axes=[axis])


@OPS.expands("vision.yolo_reorg")
def expand_yolo_reorg(data: Expr, *, stride: int) -> Expr:
    """Darknet takes the tensor for one of fewer channels."""
    n, c, h, w = fixed_shape(data)
    b = stride
    parts = relay.reshape(data, [n, c // (b * b), h, b, w, b])
    moved = relay.transpose(parts, [0, 3, 5, 1, 2, 4])
    return relay.reshape(moved, [n, c * b * b, h // b, w // b])
