"""Means of integers, and places of extremes along several axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from serde.errors import Unsupported
from serde.relay.ir import Dim, Expr, call, const, is_float, product, reduced_axes, tensor_type
from serde.relay.lowering.lengths import length_of, permuted, reshaped
from serde.relay.lowering.rules import NO_SIMPLER

__all__ = ["RULES"]


def _mean(data: Expr, *, axis: tuple[int, ...] | None, keepdims: bool, exclude: bool) -> Expr:
    """Return the mean of integers, a sum that is divided towards zero."""
    type_ = tensor_type(data)
    axes = reduced_axes(type_.rank, axis, exclude)
    if not axes:
        return data
    if is_float(type_.dtype):
        raise Unsupported(NO_SIMPLER)
    total = call("sum", data, axis=axes, keepdims=keepdims)
    size = product(type_.shape[each] for each in axes)
    if isinstance(size, int):
        return call("divide", total, const(np.array(size).astype(type_.dtype), type_.dtype))
    return call("divide", total, call("sum", call("ones_like", data), axis=axes, keepdims=keepdims))


def _make_place(name: str) -> Callable[..., Expr]:
    def place(
        data: Expr,
        *,
        axis: tuple[int, ...] | None,
        keepdims: bool,
        select_last_index: bool,
        exclude: bool,
    ) -> Expr:
        """Several axes become one; the last of equals is the first backwards."""
        rank = tensor_type(data).rank
        axes = reduced_axes(rank, axis, exclude)
        if len(axes) == 1 and not select_last_index:
            raise Unsupported(NO_SIMPLER)
        if len(axes) == 1:
            last = call("subtract", length_of(data, axes[0], "int32"), const(1, "int32"))
            first = call(name, call("reverse", data, axis=axes[0]), axis=axes, keepdims=keepdims)
            return call("subtract", last, first)
        kept = [each for each in range(rank) if each not in axes]

        def join(shape: Sequence[Dim]) -> list[Dim]:
            return [*(shape[each] for each in kept), product(shape[each] for each in axes)]

        rows = reshaped(permuted(data, [*kept, *axes]), data, join)
        found = call(name, rows, axis=(len(kept),), select_last_index=select_last_index)
        if not keepdims:
            return found
        return reshaped(found, data, lambda s: [1 if i in axes else n for i, n in enumerate(s)])

    return place


RULES: Final[dict[str, Callable[..., Expr]]] = {
    "argmax": _make_place("argmax"),
    "argmin": _make_place("argmin"),
    "mean": _mean,
}
"""What operators are made of where a target lacks a form of them."""
