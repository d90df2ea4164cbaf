"""Lengths and axes of the expressions that expansions are made of; elements joined and moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr, tensor_type

__all__ = ["along", "fixed_shape", "running"]


def fixed_shape(x: Expr, axes: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the lengths of axes, all of them if none are named.

    Raises:
        Unsupported: One is symbolic.
    """
    shape = tensor_type(x).shape
    lengths = [shape[axis] for axis in axes] if axes is not None else list(shape)
    fixed = tuple(length for length in lengths if isinstance(length, int))
    if len(fixed) < len(lengths):
        raise Unsupported(f"needs fixed lengths, found {tensor_type(x)!r}")
    return fixed


def along(x: Expr, rank: int, axis: int) -> Expr:
    """Return a vector that broadcasts along one axis of a tensor of some rank."""
    shape = [1] * rank
    shape[axis] = -1
    return relay.reshape(x, shape)


def running(build: Callable[[Expr, Expr], Expr], neutral: int) -> Callable[..., Expr]:
    """Return what makes a running total of an operator and its neutral element.

    Each step takes in what lies twice as far back, so that few steps reach the front.
    """

    def expand_running(data: Expr, *, axis: int | None, dtype: AnyValue, exclusive: bool) -> Expr:
        if axis is None:
            data, axis = relay.reshape(data, [-1]), 0
        if dtype is not None:
            data = relay.cast(data, dtype)
        type_ = tensor_type(data)
        length = type_.shape[axis]
        if not isinstance(length, int):
            raise Unsupported("a running total along a length that is not fixed")
        place = axis % type_.rank
        start = relay.const(neutral, type_.dtype)
        reach = 1

        def behind(x: Expr, steps: int) -> Expr:
            """Return `x` moved on by some places, with neutral elements in front."""
            front = [dim if each != place else steps for each, dim in enumerate(type_.shape)]
            if steps >= length:
                return relay.full(start, type_.shape)
            kept = relay.strided_slice(x, [0], [length - steps], axes=[place])
            return relay.concatenate((relay.full(start, front), kept), axis=place)

        found = behind(data, 1) if exclusive else data
        while reach < length:
            found = build(found, behind(found, reach))
            reach *= 2
        return found

    return expand_running
