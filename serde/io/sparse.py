"""Sparse tensors, filled up row by row when they are read.

There are values, and for each either its place in the row-major order of the dense tensor or its
place along every axis, ascending, as onnx.proto says of ``SparseTensorProto``.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from serde.core import MAX_ARCHIVE_RATIO, Array, Weight, numpy_dtype
from serde.core.allocation import allow_growth
from serde.errors import FormatError

__all__ = ["SparseWeight"]


class SparseWeight(Weight):
    """A tensor of which a file holds only some values; the others are zero.

    Args:
        name: Its name, for messages.
        shape: Lengths of the axes of the dense tensor.
        values: The values: ``(n,)``.
        indices: Where they stand, int64: ``(n,)`` or ``(n, rank)``.

    Raises:
        FormatError: The parts do not fit.
        LimitError: The dense tensor would be out of proportion to what is stored, and take more
            bytes of constants than are left.
    """

    sparse = True

    def __init__(self, name: str, shape: tuple[int, ...], values: Weight, indices: Weight) -> None:
        self.shape = shape
        self.dtype = values.dtype
        self._name = name
        self._values = values
        self._stored = indices
        wanted = ((values.size,), (values.size, len(shape)))
        if len(values.shape) != 1 or indices.dtype != "int64" or indices.shape not in wanted:
            raise self._error(
                f"{values.dtype}{list(values.shape)} values do not fit "
                f"{indices.dtype}{list(indices.shape)} indices"
            )
        stored = values.nbytes + indices.nbytes
        allow_growth(stored, self.nbytes, MAX_ARCHIVE_RATIO, f"sparse tensor {name!r}")

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0, zeros where nothing is stored.

        Raises:
            FormatError: The indices are out of order or range.
        """
        row = math.prod(self.shape[1:])
        shape = (stop - start, *self.shape[1:]) if self.shape else ()
        dense = np.zeros((stop - start) * row, numpy_dtype(self.dtype))
        bounds = (start * row, stop * row)
        low, high = (int(index) for index in np.searchsorted(self._flat_indices, bounds))
        if low < high:
            dense[self._flat_indices[low:high] - bounds[0]] = self._values.rows(low, high)
        return dense.reshape(shape)

    @cached_property
    def _flat_indices(self) -> Array:
        indices = self._stored.array()
        if indices.ndim == 2:
            lengths = np.array(self.shape, np.int64)
            if (indices < 0).any() or (indices >= lengths).any():
                raise self._error("an index is out of range")
            if not len(indices):
                return indices[:, 0] if indices.shape[1] else np.zeros(0, np.int64)
            steps = np.array([math.prod(self.shape[i + 1 :]) for i in range(len(self.shape))])
            indices = indices @ steps.astype(np.int64)
        if indices.size and (indices[0] < 0 or indices[-1] >= self.size):
            raise self._error("an index is out of range")
        if (np.diff(indices) <= 0).any():
            raise self._error("the indices do not ascend")
        return indices

    def _error(self, message: str) -> FormatError:
        return FormatError(f"sparse tensor {self._name!r}: {message}")
