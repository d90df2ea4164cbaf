"""Arrays and counts whose size a model's attributes tell: made only while the budget lasts.

A converter makes an array of a size that it was told by these functions, which take the bytes of
it from the budget of the conversion before it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any as AnyValue

import numpy as np
import numpy.typing as npt

from serde.limits import budget
from serde.weights import Array

__all__ = ["arange", "eye", "full", "iterations", "linspace", "ones", "repeat", "tile", "zeros"]

Shape = int | Sequence[int]
DType = npt.DTypeLike


def full(shape: Shape, value: AnyValue, dtype: DType = None) -> Array:
    """Return an array with one value everywhere.

    Raises:
        LimitError: It would take more bytes of constants than are left.
    """
    kind = np.asarray(value).dtype if dtype is None else np.dtype(dtype)
    _draw(_size(shape), kind)
    return np.full(shape, value, kind)


def zeros(shape: Shape, dtype: DType = np.float64) -> Array:
    """Return an array of zeros; see :func:`full`."""
    return full(shape, 0, dtype)


def ones(shape: Shape, dtype: DType = np.float64) -> Array:
    """Return an array of ones; see :func:`full`."""
    return full(shape, 1, dtype)


def eye(rows: int, columns: int | None = None, k: int = 0, dtype: DType = np.float64) -> Array:
    """Return a matrix with ones on diagonal `k`; see :func:`full`."""
    _draw(rows * (rows if columns is None else columns), np.dtype(dtype))
    return np.eye(rows, columns, k, np.dtype(dtype))


def arange(
    start: AnyValue, stop: AnyValue = None, step: AnyValue = 1, dtype: DType = None
) -> Array:
    """Return evenly spaced values, as ``numpy.arange`` does; see :func:`full`."""
    first, last = (0, start) if stop is None else (start, stop)
    count = max(int(np.ceil((last - first) / step)), 0)
    _draw(count, np.dtype(np.float64))
    return np.arange(first, last, step, dtype)


def linspace(start: float, stop: float, num: int, *, endpoint: bool = True) -> Array:
    """Return `num` values from `start` to `stop`, as ``numpy.linspace`` does; see :func:`full`."""
    _draw(num, np.dtype(np.float64))
    return np.linspace(start, stop, num, endpoint)


def repeat(array: npt.ArrayLike, repeats: AnyValue, axis: int | None = None) -> Array:
    """Return an array with every entry repeated, as ``numpy.repeat`` does; see :func:`full`."""
    values = np.asarray(array)
    counts = np.asarray(repeats)
    length = values.size if axis is None else values.shape[axis]
    total = int(counts.sum()) * (length if counts.size == 1 else 1)
    _draw(total * (values.size // max(length, 1)), values.dtype)
    return np.repeat(values, repeats, axis)


def tile(array: npt.ArrayLike, reps: Shape) -> Array:
    """Return an array repeated along its axes, as ``numpy.tile`` does; see :func:`full`."""
    values = np.asarray(array)
    _draw(values.size * _size(reps), values.dtype)
    return np.tile(values, reps)


def iterations(count: int, what: str) -> range:
    """Return ``range(count)`` for a walk that makes a node, or more, a turn.

    Args:
        count: How many, as an attribute tells.
        what: What they make, as the subject of a sentence.

    Raises:
        LimitError: There are more than nodes may be made.
    """
    budget().draw("nodes", count, what)
    return range(count)


def _size(shape: Shape) -> int:
    return shape if isinstance(shape, int) else prod(map(int, shape))


def _draw(count: int, dtype: np.dtype[AnyValue]) -> None:
    budget().draw("constants", count * dtype.itemsize, f"an array of {count:,} {dtype}")
