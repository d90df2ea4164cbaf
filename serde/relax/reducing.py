"""Reductions over lengths that may be 0 when a model runs.

TVM begins a reduction with its first element, so that it leaves the result of none as it finds
it. A length that is fixed is no matter: TVM's own operators know of those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, nan
from typing import Any as AnyValue
from typing import Final

from serde.relax.framework import Framework

__all__ = ["REDUCTIONS", "make_fallback", "open_lengths"]

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

        def one(*places: AnyValue) -> AnyValue:
            return tir.Select(none, neutral(str(x.dtype)), x(*places))

        return te.compute(x.shape, one, name="reduced")

    return reduced
