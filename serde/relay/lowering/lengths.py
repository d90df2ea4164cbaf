"""Lengths and positions along axes, known or computed, and tensors in other dtypes and shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import serde.core.allocation as allocation
from serde.relay.ir import Any, Dim, Expr, SymDim, as_dtype, call, const, symbol, tensor_type

__all__ = [
    "LAST", "bounded_lengths", "length_of", "permuted", "positions", "reshaped", "scalars",
    "shape_vector", "sliced",
]  # fmt: skip


LAST: Final = 2**31 - 1
"""Stands for the end of an axis, whatever its length."""


def permuted(x: Expr, axes: Sequence[int]) -> Expr:
    """Return `x` with its axes in another order; itself if that is its own."""
    return x if list(axes) == list(range(len(axes))) else call("transpose", x, axes=tuple(axes))


def sliced(x: Expr, axis: int, begin: int, end: int = LAST, step: int = 1) -> Expr:
    """Return a slice of one axis."""
    return call("strided_slice", x, begin=(begin,), end=(end,), strides=(step,), axes=(axis,))


def length_of(x: Expr, axis: int, dtype: str = "int64") -> Expr:
    """Return the length of an axis as a scalar."""
    length = tensor_type(x).shape[axis]
    if isinstance(length, int):
        return const(length, dtype)
    place = const(axis % tensor_type(x).rank, "int64")
    return call("take", call("shape_of", x, dtype=dtype), place, axis=0, mode="fast")


def bounded_lengths(lengths: Expr, x: Expr, axis: int, dtype: str = "int64") -> Expr:
    """Return lengths of sequences along an axis of `x`: those below 1 are 1, none is beyond it."""
    least = call("maximum", as_dtype(lengths, dtype), const(1, dtype))
    return call("minimum", least, length_of(x, axis, dtype))


def shape_vector(x: Expr, first: int = 0, last: int | None = None) -> Expr:
    """Return the lengths of axes from `first` to before `last` as a vector of int64."""
    shape = tensor_type(x).shape
    chosen = shape[first:last]
    if all(isinstance(dim, int) for dim in chosen):
        return const(list(chosen), "int64")
    whole = call("shape_of", x, dtype="int64")
    if len(chosen) == len(shape):
        return whole
    return sliced(whole, 0, first, len(shape) if last is None else last)


def positions(x: Expr, axis: int, dtype: str = "int64") -> Expr:
    """Return the vector 0, 1, ... as long as an axis of `x`.

    Where that is a symbol, they are counted on the tensor itself, so that it keeps its name.
    """
    type_ = tensor_type(x)
    own = axis % type_.rank
    length = type_.shape[own]
    if isinstance(length, int):
        return const(allocation.arange(length), dtype)
    others = tuple(each for each in range(type_.rank) if each != own)
    blank = as_dtype(call("zeros_like", x), dtype)
    nothing = call("sum", blank, axis=others) if others else blank
    ones = call("ones_like", nothing)
    return call("cumsum", ones, axis=0, exclusive=True)


def reshaped(x: Expr, source: Expr, shape_from: Callable[[Sequence[Dim]], Sequence[Dim]]) -> Expr:
    """Return `x` in a shape that is made of that of another tensor, whose lengths may be unnamed.

    Args:
        x: The tensor.
        source: The other one.
        shape_from: Makes the shape of the lengths of `source`.
    """
    own = tensor_type(source).shape
    wanted = tuple(shape_from(own))
    if wanted == tensor_type(x).shape and Any() not in wanted:
        return x
    unknown = sum(isinstance(dim, Any) for dim in wanted)
    if not unknown or (unknown == 1 and 0 not in wanted):
        newshape = tuple(-1 if isinstance(dim, Any) else dim for dim in wanted)
        return call("reshape", x, newshape=newshape, allowzero=0 in wanted)
    parts = [call("reshape", each, newshape=(1,)) for each in scalars(source, shape_from)]
    return call("dyn.reshape", x, call("concatenate", parts, axis=0))


def scalars(source: Expr, lengths_from: Callable[[Sequence[Dim]], Sequence[Dim]]) -> list[Expr]:
    """Return the values of lengths that are made of those of a tensor when it runs."""
    own = tensor_type(source).shape
    names = [d if isinstance(d, int) else symbol(f"axis{i}") for i, d in enumerate(own)]
    known = {f"axis{i}": length_of(source, i) for i in range(len(own))}
    return [_as_scalar(dim, known) for dim in lengths_from(names)]


def _as_scalar(dim: Dim, known: dict[str, Expr]) -> Expr:
    """Return the value of a dimension, given those of its symbols."""
    if not isinstance(dim, SymDim):
        return const(dim, "int64")
    total: Expr | None = None
    for monomial, coefficient in dim.terms:
        term: Expr = const(coefficient, "int64")
        for atom, power in monomial:
            if isinstance(atom, str):
                value = known[atom]
            else:
                parts = (_as_scalar(each, known) for each in (atom.numerator, atom.denominator))
                value = call("floor_divide", *parts)
            for _ in range(power):
                term = call("multiply", term, value)
        total = term if total is None else call("add", total, term)
    return const(0, "int64") if total is None else total
