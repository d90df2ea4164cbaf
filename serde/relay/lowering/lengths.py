"""Positions along axes, and tensors in other dtypes, as lowerings write them."""

from __future__ import annotations

import serde.allocation as allocation
from serde.relay.ir.expr import Expr, const, tensor_type
from serde.relay.ir.registry import call

__all__ = ["converted", "positions"]


def converted(x: Expr, dtype: str) -> Expr:
    """Return `x` in another dtype; itself if it has it."""
    return x if tensor_type(x).dtype == dtype else call("cast", x, dtype=dtype)


def positions(x: Expr, axis: int, dtype: str = "int64") -> Expr:
    """Return the vector 0, 1, ... as long as an axis of `x`, counted where that is not known."""
    type_ = tensor_type(x)
    length = type_.shape[axis]
    if isinstance(length, int):
        return const(allocation.arange(length), dtype)
    ends = [2**31 - 1 if each == axis % type_.rank else 1 for each in range(type_.rank)]
    line = x
    if type_.rank > 1:
        cut = {"begin": (0,) * type_.rank, "end": tuple(ends), "strides": (1,) * type_.rank}
        line = call("reshape", call("strided_slice", x, axes=None, **cut), newshape=(-1,))
    ones = call("cast", call("ones_like", line), dtype=dtype)
    return call("cumsum", ones, axis=0, exclusive=True)
