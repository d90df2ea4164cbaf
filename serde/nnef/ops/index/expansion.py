"""Running totals, and places that are compared with indices."""

from __future__ import annotations

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float, normalize_axis
from serde.walk.expansion.arrangement import running
from serde.walk.expansion.tensors import fixed_shape, tensor_type
from serde.weights import numpy_dtype

__all__ = ["whole_numbers"]

OPS.expands("cumsum")(running(relay.add, 0))
OPS.expands("cumprod")(running(relay.multiply, 1))


def whole_numbers(count: int, shape: list[int], dtype: str) -> Expr:
    """Return the whole numbers from 0 on as scalars, in a shape that broadcasts.

    Raises:
        Unsupported: The dtype does not hold them, so that others would be equal to them.
    """
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
    steps = whole_numbers(depth, shape, scalar)
    below = relay.subtract(steps, relay.const(depth, scalar))
    found = relay.logical_or(relay.equal(numbers, steps), relay.equal(numbers, below))
    off, on = (relay.squeeze(x, [0]) for x in relay.split(values, 2, axis=0))
    return relay.where(found, on, off)
