"""Running totals, places that are compared with indices, and elements that are largest.

What orders elements, or gives as many as their values say, is refused.
"""

from __future__ import annotations

from typing import Final

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import dtype_name, numpy_dtype
from serde.errors import Unsupported
from serde.nnef.ops.table import OPS
from serde.relay.ir import Expr, Tuple, is_float, normalize_axis, tensor_type
from serde.relay.op.index.sorting import TopK
from serde.walk.expansion.tensors import fixed_shape, running

OPS.expands("cumsum")(running(relay.add, 0))
OPS.expands("cumprod")(running(relay.multiply, 1))


def _whole_numbers(count: int, shape: list[int], dtype: str) -> Expr:
    """Return the whole numbers from 0 on as scalars, in a shape that broadcasts."""
    if count > 2 ** (np.finfo(numpy_dtype(dtype)).nmant + 1):
        raise Unsupported(f"numbers up to {count} are compared in {dtype}")
    return relay.const(allocation.arange(count).reshape(shape), dtype)


@OPS.expands("serde.one_hot")
def expand_signed_one_hot(indices: Expr, values: Expr, *, depth: int, axis: int) -> Expr:
    """A negative index counts from the end."""
    dtype = tensor_type(values).dtype
    rank = len(fixed_shape(indices)) + 1
    place = normalize_axis(axis, rank)
    scalar = dtype if is_float(dtype) else "float32"
    numbers = relay.expand_dims(relay.cast(indices, scalar), axis=place)
    shape = [1] * rank
    shape[place] = depth
    steps = _whole_numbers(depth, shape, scalar)
    below = relay.subtract(steps, relay.const(depth, scalar))
    found = relay.logical_or(relay.equal(numbers, steps), relay.equal(numbers, below))
    off, on = (relay.squeeze(x, [0]) for x in relay.split(values, 2, axis=0))
    return relay.where(found, on, off)


MOST: Final = 16
"""Elements that are looked for one after another; each takes about ten operations."""


@OPS.expands("topk")
def expand_topk(data: Expr, *, topk: TopK) -> Expr:
    """The first of the largest elements is found and taken out, as often as needed."""
    type_, shape = tensor_type(data), fixed_shape(data)
    axis = normalize_axis(topk.axis, len(shape))
    count = shape[axis] if not isinstance(topk.k, int) or topk.k < 1 else min(topk.k, shape[axis])
    if not is_float(type_.dtype):
        raise Unsupported("NNEF has no fragment that orders elements, and compares scalars only")
    if count > MOST:
        raise Unsupported(
            f"NNEF has no fragment that orders elements, and {count} are too many to find singly"
        )
    scores = relay.negative(data) if topk.is_ascend else data
    steps = [1] * len(shape)
    steps[axis] = shape[axis]
    numbers = _whole_numbers(shape[axis], steps, type_.dtype)
    lowest = relay.const(-np.inf, type_.dtype)
    left: Expr = relay.const(allocation.ones(shape, np.bool_))
    values, indices = [], []
    for _ in range(count):
        rest = relay.where(left, scores, lowest)
        found = relay.cast(relay.argmax(rest, axis=[axis], keepdims=True), type_.dtype)
        # Where minus infinity alone is left, what was taken looks like it: the first left counts.
        untaken = relay.argmax(relay.cast(left, type_.dtype), axis=[axis], keepdims=True)
        none = relay.equal(relay.max(rest, axis=[axis], keepdims=True), lowest)
        index = relay.where(none, relay.cast(untaken, type_.dtype), found)
        here = relay.equal(numbers, index)
        chosen = relay.where(here, data, relay.const(0, type_.dtype))
        values.append(relay.sum(chosen, axis=[axis], keepdims=True))
        indices.append(index)
        left = relay.logical_and(left, relay.logical_not(here))
    largest = relay.concatenate(values, axis=axis)
    if topk.ret_type == "values":
        return largest
    places = relay.cast(relay.concatenate(indices, axis=axis), dtype_name(topk.dtype))
    return places if topk.ret_type == "indices" else Tuple([largest, places])


OPS.refuses_calls(
    "argsort",
    "dyn.topk",
    "invert_permutation",
    "searchsorted",
    "sort",
    reason="NNEF has no fragment that orders elements",
)


OPS.refuses_calls(
    "argwhere",
    "serde.compress",
    "serde.nonzero",
    "serde.unique",
    "unique",
    reason="the length of the result depends on values, and NNEF has fixed shapes only",
)


OPS.refuses_calls(
    "serde.sparse_to_dense",
    reason="NNEF has no fragment that writes elements to places that are computed",
)
