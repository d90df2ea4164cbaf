"""Tensors spread over larger shapes, also where only the run of a model shows which axes are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue
from typing import Final

from serde.relax.framework import Framework

__all__ = ["ELEMENTWISE", "broadcast_lengths", "make_spread"]

ELEMENTWISE: Final = frozenset((
    "add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "divide", "equal",
    "floor_divide", "floor_mod", "greater", "greater_equal", "left_shift", "less", "less_equal",
    "log_add_exp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "mod",
    "multiply", "not_equal", "power", "right_shift", "subtract", "where",
))  # fmt: skip
"""Relax's operators of several tensors that broadcast against each other.

Of lengths that it cannot compare they have no shape, and then TVM writes no loops for them.
"""


def make_spread(framework: Framework, lengths: Sequence[AnyValue]) -> Callable[..., AnyValue]:
    """Return what spreads a tensor over a shape, an axis where its length is 1.

    Args:
        framework: TVM.
        lengths: The shape, as numbers of 64 bits.
    """
    te, tir = framework.te, framework.tir

    def broadcast_to(x: AnyValue) -> AnyValue:
        offset = len(lengths) - len(x.shape)

        def one(*places: AnyValue) -> AnyValue:
            own = []
            for length, place in zip(x.shape, places[offset:], strict=True):
                fixed = getattr(length, "value", None)
                if fixed is None:
                    place = tir.Select(length == 1, tir.IntImm("int64", 0), place)
                own.append(0 if fixed == 1 else place)
            return x(*own)

        return te.compute(list(lengths), one, name="broadcast_to")

    return broadcast_to


def broadcast_lengths(framework: Framework, shapes: Sequence[Sequence[AnyValue]]) -> list[AnyValue]:
    """Return the shape that tensors have together.

    Args:
        framework: TVM.
        shapes: Those of the tensors, as integers and expressions of TIR.
    """
    found: list[AnyValue] = []
    for axis in range(-max(map(len, shapes)), 0):
        length: AnyValue = 1
        for shape in shapes:
            if len(shape) >= -axis:
                length = _broadcast(framework, length, shape[axis])
        found.append(length)
    return found


def _broadcast(framework: Framework, one: AnyValue, other: AnyValue) -> AnyValue:
    known, own = isinstance(one, int), isinstance(other, int)
    if own and other == 1:
        return one
    if known and (one == 1 or own):
        return other if one == 1 else one
    if known or own:  # What is not known is 1, or the same.
        return one if known else other
    if framework.are_equal(one, other):
        return one
    return framework.tir.Select(one == 1, other, one)
