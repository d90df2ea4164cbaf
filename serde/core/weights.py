"""Weights: where the numbers of a model are until their bytes move.

A :class:`Weight` knows its shape and dtype and hands out its bytes in pieces
of at most :data:`serde.core.limits.CHUNK_BYTES`. It is a range of a file
(:class:`FileWeight`), an array in memory (:class:`ArrayWeight`) or, in
``serde.relay.run.computed``, an expression over other weights that is evaluated
when it is written. Bytes are row-major and little-endian.
"""

from __future__ import annotations

import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from serde.core.limits import CHUNK_BYTES
from serde.core.records import dataclass, field, replace
from serde.core.systems import open_to_read, read_at
from serde.errors import FormatError, OptionError

__all__ = [
    "ArrayWeight", "FileRange", "FileWeight", "ReshapedWeight", "Weight", "as_weight",
    "dtype_name", "empty_aligned", "numpy_dtype",
]  # fmt: skip

Array = np.ndarray[Any, np.dtype[Any]]

_DTYPE_NAME = re.compile("[<>=|]?[A-Za-z_][A-Za-z_0-9]*")

_EXTENDED = frozenset(
    {
        "bfloat16",
        "float4_e2m1fn",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "int2",
        "int4",
        "uint2",
        "uint4",
    }
)


def numpy_dtype(name: str | np.dtype[Any]) -> np.dtype[Any]:
    """Return the NumPy dtype called `name`; ml_dtypes supplies those NumPy lacks.

    A dtype is returned as it is.

    Raises:
        TypeError: There is no such dtype.
    """
    if isinstance(name, np.dtype):
        return name
    if name in _EXTENDED:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return _plain_dtype(name)


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype given as a name, a NumPy dtype or a scalar type.

    Raises:
        TypeError: `dtype` is none of these.
    """
    if isinstance(dtype, str):
        return dtype if dtype in _EXTENDED else _name(_plain_dtype(dtype))
    return _name(np.dtype(dtype))


@lru_cache(maxsize=256)
def _name(dtype: np.dtype[Any]) -> str:
    return dtype.name


@lru_cache(maxsize=256)
def _plain_dtype(name: str) -> np.dtype[Any]:
    """Return one of NumPy's own dtypes of numbers; its parser takes lists of fields as well."""
    found = np.dtype(name) if _DTYPE_NAME.fullmatch(name) else None
    if found is None or found.kind not in "biufc":
        raise TypeError(f"there is no dtype of numbers called {name[:100]!r}")
    return found


_ALIGNMENT = 64
"""In bytes: what frameworks that share an array's memory ask for at most."""


def empty_aligned(shape: Sequence[int], dtype: str) -> Array:
    """Return an array without values whose memory other frameworks can share."""
    count, kind = math.prod(shape), numpy_dtype(dtype)
    room = np.empty(count * kind.itemsize + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    return room[start : start + count * kind.itemsize].view(kind).reshape(shape)


def read_aligned(weight: Weight) -> Array:
    """Return the values of a weight, read piece by piece into :func:`empty_aligned` memory."""
    held = empty_aligned(weight.shape, weight.dtype)
    rows = held if weight.shape else held.reshape(1)
    for first, last in weight.row_ranges():
        rows[first:last] = weight.rows(first, last)
    return held


class Weight(ABC):
    """The values of one named tensor, wherever they are.

    Attributes:
        shape: Lengths of the axes.
        dtype: Name of the element type, such as ``"float32"``.
        sparse: Whether the source stores it sparsely, so that zeros are filled in.
    """

    shape: tuple[int, ...]
    dtype: str
    sparse: bool = False

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Number of bytes of the row-major values."""
        return self.size * numpy_dtype(self.dtype).itemsize

    @property
    def source(self) -> FileRange | None:
        """The file range that holds exactly these bytes, if there is one."""
        return None

    @property
    def held(self) -> int:
        """Number of bytes that lie in a file or in memory as they are, none computed."""
        return 0 if self.source is None else self.nbytes

    @abstractmethod
    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0 (of a scalar: the one there is).

        Raises:
            FormatError: The file no longer holds them.
        """

    def array(self) -> Array:
        """Return all values in an array that owns its memory."""
        value = self.rows(0, self.shape[0] if self.shape else 1)
        return value if value.flags.owndata else value.copy()

    def chunks(self) -> Iterator[memoryview]:
        """Yield the bytes in order, in pieces of at most ``CHUNK_BYTES``."""
        for start, stop in self.row_ranges():
            data = np.ascontiguousarray(self.rows(start, stop))
            yield from _pieces(data)

    def reshaped(self, shape: tuple[int, ...]) -> Weight:
        """Return the same values, row-major, in another shape of the same size."""
        return ReshapedWeight(self, shape)

    def row_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of axis 0 that are as long as a chunk allows, at least one row each."""
        if not self.shape:
            yield 0, 1
            return
        length = self.shape[0]
        if self.size == 0:
            return
        step = max(1, CHUNK_BYTES * length // max(1, self.nbytes))
        for start in range(0, length, step):
            yield start, min(start + step, length)


def _pieces(data: Array) -> Iterator[memoryview]:
    if data.size == 0:
        return
    view = data.reshape(-1).view(np.uint8).data
    for start in range(0, len(view), CHUNK_BYTES):
        yield view[start : start + CHUNK_BYTES]


@dataclass(frozen=True, slots=True)
class FileRange:
    """A run of bytes of a regular file, read without holding the file open.

    The file's identity is noted when the range is made, so that a file that
    is replaced, changed or cut while a conversion runs is found out.

    Attributes:
        path: The file.
        offset: First byte.
        length: Number of bytes.
        stamp: Device, inode, size and modification time (ns) at that moment.
        handle: A descriptor to read from instead of `path`, for a file without a name.
    """

    path: str
    offset: int
    length: int
    stamp: tuple[int, int, int, int] = field(compare=False)
    handle: OpenFile | None = field(default=None, compare=False, repr=False)

    def open(self) -> OpenFile:
        """Open the file for reading and make sure that it is still the same.

        Raises:
            FormatError: The file is gone, shorter or another one.
        """
        if self.handle is not None:
            return self.handle.duplicate()
        opened = OpenFile.open(self.path)
        if opened.stamp != self.stamp:
            opened.close()
            raise FormatError("the file changed while it was being read", path=self.path)
        return opened

    def read(self, start: int, stop: int) -> bytearray:
        """Return bytes `start` to `stop` of the range.

        Raises:
            FormatError: The file no longer holds them.
        """
        with self.open() as opened:
            buffer = bytearray(stop - start)
            opened.read_into(buffer, self.offset + start)
        return buffer

    def window(self) -> OpenFile:
        """Open the range as if it were a file of its own.

        Raises:
            FormatError: The file is gone, shorter or another one.
        """
        return OpenFile(self.open().fd, self.path, self)


class OpenFile:
    """A descriptor of a regular file, and reads at positions of it.

    Attributes:
        fd: The descriptor.
        path: The file.
        stamp: Device, inode, size and modification time (ns) when it was opened.
        names: Number of hard links at that moment.
        within: The range of the file whose bytes are all that there are; None for the whole.
    """

    __slots__ = ("fd", "names", "path", "stamp", "within")

    def __init__(self, fd: int, path: str, within: FileRange | None = None) -> None:
        self.fd = fd
        self.path = path
        self.within = within
        status = os.fstat(fd)
        self.stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        self.names = status.st_nlink if within is None else 1

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> OpenFile:
        """Open `path`, which must be a regular file.

        Raises:
            FormatError: It cannot be opened or is a directory, FIFO or device.
        """
        import stat

        name = os.fspath(path)
        fd = -1
        try:
            fd = open_to_read(name)
            if stat.S_ISREG(os.fstat(fd).st_mode):
                return cls(fd, name)
        except OSError as error:
            _close(fd)
            raise FormatError(f"cannot be read: {error.strerror}", path=name) from error
        _close(fd)
        raise FormatError("expected a regular file", path=name)

    @property
    def size(self) -> int:
        """Length in bytes when it was opened."""
        return self.stamp[2] if self.within is None else self.within.length

    def range(self, offset: int, length: int) -> FileRange:
        """Return the range of `length` bytes from `offset` on.

        Raises:
            FormatError: The file is shorter than that.
        """
        if offset < 0 or length < 0 or offset + length > self.size:
            raise FormatError(
                f"expected {length} bytes, found {max(0, self.size - offset)}",
                path=self.path,
                offset=offset,
            )
        if self.within is not None:
            return replace(self.within, offset=self.within.offset + offset, length=length)
        return FileRange(self.path, offset, length, self.stamp)

    def read_into(self, buffer: bytearray | memoryview | Array, offset: int) -> None:
        """Fill `buffer` from position `offset`.

        Raises:
            FormatError: The file ends before that, or its bytes cannot be read.
        """
        raw = buffer.data if isinstance(buffer, np.ndarray) else memoryview(buffer)
        view = raw.cast("B")
        offset += 0 if self.within is None else self.within.offset
        done = 0
        while done < len(view):
            part = view[done : done + CHUNK_BYTES]
            try:
                count = read_at(self.fd, part, offset + done)
            except OSError as error:
                raise FormatError(
                    f"cannot be read: {error.strerror}", path=self.path, offset=offset + done
                ) from error
            if count == 0:
                raise FormatError(
                    f"expected {len(view)} bytes, found {done}", path=self.path, offset=offset
                )
            done += count

    def check_unchanged(self) -> None:
        """Make sure that nothing was written to the file since it was opened.

        Raises:
            FormatError: It changed, or that cannot be known.
        """
        try:
            status = os.fstat(self.fd)
        except OSError as error:
            raise FormatError(f"cannot be read: {error.strerror}", path=self.path) from error
        if (status.st_size, status.st_mtime_ns) != self.stamp[2:]:
            raise FormatError("the file changed while it was being read", path=self.path)

    def duplicate(self) -> OpenFile:
        """Return a second descriptor of the same open file.

        Raises:
            FormatError: The system has no more of them.
        """
        fd = -1
        try:
            fd = os.dup(self.fd)
            return OpenFile(fd, self.path)
        except OSError as error:
            _close(fd)
            raise FormatError(f"cannot be read: {error.strerror}", path=self.path) from error

    def close(self) -> None:
        """Close the descriptor."""
        _close(self.fd)

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _close(fd: int) -> None:
    """Close a descriptor that was only read from, whose closing can lose nothing."""
    with suppress(OSError):
        os.close(fd)


class FileWeight(Weight):
    """A weight whose bytes lie in a file, little-endian and row-major."""

    def __init__(self, range_: FileRange, shape: tuple[int, ...], dtype: str) -> None:
        self.shape = shape
        self.dtype = dtype
        self._range = range_
        if range_.length != self.nbytes:
            raise FormatError(
                f"expected {self.nbytes} bytes for {dtype}{list(shape)}, found {range_.length}",
                path=range_.path,
                offset=range_.offset,
            )

    @property
    def source(self) -> FileRange:
        """The range of the file."""
        return self._range

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0, read from the file."""
        dtype = numpy_dtype(self.dtype)
        shape = (stop - start, *self.shape[1:]) if self.shape else ()
        row = math.prod(self.shape[1:]) * dtype.itemsize
        value = np.empty(shape, dtype)
        with self._range.open() as opened:
            opened.read_into(value.reshape(-1).view(np.uint8), self._range.offset + start * row)
        return value

    def reshaped(self, shape: tuple[int, ...]) -> Weight:
        """Return the same file range in another shape."""
        return FileWeight(self._range, shape, self.dtype)

    def chunks(self) -> Iterator[memoryview]:
        """Yield the bytes as they lie in the file."""
        with self._range.open() as opened:
            for start in range(0, self._range.length, CHUNK_BYTES):
                buffer = bytearray(min(CHUNK_BYTES, self._range.length - start))
                opened.read_into(buffer, self._range.offset + start)
                yield memoryview(buffer)


class ArrayWeight(Weight):
    """A weight that is an array in memory; the array is not copied."""

    def __init__(self, value: Array) -> None:
        self.shape = value.shape
        self.dtype = dtype_name(value.dtype)
        self._value = value

    @property
    def held(self) -> int:
        """Number of bytes of the array."""
        return self.nbytes

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0, a view where the byte order is ours."""
        value = self._value[start:stop] if self.shape else self._value
        return value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))

    def array(self) -> Array:
        """Return a copy of the values."""
        return np.array(self._value, self._value.dtype.newbyteorder("="), order="C")


class ReshapedWeight(Weight):
    """The values of another weight in another shape."""

    def __init__(self, base: Weight, shape: tuple[int, ...]) -> None:
        if math.prod(shape) != base.size:
            raise ValueError(f"{list(base.shape)} cannot have the shape {list(shape)}")
        self.shape = shape
        self.dtype = base.dtype
        self._base = base

    @property
    def source(self) -> FileRange | None:
        """The file range of the base."""
        return self._base.source

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop`; they alone are read where the base has this axis."""
        if self.shape and self._base.shape[:1] == self.shape[:1]:
            return self._base.rows(start, stop).reshape(stop - start, *self.shape[1:])
        value = self._base.array().reshape(self.shape)
        return value[start:stop] if self.shape else value

    def chunks(self) -> Iterator[memoryview]:
        """Yield the bytes of the base."""
        return self._base.chunks()


def as_weight(value: Any) -> Weight:
    """Return a weight, or what holds the values of an array, as a weight.

    Args:
        value: A weight; an array or scalar of NumPy; an array of a framework that gives its
            values by ``asnumpy()`` or ``numpy()``.

    Raises:
        OptionError: It is none of these.
    """
    if isinstance(value, Weight):
        return value
    if not isinstance(value, (np.ndarray, np.generic)):
        give = getattr(value, "asnumpy", None) or getattr(value, "numpy", None)
        value = give() if callable(give) else value
    if not isinstance(value, (np.ndarray, np.generic)):
        raise OptionError(f"expected an array, found {type(value).__name__}")
    array = np.asarray(value)
    if array.dtype.kind not in "biufc" and array.dtype.name not in _EXTENDED:
        raise OptionError(f"expected an array of numbers, found one of {array.dtype}")
    return ArrayWeight(array)
