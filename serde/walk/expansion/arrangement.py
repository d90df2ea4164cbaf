"""Elements spread, joined, summed and put in other places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.dims import Dim, same_length
from serde.relay.ir.expr import Constant, Expr
from serde.relay.ir.types import TensorType
from serde.walk.expansion.tensors import tensor_type

__all__ = [
    "expand_collapse_sum_like",
    "expand_collapse_sum_to",
    "expand_matrix_set_diag",
    "expand_meshgrid",
    "running",
]


def expand_meshgrid(data: tuple[Expr, ...], *, indexing: str) -> Expr:
    """Each vector lies along an axis of its own and is spread over the others."""
    order = list(range(len(data)))
    if indexing == "xy" and len(data) > 1:
        order[:2] = [1, 0]
    lengths: list[Dim] = [1] * len(data)
    for place, each in zip(order, data, strict=True):
        type_ = each.checked_type
        if not isinstance(type_, TensorType):
            raise Unsupported(f"expected tensors, found {type_!r}")
        lengths[place] = type_.size
    grids = []
    for place, each in zip(order, data, strict=True):
        shape: list[Dim] = [1] * len(data)
        shape[place] = lengths[place]
        grids.append(relay.broadcast_to(relay.reshape(each, shape), lengths))
    return relay.Tuple(grids)


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


def expand_collapse_sum_like(data: Expr, collapse_type: Expr) -> Expr:
    type_ = collapse_type.checked_type
    return _collapse_sum(data, type_.shape if isinstance(type_, TensorType) else ())


def expand_collapse_sum_to(data: Expr, shape: Expr, *, dtype: AnyValue) -> Expr:
    if not isinstance(shape, Constant):
        raise Unsupported("a sum to a shape that only the model's run shows")
    return _collapse_sum(data, [int(n) for n in np.asarray(shape.data)])


def _collapse_sum(data: Expr, wanted: Sequence[Dim]) -> Expr:
    """Sum over the axes in front of `wanted` and those of length 1 there."""
    type_ = data.checked_type
    if not isinstance(type_, TensorType):
        raise Unsupported(f"expected a tensor, found {type_!r}")
    offset = type_.rank - len(wanted)
    pairs = list(zip(type_.shape[offset:], wanted, strict=True))
    if any(want != 1 and not same_length(have, want) for have, want in pairs):
        raise Unsupported("a sum over axes that only the model's run shows")
    short = [i + offset for i, (have, want) in enumerate(pairs) if want == 1 != have]
    axes = [*range(offset), *short]
    total = relay.sum(data, axis=axes, keepdims=True) if axes else data
    return relay.squeeze(total, axis=list(range(offset))) if offset else total


def expand_matrix_set_diag(
    input: Expr,
    diagonal: Expr,
    *,
    k1: int,
    k2: int,
    super_diag_right_align: bool,
    sub_diag_right_align: bool,
) -> Expr:
    """Each place of a matrix looks its number up among those of the diagonals."""
    type_, lines = input.checked_type, diagonal.checked_type
    if not isinstance(type_, TensorType) or not isinstance(lines, TensorType):
        raise Unsupported("expected tensors")
    height, width, longest = type_.shape[-2], type_.shape[-1], lines.shape[-1]
    if not (isinstance(height, int) and isinstance(width, int) and isinstance(longest, int)):
        raise Unsupported("diagonals of a matrix whose lengths are not fixed")
    rows, columns = allocation.indices((height, width))
    number = columns - rows
    length = np.minimum(height + np.minimum(number, 0), width - np.maximum(number, 0))
    right = np.where(number >= 0, super_diag_right_align, sub_diag_right_align)
    step = np.minimum(rows, columns) + np.where(right, longest - length, 0)
    inside = (number >= k1) & (number <= k2)
    places = np.where(inside, (k2 - number) * longest + step, 0).astype(np.int32)
    flat = relay.reshape(diagonal, [*type_.shape[:-2], (k2 - k1 + 1) * longest])
    found = relay.take(flat, relay.Constant(places), axis=type_.rank - 2, mode="fast")
    return relay.where(relay.Constant(inside), found, input)
