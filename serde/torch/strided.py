"""Tensors of which the elements do not lie in row-major order: views of a storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import CHUNK_BYTES, Array, FileRange, FileWeight, OpenFile, Weight, numpy_dtype

__all__ = ["StridedWeight", "is_contiguous", "is_same_view", "span", "view_of"]

_DENSE: Final = 4
"""A read takes at most so many times the bytes that are wanted, unless it is short."""
_SHORT: Final = 2**16
"""Bytes that are read at once whatever part of them is wanted."""


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements lie in row-major order without gaps."""
    expected = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length > 1 and stride != expected:
            return False
        expected *= length
    return True


def is_same_view(
    arguments: Mapping[str, AnyValue], shape: Sequence[AnyValue], strides: Sequence[AnyValue]
) -> bool:
    """Whether ``as_strided`` of a tensor is that tensor, which has a shape and strides.

    Decomposed programs have such calls where eager PyTorch gives an axis of one entry another
    stride than the decomposition does.
    """
    size, steps = arguments.get("size"), arguments.get("stride")
    if not isinstance(size, list) or not isinstance(steps, list):
        return False
    if size != list(shape) or len(steps) != len(strides) or arguments.get("storage_offset"):
        return False
    triples = zip(size, steps, strides, strict=True)
    return all(step == own for length, step, own in triples if length != 1)


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return how many elements of a storage lie between the first and the last, both included."""
    if 0 in shape:
        return 0
    pairs = zip(shape, strides, strict=True)
    return 1 + sum((length - 1) * stride for length, stride in pairs)


def view_of(
    storage: FileRange, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, dtype: str
) -> Weight:
    """Return a tensor in a file: the range itself where its elements are in order there.

    Args:
        storage: The bytes of which it is a view, which hold all of it.
        shape: Lengths of the axes, none of them 0.
        strides: Elements from one entry of an axis to the next, none of them negative.
        offset: Elements before the first.
        dtype: Name of the element type.
    """
    width = numpy_dtype(dtype).itemsize
    length = span(shape, strides) * width
    part = FileRange(
        storage.path, storage.offset + offset * width, length, storage.stamp, storage.handle
    )
    if is_contiguous(shape, strides):
        return FileWeight(part, shape, dtype)
    return StridedWeight(part, shape, strides, dtype)


class StridedWeight(Weight):
    """A view of bytes of a file: transposed, sliced or expanded.

    Args:
        storage: The bytes from the first element to the last.
        shape: Lengths of the axes, none of them 0.
        strides: Elements from one entry of an axis to the next, none of them negative.
        dtype: Name of the element type.
    """

    def __init__(
        self, storage: FileRange, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self._storage = storage
        self._strides = strides
        if storage.length != span(shape, strides) * numpy_dtype(dtype).itemsize:
            raise ValueError(f"{storage.length} bytes are no view {list(shape)} of {dtype}")

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0; what lies between others is passed over."""
        shape = (stop - start, *self.shape[1:]) if self.shape else ()
        first = start * self._strides[0] if self.shape else 0
        value = np.empty(shape, numpy_dtype(self.dtype))
        if value.size:
            with self._storage.open() as opened:
                self._fill(opened, value, first)
        return value

    def _fill(self, opened: OpenFile, out: Array, first: int) -> None:
        """Read the elements of a part of the tensor, which begins at element `first`."""
        # Entries of an expanded axis are all alike: one is read.
        alike = tuple(slice(0, 1) if not stride else slice(None) for stride in self._strides)
        pending = [(out[alike], first)]
        width = out.itemsize
        while pending:
            part, at = pending.pop()
            length = span(part.shape, self._strides) * width
            if length > _SHORT and (length > CHUNK_BYTES or length > _DENSE * part.nbytes):
                axis = max(range(part.ndim), key=lambda i: self._strides[i] * (part.shape[i] > 1))
                middle = part.shape[axis] // 2
                lower = (slice(None),) * axis + (slice(None, middle),)
                upper = (slice(None),) * axis + (slice(middle, None),)
                pending += [(part[upper], at + middle * self._strides[axis]), (part[lower], at)]
                continue
            raw = np.empty(length // width, out.dtype)
            opened.read_into(raw.view(np.uint8), self._storage.offset + at * width)
            steps = [stride * width for stride in self._strides]
            part[...] = np.lib.stride_tricks.as_strided(raw, part.shape, steps, writeable=False)
        if out.shape != out[alike].shape:
            out[...] = out[alike].copy()
