"""Elements in other places, by moves that NNEF has."""

from __future__ import annotations

import serde.relay as relay
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import normalize_axis
from serde.walk.expansion.tensors import fixed_shape

__all__: list[str] = []


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
