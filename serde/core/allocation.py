"""Arrays and counts whose size a model's attributes tell: made only while the budget lasts.

A converter makes an array of a size that it was told by these functions, which take the bytes of
it from the budget of the conversion before it is made. What is no size at all, a negative one or
NaN, is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any as AnyValue, Final

import numpy as np
import numpy.typing as npt

from serde.core.limits import MAX_RANK, budget
from serde.core.weights import Array
from serde.errors import Unsupported

__all__ = [
    "allow", "allow_growth", "arange", "at_positions", "bincount", "broadcast_to", "eye",
    "full", "indices", "iterations", "linspace", "ones", "outer", "outer_sum", "pad",
    "positions", "repeat", "tile", "tri", "tril_indices", "zeros",
]  # fmt: skip

_MOST: Final = 2**58
"""NumPy has no array of more elements, be it one of which another length is 0."""

_PIECE: Final = 2**16
"""Elements that are computed at once where only the result is to be held whole."""

Shape = int | Sequence[int]
DType = npt.DTypeLike


def full(shape: Shape, value: AnyValue, dtype: DType = None) -> Array:
    """Return an array with one value everywhere.

    Raises:
        LimitError: It would take more bytes of constants than are left.
        Unsupported: There is no such array.
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
    _draw(_size((rows, rows if columns is None else columns)), np.dtype(dtype))
    return np.eye(rows, columns, k, np.dtype(dtype))


def tri(rows: int, columns: int | None = None, k: int = 0, dtype: DType = np.float64) -> Array:
    """Return a matrix with ones up to diagonal `k` and zeros above; see :func:`full`."""
    _draw(_size((rows, rows if columns is None else columns)), np.dtype(dtype))
    return np.tri(rows, columns, k, np.dtype(dtype))


def tril_indices(side: int) -> tuple[Array, Array]:
    """Return rows and columns of what is not above the diagonal of a square; see :func:`full`."""
    _draw(_size((2, side, side)), np.dtype(np.int64))
    rows, columns = np.tril_indices(side)
    return rows, columns


def indices(shape: Sequence[int]) -> Array:
    """Return the positions in a tensor along each of its axes, as ``numpy.indices`` does."""
    _draw(_size((len(shape), *shape)), np.dtype(np.int64))
    return np.indices(tuple(shape))


def arange(
    start: AnyValue, stop: AnyValue = None, step: AnyValue = 1, dtype: DType = None
) -> Array:
    """Return evenly spaced values, as ``numpy.arange`` does; see :func:`full`."""
    first, last = (0, start) if stop is None else (start, stop)
    count = _steps(first, last, step)
    _draw(count, np.dtype(np.float64))
    if not count and isinstance(first, int) and isinstance(step, int):
        return np.zeros(0, np.int64 if dtype is None else dtype)  # Be the ends beyond 64 bits.
    return np.arange(first, last, step, dtype)


def positions(count: int) -> Array:
    """Return the integers below `count`, to compute with and not to be kept.

    What is looked at for each node that asks, such as the places that a resize reads, counts as
    computed: it is no constant, and goes away.

    Raises:
        LimitError: There are more than may be computed, or be held at once.
        Unsupported: The number is negative.
    """
    budget().check("constants", _size(count) * 8, f"a row of {count:,} positions")
    budget().draw("elements", count, f"a row of {count:,} positions")
    return np.arange(count)


def at_positions(count: int, compute: Callable[[Array], Array]) -> Array:
    """Return what is computed of each of the integers below `count`; see :func:`positions`.

    Args:
        count: How many.
        compute: Returns an array for a row of positions, each entry from one position alone. It
            is called for one piece after another, so that no intermediate array is held whole.
    """
    rows = positions(count)
    if count <= _PIECE:
        return compute(rows)
    first = compute(rows[:_PIECE])
    found = np.empty(count, first.dtype)
    found[:_PIECE] = first
    for start in range(_PIECE, count, _PIECE):
        found[start : start + _PIECE] = compute(rows[start : start + _PIECE])
    return found


def linspace(start: float, stop: float, num: int, *, endpoint: bool = True) -> Array:
    """Return `num` values from `start` to `stop`, as ``numpy.linspace`` does; see :func:`full`."""
    _draw(_size(num), np.dtype(np.float64))
    return np.linspace(start, stop, num, endpoint)


def repeat(array: npt.ArrayLike, repeats: AnyValue, axis: int | None = None) -> Array:
    """Return an array with every entry repeated, as ``numpy.repeat`` does; see :func:`full`."""
    values = np.asarray(array)
    counts = np.asarray(repeats)
    length = values.size if axis is None else values.shape[axis]
    if counts.size and counts.min() < 0:
        raise Unsupported(f"a number of repetitions that is {counts.min()}")
    total = sum(map(int, counts.ravel())) * (length if counts.size == 1 else 1)
    _draw(total * (values.size // max(length, 1)), values.dtype)
    return np.repeat(values, repeats, axis)


def tile(array: npt.ArrayLike, reps: Shape) -> Array:
    """Return an array repeated along its axes, as ``numpy.tile`` does; see :func:`full`."""
    values = np.asarray(array)
    _draw(values.size * _size(reps), values.dtype)
    return np.tile(values, reps)


def broadcast_to(array: npt.ArrayLike, shape: Sequence[int]) -> Array:
    """Return an array in a shape that it broadcasts to; see :func:`full`."""
    values = np.asarray(array)
    held, ends = _size(shape), zip(reversed(values.shape), reversed(shape), strict=False)
    if values.ndim > len(shape) or any(own not in (1, wanted) for own, wanted in ends):
        raise Unsupported(f"{list(values.shape)} does not broadcast to {list(shape)}")
    _draw(held, values.dtype)
    return np.broadcast_to(values, shape)


def bincount(values: Array, minlength: int) -> Array:
    """Return how often each integer stands in an array, as ``numpy.bincount`` does.

    Args:
        values: Integers from 0 on.
        minlength: Least number of counts.

    Raises:
        LimitError: They would take more bytes of constants than are left.
        Unsupported: One of the integers is negative.
    """
    if values.size and values.min() < 0:
        raise Unsupported(f"an index that is {values.min()}")
    highest = int(values.max(initial=-1))
    _draw(max(highest + 1, _size(minlength)), np.dtype(np.int64))
    return np.bincount(values, minlength=minlength)


def pad(array: npt.ArrayLike, widths: Sequence[Sequence[int]], mode: AnyValue) -> Array:
    """Return an array with more entries around it, as ``numpy.pad`` does; see :func:`full`.

    Args:
        array: The array.
        widths: How many entries before and after, for each axis.
        mode: NumPy's name of what they are.
    """
    values = np.asarray(array)
    if any(width < 0 for pair in widths for width in pair):
        raise Unsupported(f"a padding of {list(map(tuple, widths))}")
    lengths = [length + sum(pair) for length, pair in zip(values.shape, widths, strict=True)]
    _draw(_size(lengths), values.dtype)
    return np.pad(values, widths, mode)


def outer(rows: Array, columns: Array) -> Array:
    """Return each product of an entry of one array and one of another, to compute with.

    It counts as :func:`positions` does; what is made of it and kept counts for itself.

    Args:
        rows: Numbers along one axis, which are the rows of the result.
        columns: Numbers along one axis.

    Raises:
        LimitError: There are more than may be computed, or be held at once.
    """
    count, what = rows.size * columns.size, f"{rows.size:,} times {columns.size:,} products"
    budget().check("constants", count * 8, what)
    budget().draw("elements", count, what)
    return np.outer(rows, columns)


def outer_sum(rows: Array, columns: Array) -> Array:
    """Return each sum of an entry of one array and one of another; see :func:`full`.

    Args:
        rows: Integers along one axis, which are the rows of the result.
        columns: Integers along one axis.
    """
    _draw(_size((rows.size, columns.size)), np.dtype(np.int64))
    return np.add.outer(rows, columns)


def allow(shape: Shape, dtype: DType = np.float64) -> None:
    """Take the bytes of an array that follows from smaller ones, as a table of products does.

    Args:
        shape: Its lengths.
        dtype: Its dtype.

    Raises:
        LimitError: It would take more bytes of constants than are left.
        Unsupported: There is no such array.
    """
    _draw(_size(shape), np.dtype(dtype))


def allow_growth(held: int, nbytes: int, times: int, what: str) -> None:
    """Take what a stored tensor has beyond some times the bytes that a file holds of it.

    Args:
        held: The bytes in the file.
        nbytes: The bytes of the tensor.
        times: How many times the former the latter may be for nothing.
        what: Which tensor, as the subject of a sentence.

    Raises:
        LimitError: It would take more bytes of constants than are left.
    """
    if nbytes > times * held:
        about = f"{what}, {nbytes:,} bytes of which {held:,} are stored,"
        budget().draw("constants", nbytes - times * held, about)


def iterations(count: int, what: str) -> range:
    """Return ``range(count)`` for a walk that makes a node, or more, a turn.

    Args:
        count: How many, as an attribute tells.
        what: What they make, as the subject of a sentence.

    Raises:
        LimitError: There are more than nodes may be made.
    """
    budget().draw("nodes", max(count, 0), what)
    return range(count)


def _size(shape: Shape) -> int:
    lengths = [shape] if isinstance(shape, int) else [int(each) for each in shape]
    if len(lengths) > MAX_RANK:
        raise Unsupported(f"an array of {len(lengths)} axes")
    held = math.prod(lengths)
    if min(lengths, default=0) < 0 or (not held and math.prod(filter(None, lengths)) > _MOST):
        raise Unsupported(f"an array of the lengths {lengths}")
    return held


def _steps(first: AnyValue, last: AnyValue, step: AnyValue) -> int:
    """Return how many values there are from one up to another, exactly where all are integers."""
    if all(isinstance(each, (int, np.integer)) for each in (first, last, step)) and step:
        return max(-((int(first) - int(last)) // int(step)), 0)
    try:
        return max(math.ceil((last - first) / step), 0)
    except (ArithmeticError, ValueError):
        raise Unsupported(f"values from {first} to {last} in steps of {step}") from None


def _draw(count: int, dtype: np.dtype[AnyValue]) -> None:
    budget().draw("constants", count * dtype.itemsize, f"an array of {count:,} {dtype}")
