"""Parts of what operators compute that only some inputs reach, as declarations state them.

A rule of :class:`~serde.relay.ir.traits.Cases` looks at a call's attributes, its operands and its
result, and yields each part with whether any element reached it. What only guards against numbers
that nothing reaches, such as a clip to the range of a dtype, is no part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any as AnyValue

import numpy as np

from serde.relay.ir.traits import CaseRule

__all__ = ["boxes_suppressed", "clipped", "either_operand", "rows_suppressed", "scores_valid"]

Attrs = Mapping[str, AnyValue]

_GUARD = 65504.0
"""The largest float16: a limit from here on guards a range."""


def clipped(
    low: str | float, high: str | float, factor: str = "", term: str | float = 0.0
) -> CaseRule:
    """Return a rule: floats are cut below `low` and above `high`, numbers or attributes.

    Args:
        low: The least value.
        high: The greatest value.
        factor: Attribute by which the operand is multiplied first.
        term: Number, or attribute, that is added then.
    """

    def rule(attrs: Attrs, args: AnyValue, _result: AnyValue) -> Iterator[tuple[str, bool]]:
        given = [attrs[each] if isinstance(each, str) else each for each in (low, high, term)]
        value = args[0]
        if value.dtype.kind == "f" and value.size:
            value = value * (attrs[factor] if factor else 1.0) + given[2]
            if abs(given[0]) < _GUARD:
                yield f"below {given[0]:g}", bool((value < given[0]).any())
            if abs(given[1]) < _GUARD:
                yield f"above {given[1]:g}", bool((value > given[1]).any())

    return rule


def either_operand(_attrs: Attrs, args: AnyValue, result: AnyValue) -> Iterator[tuple[str, bool]]:
    """Yield whether each of two operands gives some elements; one that guards is none."""
    first, second = args
    if result.dtype.kind != "f":
        return
    for place, (own, other) in enumerate(((first, second), (second, first))):
        if own.size and other.size and np.abs(own).min() < _GUARD > np.abs(other).min():
            taken = (own == result) & (own != other)
            yield f"operand {place}", bool(taken.any())


def scores_valid(_attrs: Attrs, args: AnyValue, result: AnyValue) -> Iterator[tuple[str, bool]]:
    """Yield whether some rows pass a threshold, and some do not."""
    yield "a row above the threshold", bool((result[0] > 0).any())
    yield "a row below the threshold", bool((result[0] < args[0].shape[1]).any())


def rows_suppressed(count: int | None = None) -> CaseRule:
    """Return a rule: some rows stay, and some of those that count are marked by -1.

    Args:
        count: Operand that tells how many rows of each image count; all of them if left out.
    """

    def rule(_attrs: Attrs, args: AnyValue, result: AnyValue) -> Iterator[tuple[str, bool]]:
        first = result[0] if isinstance(result, tuple) else result
        stays = first[..., 0] >= 0 if first.ndim > 2 else first >= 0
        rows = stays.size if count is None else int(args[count].sum())
        yield "a row that stays", bool(stays.any())
        yield "a row suppressed", int(stays.sum()) < rows

    return rule


def boxes_suppressed(_attrs: Attrs, args: AnyValue, result: AnyValue) -> Iterator[tuple[str, bool]]:
    """Yield whether scores lie on both sides of their threshold, and overlaps decide."""
    _boxes, scores, most, _overlap, least = args
    # What is left out is None, or an empty tuple.
    bound = np.max(least) if np.size(least) and least is not None else -np.inf
    limit = np.max(most) if np.size(most) and most is not None else 0
    above = (scores > bound).sum(-1)
    if limit > 0:
        above = np.minimum(above, limit)
    kept = int(result[-1].sum()) if isinstance(result, tuple) else len(result)
    if np.isfinite(bound):
        yield "a score below the threshold", bool((scores <= bound).any())
    yield "a box that stays", kept > 0
    yield "a box suppressed", kept < int(above.sum())
