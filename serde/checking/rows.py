"""Rows of detections, compared as a set in an order that may hang on rounding.

A table is what sorting or suppression yields: rows along one axis, the columns of one row in
one output or in several (classes, scores, boxes). Members are the tables of runs that differ
by rounding alone. A table is explained by them if each of its rows is a row of some member,
each row that all members have is there, and stands where members have it, give or take as
many places as there are rows that come and go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from serde.checking.distance import Distance, deviation, distance
from serde.core import Array, dataclass, replace

__all__ = ["Explanation", "explain_rows"]


_BEYOND = 0.05
"""Share of a table that rows may be that stood behind its end elsewhere."""


_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a table comes about.

    Attributes:
        fault: What members do not explain, empty if they do.
        rows: Number of rows of the exact table.
        moved: How many rows of the table stand elsewhere in the exact one, or not at all.
        apart: Distance of each column from the exact rows, or those of members, that it matches.
        columns: The exact columns.
        axis: Along which the rows lie.
    """

    fault: str
    rows: int
    moved: int
    apart: tuple[Distance, ...] = ()
    columns: tuple[Array, ...] = ()
    axis: int = 0


def explain_rows(
    table: Sequence[Array],
    exact: Sequence[Array],
    members: Sequence[Sequence[Array]],
    near: float,
    axis: int | None = None,
    *,
    in_place: bool = False,
) -> Explanation:
    """Return whether members explain the outputs of a table.

    Rows lie along the longest axis that the outputs have in common. Integers that stand for
    themselves, such as the classes of pixels, may also be explained along any other one.

    Args:
        table: Outputs of the target that have rows in common.
        exact: The same of the exact run.
        members: The same of each run that rounding has moved.
        near: Part of a column's deviation within which two rows are one.
        axis: Where rows lie; any that explains them if left out.
        in_place: Rows stay where they are, since nothing sorts them and none comes or goes.
    """
    found = Explanation("rows of another shape", 0, 0)
    for each in _axes(exact) if axis is None else (axis,):
        if any(_extents(a, each) != _extents(b, each) for a, b in zip(table, exact, strict=True)):
            continue
        tables = [_as_rows(values, each) for values in (table, exact, *members)]
        explained = replace(_explain(tables[0], tables[1], tables[2:], near, in_place), axis=each)
        if not explained.fault:
            return explained
        found = found if found.rows else explained
    return found


def _axes(exact: Sequence[Array]) -> list[int]:
    """Return the axes along which rows may lie, the longest first."""
    axes = sorted(range(_common_axes(exact)), key=lambda each: -exact[0].shape[each])
    return axes if all(array.dtype.kind in "iub" for array in exact) else axes[:1]


def _common_axes(arrays: Sequence[Array]) -> int:
    """Return how many leading axes all arrays have in common."""
    shapes = [array.shape for array in arrays]
    count = 0
    for lengths in zip(*shapes, strict=False):
        if len(set(lengths)) > 1:
            break
        count += 1
    return count


def _extents(array: Array, axis: int) -> tuple[int, ...]:
    """Return the shape but for the axis along which rows lie."""
    return (*array.shape[:axis], *array.shape[axis + 1 :]) if array.ndim > axis else (-1,)


def _as_rows(arrays: Sequence[Array], axis: int) -> Array:
    """Return arrays as one of tables, rows and columns, in float64."""
    lead = arrays[0].shape[:axis]
    count = math.prod(lead)
    parts = []
    for array in arrays:
        length = array.shape[axis]
        width = math.prod(array.shape[axis + 1 :])
        parts.append(np.asarray(array, np.float64).reshape(count, length, width))
    return np.concatenate(parts, axis=2)


def _explain(
    table: Array, exact: Array, members: Sequence[Array], near: float, in_place: bool
) -> Explanation:
    limits = np.array([_limit(exact[..., i], near) for i in range(exact.shape[2])])
    moved, faults, aligned = 0, [], []
    for index in range(len(exact)):
        others = [member[index] for member in members if member.shape[2] == exact.shape[2]]
        fault, count, rows = _explain_table(table[index], exact[index], others, limits, in_place)
        moved += count
        aligned.append(rows)
        faults += [fault] if fault else []
    rows = np.concatenate(aligned) if aligned else np.zeros((0, exact.shape[2]))
    given = table.reshape(-1, exact.shape[2])
    columns = range(exact.shape[2])
    return Explanation(
        faults[0] if faults else "",
        exact.shape[0] * exact.shape[1],
        moved,
        tuple(distance(given[:, i], rows[:, i]) for i in columns),
        tuple(exact[..., i] for i in columns),
    )


def _limit(column: Array, near: float) -> float:
    """Return how far apart two numbers of a column may be; classes and indices are never near."""
    limit = near * deviation(column)
    whole = bool(np.all(np.isfinite(column) & (column == np.rint(column))))
    return min(limit, 0.25) if whole else limit


def _explain_table(
    table: Array, exact: Array, members: Sequence[Array], limits: Array, in_place: bool
) -> tuple[str, int, Array]:
    """Return what is not explained of one table, how many rows moved, and what they match."""
    distinct, left = not in_place and _are_distinct(exact), np.arange(len(table))
    moved = _count_moved(exact, table, limits)
    aligned = table.copy()
    for pool in (exact, *members):
        found = _find_rows(pool, table[left], left, limits, anywhere=distinct)
        aligned[left[found >= 0]] = pool[found[found >= 0]]
        left = left[found < 0]
    if not moved and len(table) == len(exact):
        return "", 0, aligned
    if not distinct:
        fault = f"row {int(left[0])} is none that rounding makes" if len(left) else ""
        usual = max((_count_moved(exact, member, limits) for member in members), default=0)
        if not fault and moved > usual + _BEYOND * len(exact):
            fault = f"{moved} of {len(exact)} rows differ, of which rounding moves {usual}"
        return fault, moved, aligned
    return _find_misplaced(table, exact, members, limits, left), moved, aligned


def _count_moved(exact: Array, table: Array, limits: Array) -> int:
    """Return how many rows of a table are not those of the exact one at their place."""
    places = np.arange(len(table))
    return int(np.count_nonzero(_find_rows(exact, table, places, limits, anywhere=False) < 0))


def _find_misplaced(
    table: Array, exact: Array, members: Sequence[Array], limits: Array, left: Array
) -> str:
    """Return which row no member has, which that all have is missing, or stands where none has it.

    Where rows come and go, tables that are cut at a length get rows at their end that no member
    had room for.
    """
    own = np.arange(len(exact))
    where = [_find_rows(member, exact, own, limits) for member in members]
    firm = np.all([place >= 0 for place in where], axis=0) if where else np.ones(len(exact), bool)
    slack = int(np.count_nonzero(~firm)) + max(
        (abs(len(member) - len(exact)) for member in members), default=0
    )
    if len(left) > len(table) * _BEYOND or np.any(left < len(table) - slack):
        return f"row {int(left[0])} is none that rounding makes"
    low = np.min([own, *where], axis=0) - slack
    high = np.max([own, *where], axis=0) + slack
    back = _find_rows(table, exact, own, limits)
    lost = firm & (back < 0)
    if np.any(lost):
        return f"row {int(np.flatnonzero(lost)[0])} is missing"
    usual = float(np.median([np.count_nonzero(place < 0) for place in where])) if where else 0.0
    if np.count_nonzero(back < 0) > usual + max(1.0, _BEYOND * len(exact)):
        return f"row {int(np.flatnonzero(back < 0)[0])} and more are missing than rounding takes"
    astray = firm & ((back < low) | (back > high))
    return f"row {int(np.flatnonzero(astray)[0])} is out of order" if np.any(astray) else ""


def _are_distinct(rows: Array) -> bool:
    """Whether a row is told by its values; rows that only fill the table up are not counted."""
    found, counts = np.unique(rows, axis=0, return_counts=True)
    most = int(counts.max(initial=0))
    return len(found) - 1 >= (len(rows) - most) / 2


def _find_rows(
    pool: Array, rows: Array, positions: Array, limits: Array, *, anywhere: bool = True
) -> Array:
    """Return, for each row, the place of the pool's row that is near in every column, or -1.

    The row at the same place counts first, then the one with the nearest numbers, if it may be
    `anywhere`.
    """
    if not len(pool) or not len(rows):
        return np.full(len(rows), -1)
    there = np.clip(positions, 0, len(pool) - 1)
    at_home = _are_near(pool[there], rows, limits) & (positions < len(pool))
    found = np.where(at_home, positions, -1)
    away = np.flatnonzero(~at_home)
    if not len(away) or not anywhere:
        return found
    column = int(np.argmax([len(np.unique(pool[:, i])) for i in range(pool.shape[1])]))
    order = np.argsort(pool[:, column], kind="stable")
    keys = pool[order, column]
    lows = np.searchsorted(keys, rows[away, column] - limits[column], "left")
    highs = np.searchsorted(keys, rows[away, column] + limits[column], "right")
    for at, low, high in zip(away, lows, highs, strict=True):
        candidates = order[low:high]
        fits = candidates[_are_near(pool[candidates], rows[at], limits)]
        if len(fits):
            apart = np.nan_to_num(np.abs(pool[fits] - rows[at]) / np.maximum(limits, _TINY))
            found[at] = fits[np.lexsort((np.abs(fits - positions[at]), apart.max(axis=-1)))[0]]
    return found


def _are_near(left: Array, right: Array, limits: Array) -> Array:
    with np.errstate(invalid="ignore"):
        apart = np.abs(left - right)
    alike = (left == right) | (np.isnan(left) & np.isnan(right))
    return np.asarray((alike | (apart <= limits)).all(axis=-1))
