"""Parameters in sparse storage, densified row by row when they are read.

Storage as MXNet defines it: ``row_sparse`` holds some rows and their
ascending indices; ``csr`` holds for each row ascending columns and values.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np

from serde.core.allocation import allow_growth
from serde.core.limits import MAX_ARCHIVE_RATIO
from serde.core.weights import Array, Weight, numpy_dtype
from serde.errors import FormatError

__all__ = ["SparseWeight"]


class SparseWeight(Weight):
    """A tensor of which a file holds only some values; the others are zero.

    Its indices are read and checked when the first values are asked for.

    Args:
        storage: The kind of storage.
        shape: Lengths of the axes of the dense tensor.
        data: The stored values: ``(n, *shape[1:])``, or ``(n,)`` for csr.
        indices: Rows of the values, or columns for csr: ``(n,)``.
        indptr: For csr, where each row begins in `data`: ``(rows + 1,)``.
        path: The file, for messages.
        offset: Where in the file the array begins.

    Raises:
        LimitError: The dense tensor would be out of proportion to what is stored, and take more
            bytes of constants than are left.
    """

    sparse = True

    def __init__(
        self,
        storage: Literal["row_sparse", "csr"],
        shape: tuple[int, ...],
        data: Weight,
        indices: Weight,
        indptr: Weight | None = None,
        *,
        path: str | None = None,
        offset: int | None = None,
    ) -> None:
        """Take what is stored; what it claims to hold must be in proportion to it."""
        self.storage = storage
        self.shape = shape
        self.dtype = data.dtype
        self._data = data
        self._stored_indices = indices
        self._stored_indptr = indptr
        self._path = path
        self._offset = offset
        self._held = data.size or (indptr is not None and indptr.size)
        stored = data.nbytes + indices.nbytes
        allow_growth(stored, self.nbytes, MAX_ARCHIVE_RATIO, f"a {storage} array")

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0, zeros where nothing is stored.

        Raises:
            FormatError: The indices are out of order or range.
        """
        value = np.zeros((stop - start, *self.shape[1:]), numpy_dtype(self.dtype))
        if not value.size or not self._held:
            return value
        if self.storage == "row_sparse":
            low, high = (int(i) for i in np.searchsorted(self._row_indices, (start, stop)))
            if low < high:
                value[self._row_indices[low:high] - start] = self._data.rows(low, high)
            return value
        indptr, columns = self._csr_indices
        low, high = int(indptr[start]), int(indptr[stop])
        if low < high:
            rows = np.repeat(np.arange(stop - start), np.diff(indptr[start : stop + 1]))
            value[rows, columns[low:high]] = self._data.rows(low, high)
        return value

    @cached_property
    def _row_indices(self) -> Array:
        return self._ascending(self._stored_indices.array(), self.shape[0], "row")

    @cached_property
    def _csr_indices(self) -> tuple[Array, Array]:
        rows, columns = self.shape
        indptr = np.zeros(rows + 1, np.int64)
        if self._stored_indptr is not None and self._stored_indptr.size:
            indptr = self._stored_indptr.array().astype(np.int64)
        count = self._data.size
        if indptr[0] != 0 or indptr[-1] != count or np.any(np.diff(indptr) < 0):
            raise self._error(f"row pointers: expected to ascend from 0 to {count}")
        indices = self._stored_indices.array().astype(np.int64)
        self._check_range(indices, columns, "column")
        keys = np.repeat(np.arange(rows), np.diff(indptr)) * columns + indices
        self._ascending(keys, rows * columns, "column")
        return indptr, indices

    def _ascending(self, indices: Array, limit: int, what: str) -> Array:
        indices = indices.astype(np.int64)
        self._check_range(indices, limit, what)
        if np.any(np.diff(indices) <= 0):
            raise self._error(f"{what} indices: expected to ascend")
        return indices

    def _check_range(self, indices: Array, limit: int, what: str) -> None:
        if indices.size and (indices.min() < 0 or indices.max() >= limit):
            raise self._error(f"{what} indices: expected 0 to {limit - 1}")

    def _error(self, message: str) -> FormatError:
        return FormatError(f"{self.storage} array: {message}", path=self._path, offset=self._offset)
