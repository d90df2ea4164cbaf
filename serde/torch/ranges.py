"""Between which numbers a dimension lies, as a program says it of its symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serde.relay.ir.dims import Any, Dim, DimLike, FloorDiv, SymDim, as_dim

__all__ = ["Range", "bounds", "fixed_symbols", "other_lengths"]

Range = tuple[int, int | None]
"""The least and the greatest value of a symbol; None for no limit."""


def fixed_symbols(ranges: Mapping[str, Range]) -> dict[str, Dim]:
    """Return symbols that can have one value only."""
    return {name: low for name, (low, high) in ranges.items() if low == high}


def other_lengths(
    name: str,
    given: Sequence[DimLike],
    exported: Sequence[DimLike],
    ranges: Mapping[str, Range],
) -> list[str]:
    """Return what is wrong with lengths for which a program was not exported.

    Nothing is with the entries of a batch of one: no number in a program comes from them, but for
    literals of shapes, which :mod:`serde.conversion.opening` finds.
    """
    found = []
    for axis, (length, own) in enumerate(zip(given, exported, strict=True)):
        least, greatest = bounds(as_dim(own), ranges)
        if own == 1 and axis == 0:
            continue
        if isinstance(own, int) and length != own:
            found.append(
                f"axis {axis} of {name} is {length}, but the program was exported for {own}: "
                "numbers in it that come from this length stay as they are"
            )
        elif isinstance(length, int) and (
            (least is not None and length < least) or (greatest is not None and length > greatest)
        ):
            limit = f"from {least} to {greatest}" if greatest is not None else f"from {least} on"
            found.append(
                f"axis {axis} of {name} is {length}, but the program was exported for lengths "
                f"{limit}"
            )
    return found


def bounds(dim: Dim, ranges: Mapping[str, Range]) -> tuple[int | None, int | None]:
    """Return the least and the greatest value of a dimension, None where it is not known."""
    if isinstance(dim, int):
        return dim, dim
    if isinstance(dim, Any):
        return None, None
    low, high = _end(dim, ranges, greatest=False), _end(dim, ranges, greatest=True)
    return low, high


def _end(dim: Dim, ranges: Mapping[str, Range], *, greatest: bool) -> int | None:
    """Return one end; products of what is not negative grow with each of their factors."""
    if isinstance(dim, int):
        return dim
    if not isinstance(dim, SymDim):
        return None
    total = 0
    for monomial, count in dim.terms:
        value = 1
        for atom, power in monomial:
            least = _atom(atom, ranges, greatest=False)
            end = _atom(atom, ranges, greatest=True) if greatest == (count > 0) else least
            if end is None or least is None or least < 0:
                return None
            value *= end**power
        total += count * value
    return total


def _atom(atom: str | FloorDiv, ranges: Mapping[str, Range], *, greatest: bool) -> int | None:
    if isinstance(atom, str):
        return ranges[atom][int(greatest)] if atom in ranges else None
    above = _end(atom.numerator, ranges, greatest=greatest)
    below = _end(atom.denominator, ranges, greatest=not greatest)
    return None if above is None or not below or below < 0 else above // below
