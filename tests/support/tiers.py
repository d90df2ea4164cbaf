"""Which tests of a grid of parameters run first.

A test has a tier: without a mark it is part of ``make test``; ``wide`` tests run after it in
``.ci/run``; ``slow`` ones in ``make check-full`` only. Of a test whose parameters form a grid,
a covering part keeps its tier, and the rest is ``wide``: with three lists of parameters and more,
each pair of values of two lists is in that part; with two lists, or where the pairs are many, each
value. Of a test that has one parameter, a whole number such as a seed or a position in a file, an
eighth keeps its tier. Of what is left of a function marked ``thin(n)``, one in n does. Of the
`wide` tests of a function marked ``sparse(n)``, about one in n stays so, and the rest is ``slow``.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pytest

from serde.walk.table import ConverterTable

SMALL = 4
"""Grids of no more tests than these are left whole."""

PAIRS = 16
"""Of a grid whose pairs take more tests than these, each value is first, and not each pair."""

NUMBERS = 6
"""Of whole numbers in a list no fewer than these keep the tier of their test."""

Point = tuple[int, ...]


def versions_of_exporters(table: ConverterTable, name: str, versions: Sequence[int]) -> set[int]:
    """Return the newest of some versions, and each at which another exporter writes an operator.

    Args:
        table: The converters of a format.
        name: The operator of Relay.
        versions: Versions of the format.
    """
    newest_first = sorted(versions, reverse=True)
    exporters = [table.exporter(name, version) for version in newest_first]
    return {
        version
        for i, version in enumerate(newest_first)
        if not i or exporters[i] is not exporters[i - 1]
    }


def first_of(values: Iterable[Any], first: Collection[Any]) -> list[Any]:
    """Return parameters of which those not among `first` are `wide`."""
    return [
        pytest.param(each, marks=[] if each in first else [pytest.mark.wide]) for each in values
    ]


def tier_of(marks: Iterable[pytest.Mark]) -> str | None:
    """Return the tier that marks name; None for the first one."""
    names = {mark.name for mark in marks}
    return next((tier for tier in ("slow", "wide") if tier in names), None)


def covering(grid: Sequence[Point], strength: int) -> set[int]:
    """Choose few points that have every combination of `strength` coordinates of the grid.

    Args:
        grid: Points by their coordinates.
        strength: How many coordinates are combined: 1 for values, 2 for pairs.

    Returns:
        The places of the points chosen.
    """
    places = list(range(len(grid)))
    random.Random(len(grid)).shuffle(places)
    axes = list(itertools.combinations(range(len(grid[0])), strength))
    missing = {(axis, tuple(point[i] for i in axis)) for point in grid for axis in axes}
    chosen: set[int] = set()
    for wanted in range(len(axes), 0, -1):
        for place in places:
            gained = {(axis, tuple(grid[place][i] for i in axis)) for axis in axes} & missing
            if len(gained) >= wanted:
                missing -= gained
                chosen.add(place)
    return chosen


def first_of_numbers(count: int) -> set[int]:
    """Return the positions of the numbers of a list that keep the tier of their test, far apart."""
    kept = min(count, max(NUMBERS, count // 8))
    return {i * count // kept for i in range(kept)}


def first_of_grid(points: Sequence[Point]) -> set[int]:
    """Return the places of the points of a grid that keep the tier of their test."""
    if not points:
        return set()
    columns = list(dict.fromkeys(zip(*points, strict=True)))
    if len(columns) < 2 or len(points) <= SMALL:
        return set(range(len(points)))
    grid = list(zip(*columns, strict=True))
    pairs = covering(grid, 2) if len(columns) > 2 else set()
    return pairs if 0 < len(pairs) <= PAIRS else covering(grid, 1)
