"""Elements in other places, by moves that NNEF has."""

from __future__ import annotations

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Constant, Expr
from serde.relay.ir.layout import LayoutPlan
from serde.relay.ir.shapes import normalize_axis
from serde.walk.expansion.arrangement import (
    expand_collapse_sum_like,
    expand_collapse_sum_to,
    expand_dilate,
    expand_fifo_buffer,
    expand_matrix_set_diag,
    expand_meshgrid,
)
from serde.walk.expansion.blocks import (
    expand_depth_to_space,
    expand_space_to_depth,
)
from serde.walk.expansion.tensors import fixed_shape, tensor_type

__all__: list[str] = []

OPS.expands("nn.depth_to_space")(expand_depth_to_space)
OPS.expands("nn.space_to_depth")(expand_space_to_depth)
OPS.expands("nn.dilate")(expand_dilate)
OPS.expands("nn.fifo_buffer")(expand_fifo_buffer)
OPS.expands("meshgrid")(expand_meshgrid)
OPS.expands("collapse_sum_like")(expand_collapse_sum_like)
OPS.expands("collapse_sum_to")(expand_collapse_sum_to)
OPS.expands("matrix_set_diag")(expand_matrix_set_diag)


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


@OPS.expands("trilu")
def expand_trilu(data: Expr, k: Expr, *, upper: bool) -> Expr:
    """How far a place lies right of the diagonal tells whether it is kept."""
    rows, columns = allocation.indices(fixed_shape(data, [-2, -1]))
    right = columns - rows
    if isinstance(k, Constant):
        number = int(k.data.reshape(()))
        inside: Expr = Constant(right >= number if upper else right <= number)
    else:
        compare = relay.greater_equal if upper else relay.less_equal
        inside = compare(relay.const(right, "float32"), relay.cast(k, "float32"))
    return relay.where(inside, data, relay.const(0, tensor_type(data).dtype))


@OPS.expands("layout_transform")
def expand_layout_transform(data: Expr, *, src_layout: str, dst_layout: str) -> Expr:
    """The pieces of each letter are brought together, cut anew, and put in order."""
    plan = LayoutPlan(tensor_type(data).shape, src_layout, dst_layout)
    pieces = relay.reshape(relay.transpose(data, plan.gather), plan.parts)
    return relay.transpose(pieces, plan.spread)


@OPS.expands("sliding_window")
def expand_sliding_window(
    data: Expr, *, axis: int, window_shape: tuple[int, ...], strides: tuple[int, ...]
) -> Expr:
    """Along each axis the places of all windows are looked up; the axes of windows come last."""
    shape = fixed_shape(data)
    first = normalize_axis(axis, len(shape))
    for number, (size, step) in enumerate(zip(window_shape, strides, strict=True)):
        place = first + 2 * number
        starts = allocation.arange(0, shape[first + number] - size + 1, step)
        places = allocation.outer_sum(starts, allocation.arange(size)).astype(np.int32)
        data = relay.take(data, Constant(places), axis=place, mode="fast")
    count = len(window_shape)
    order = [first + 2 * i for i in range(count)] + [first + 2 * i + 1 for i in range(count)]
    return relay.transpose(data, [*range(first), *order])
