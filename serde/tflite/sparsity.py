"""Sparse tensors: where the values stand that a file holds.

Source: schema.fbs, ``SparsityParameters``: axes are walked in an order, the blocks of some behind
them. Along each either all entries are there, or those that a row of segments and indices names.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from serde.core import Array, ArrayWeight, Weight
from serde.io.sparse import SparseWeight
from serde.tflite.flatbuffer import Table

__all__ = ["sparse_weight"]

_INDICES = {1: "<i4", 2: "<u2", 3: "u1"}
"""Types of segments and indices, by the kind of their table."""


def sparse_weight(
    table: Table, name: str, shape: tuple[int, ...], size: int, values: Callable[[int], Weight]
) -> Weight:
    """Return a sparse tensor as a dense one that is filled up when it is read.

    Args:
        table: What tells where values stand.
        name: Name of the tensor.
        shape: Its lengths.
        size: How many values there may be at most.
        values: Returns the values, given how many there are.

    Raises:
        FormatError: The parts do not fit.
        LimitError: The dense tensor would be out of proportion to what is stored.
    """
    places = _places(table, shape, size)
    stored = values(len(places))
    flat = places @ np.array([int(np.prod(shape[i + 1 :])) for i in range(len(shape))], np.int64)
    if (np.diff(flat) < 0).any():
        order = np.argsort(flat, kind="stable")
        flat, stored = flat[order], ArrayWeight(stored.array()[order])
    return SparseWeight(name, shape, stored, ArrayWeight(flat))


def _places(table: Table, shape: tuple[int, ...], size: int) -> Array:
    """Return the place along every axis of each value."""
    order, blocked = (list(map(int, table.numbers(slot, "<i4"))) for slot in (4, 6))
    levels, rank = table.tables(8), len(shape)
    if sorted(order) != list(range(rank + len(blocked))) or len(levels) != len(order) or not rank:
        raise table.fault(f"expected an order of {rank + len(blocked)} axes, found {order[:40]}")
    if not set(blocked) <= set(range(rank)) or len(set(blocked)) < len(blocked):
        raise table.fault(f"expected blocks of {rank} axes, found {blocked[:40]}")
    walked: dict[int, Array] = {}
    count = 1
    for axis, level in zip(order, levels, strict=True):
        repeats, along = _level(level, count, size)
        walked = {each: np.repeat(found, repeats) for each, found in walked.items()}
        walked[axis], count = along, len(along)
    sizes = [1] * rank
    for number, axis in enumerate(blocked):
        sizes[axis] = levels[order.index(rank + number)].number(6, "i")
    found = [walked[axis] * sizes[axis] for axis in range(rank)]
    for number, axis in enumerate(blocked):
        found[axis] = found[axis] + walked[rank + number]
    places = np.stack(found, axis=1).astype(np.int64)
    if (places < 0).any() or (places >= np.array(shape)).any():
        raise table.fault(f"a sparse value outside {list(shape)}")
    return places


def _level(level: Table, count: int, size: int) -> tuple[Array | int, Array]:
    """Return how many entries each one before has along a further axis, and where they stand."""
    if not level.number(4, "b"):
        length = level.number(6, "i")
        if length < 0 or count * length > size:
            raise level.fault(f"{count} times {length} entries of at most {size}")
        return length, np.tile(np.arange(length), count)
    segments, indices = _numbers(level, 8), _numbers(level, 12)
    if len(segments) != count + 1 or segments[0] or segments[-1] != len(indices):
        raise level.fault(f"segments of {count} rows that do not fit {len(indices)} indices")
    lengths = np.diff(segments)
    if (lengths < 0).any():
        raise level.fault("segments that do not ascend")
    return lengths, indices


def _numbers(level: Table, slot: int) -> Array:
    kind, found = level.number(slot, "B"), level.table(slot + 2)
    if found is None or kind not in _INDICES:
        raise level.fault("an axis without indices")
    return found.numbers(4, _INDICES[kind]).astype(np.int64)
