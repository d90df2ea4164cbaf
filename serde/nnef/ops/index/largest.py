"""The few largest elements, one after another."""

from __future__ import annotations

from typing import Final

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.nnef.ops.index.expansion import whole_numbers
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr, Tuple
from serde.relay.ir.shapes import is_float, normalize_axis
from serde.relay.op.index.sorting import TopK
from serde.walk.expansion.tensors import fixed_shape, tensor_type
from serde.weights import dtype_name

__all__: list[str] = []

MOST: Final = 16
"""Elements that are looked for one after another; each takes about ten operations."""


@OPS.expands("topk")
def expand_topk(data: Expr, *, topk: TopK) -> Expr:
    """The first of the largest elements is found and taken out, as often as needed."""
    type_, shape = tensor_type(data), fixed_shape(data)
    place = normalize_axis(topk.axis, len(shape))
    count = shape[place] if not isinstance(topk.k, int) or topk.k < 1 else min(topk.k, shape[place])
    if not is_float(type_.dtype):
        raise Unsupported("NNEF has no fragment that orders elements, and compares scalars only")
    if count > MOST:
        raise Unsupported(
            f"NNEF has no fragment that orders elements, and {count} are too many to find singly"
        )
    scores = relay.negative(data) if topk.is_ascend else data
    steps = [1] * len(shape)
    steps[place] = shape[place]
    numbers = whole_numbers(shape[place], steps, type_.dtype)
    lowest = relay.const(-np.inf, type_.dtype)
    left: Expr = relay.const(allocation.ones(shape, np.bool_))
    values, indices = [], []
    for _ in range(count):
        rest = relay.where(left, scores, lowest)
        found = relay.cast(relay.argmax(rest, axis=[place], keepdims=True), type_.dtype)
        # Where minus infinity alone is left, what was taken looks like it: the first left counts.
        untaken = relay.argmax(relay.cast(left, type_.dtype), axis=[place], keepdims=True)
        none = relay.equal(relay.max(rest, axis=[place], keepdims=True), lowest)
        index = relay.where(none, relay.cast(untaken, type_.dtype), found)
        here = relay.equal(numbers, index)
        chosen = relay.where(here, data, relay.const(0, type_.dtype))
        values.append(relay.sum(chosen, axis=[place], keepdims=True))
        indices.append(index)
        left = relay.logical_and(left, relay.logical_not(here))
    largest = relay.concatenate(values, axis=place)
    if topk.ret_type == "values":
        return largest
    places = relay.cast(relay.concatenate(indices, axis=place), dtype_name(topk.dtype))
    return places if topk.ret_type == "indices" else Tuple([largest, places])
