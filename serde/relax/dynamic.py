"""Tensors spread and reduced over lengths that only the run of a model shows.

TVM begins a reduction with its first element, so that it leaves the result of none as it finds it.
A length that is fixed is no matter: TVM's own operators know of those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, nan
from typing import Any as AnyValue, Final

from serde.relax.framework import Framework

__all__ = [
    "ELEMENTWISE", "REDUCTIONS", "broadcast_lengths", "make_fallback", "make_spread",
    "open_lengths",
]  # fmt: skip

ELEMENTWISE: Final = frozenset((
    "add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "divide", "equal",
    "floor_divide", "floor_mod", "greater", "greater_equal", "left_shift", "less", "less_equal",
    "log_add_exp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "mod",
    "multiply", "not_equal", "power", "right_shift", "subtract", "where",
))  # fmt: skip
"""Relax's operators of several tensors that broadcast against each other.

Of lengths that it cannot compare they have no shape, and then TVM writes no loops for them.
"""


def make_spread(framework: Framework) -> Callable[..., AnyValue]:
    """Return what spreads a tensor over lengths of 64 bits, an axis where its length is 1."""
    te, tir = framework.te, framework.tir

    def broadcast_to(x: AnyValue, lengths: Sequence[AnyValue]) -> AnyValue:
        offset = len(lengths) - len(x.shape)

        def one(*indices: AnyValue) -> AnyValue:
            own = []
            for length, place in zip(x.shape, indices[offset:], strict=True):
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


_NEUTRAL: Final[Mapping[str, float]] = {"sum": 0, "prod": 1, "mean": nan, "matmul": 0}
_EXTREMES: Final[Mapping[str, float]] = {"max": -inf, "min": inf}

REDUCTIONS: Final = frozenset((*_NEUTRAL, *_EXTREMES))
"""Relax's operators that go over axes and give a result of no elements."""


def open_lengths(
    op: str, shape: Sequence[AnyValue], attributes: Mapping[str, AnyValue]
) -> list[AnyValue]:
    """Return the lengths that a reduction goes over and that are not fixed.

    Args:
        op: Its name.
        shape: Lengths of its first operand.
        attributes: What else it is given.
    """
    axes = [-1] if op == "matmul" else attributes.get("axis")
    over = range(len(shape)) if axes is None else axes
    return [shape[each] for each in over if not isinstance(shape[each], int)]


def make_fallback(framework: Framework, op: str) -> Callable[..., AnyValue]:
    """Return what gives the result of a reduction, or that of no elements where a length is 0."""
    te, tir = framework.te, framework.tir

    def neutral(dtype: str) -> AnyValue:
        if op in _EXTREMES and "float" not in dtype:
            return tir.min_value(dtype) if op == "max" else tir.max_value(dtype)
        return tir.const({**_NEUTRAL, **_EXTREMES}[op], dtype)

    def reduced(x: AnyValue, *lengths: AnyValue) -> AnyValue:
        none = lengths[0] == 0
        for each in lengths[1:]:
            none = tir.Or(none, each == 0)

        def one(*indices: AnyValue) -> AnyValue:
            return tir.Select(none, neutral(str(x.dtype)), x(*indices))

        return te.compute(x.shape, one, name="reduced")

    return reduced
