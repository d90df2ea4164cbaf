"""Binary files read from front to back: bytes at positions, and weights that lie in them.

A file is read in small windows and its arrays become ranges of it; of bytes
in memory they become views. What does not fit is a ``FormatError`` there.
"""

from __future__ import annotations

import math
import struct
from typing import Protocol

import numpy as np

from serde.core import MAX_NAME_BYTES, ArrayWeight, FileWeight, OpenFile, Weight, numpy_dtype
from serde.errors import FormatError

__all__ = ["Cursor"]

_WINDOW = 4096


class _Bytes(Protocol):
    """Bytes at positions, and weights that lie in them."""

    path: str | None
    size: int

    def read(self, offset: int, count: int) -> bytes: ...

    def weight(self, offset: int, shape: tuple[int, ...], dtype: str) -> Weight: ...


class _FileBytes:
    """A file, read in small windows; arrays become ranges of it."""

    def __init__(self, opened: OpenFile) -> None:
        self.path: str | None = opened.path
        self.size = opened.size
        self._opened = opened
        self._start = 0
        self._window = b""

    def read(self, offset: int, count: int) -> bytes:
        skip = offset - self._start
        if skip < 0 or skip + count > len(self._window):
            buffer = bytearray(min(max(count, _WINDOW), self.size - offset))
            self._opened.read_into(buffer, offset)
            self._start, self._window, skip = offset, bytes(buffer), 0
        return self._window[skip : skip + count]

    def weight(self, offset: int, shape: tuple[int, ...], dtype: str) -> Weight:
        length = math.prod(shape) * numpy_dtype(dtype).itemsize
        return FileWeight(self._opened.range(offset, length), shape, dtype)


class _MemoryBytes:
    """Bytes in memory; arrays become views of them."""

    def __init__(self, data: bytes) -> None:
        self.path: str | None = None
        self.size = len(data)
        self._data = data

    def read(self, offset: int, count: int) -> bytes:
        return self._data[offset : offset + count]

    def weight(self, offset: int, shape: tuple[int, ...], dtype: str) -> Weight:
        kind = numpy_dtype(dtype)
        count = math.prod(shape)
        raw = np.frombuffer(self._data, np.uint8, count * kind.itemsize, offset)
        return ArrayWeight(raw.view(kind).reshape(shape))


class Cursor:
    """A position in a file or in bytes; what does not fit is an error there.

    Args:
        source: An open file, which must stay open while the cursor is used, or bytes.

    Attributes:
        at: The position.
        size: Number of all bytes.
        path: The file, if it is one.
    """

    def __init__(self, source: OpenFile | bytes) -> None:
        self._data: _Bytes = (
            _FileBytes(source) if isinstance(source, OpenFile) else _MemoryBytes(source)
        )
        self.at = 0
        self.size = self._data.size
        self.path = self._data.path

    @property
    def left(self) -> int:
        """Number of bytes from here to the end."""
        return self.size - self.at

    def head(self, count: int) -> bytes:
        """Return the first bytes of all, at most `count`, without moving."""
        return self._data.read(0, min(count, self.size))

    def take(self, count: int, what: str) -> bytes:
        """Return the next bytes.

        Raises:
            FormatError: There are fewer; the message says `what` they were to be.
        """
        self.require(count, what)
        value = self._data.read(self.at, count)
        self.at += count
        return value

    def require(self, count: int, what: str) -> None:
        """Make sure that so many bytes follow.

        Raises:
            FormatError: There are fewer.
        """
        if count > self.left:
            raise self.error(f"{what}: expected {count} bytes, found {self.left}")

    def numbers(self, form: str, what: str) -> tuple[int, ...]:
        """Return little-endian numbers, as :mod:`struct` names them."""
        form = "<" + form
        return struct.unpack(form, self.take(struct.calcsize(form), what))

    def u32(self, what: str) -> int:
        """Return an unsigned number of four bytes."""
        return self.numbers("I", what)[0]

    def i32(self, what: str) -> int:
        """Return a signed number of four bytes."""
        return self.numbers("i", what)[0]

    def u64(self, what: str) -> int:
        """Return an unsigned number of eight bytes."""
        return self.numbers("Q", what)[0]

    def name(self) -> str:
        """Return a name in UTF-8, which follows the number of its bytes.

        Raises:
            FormatError: It is too long, or not UTF-8.
        """
        length = self.u64("length of a name")
        if length > MAX_NAME_BYTES:
            raise self.error(f"a name of {length} bytes, at most {MAX_NAME_BYTES}", back=8)
        raw = self.take(length, "name")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self.error("a name that is not UTF-8", back=length) from None

    def weight(self, shape: tuple[int, ...], dtype: str, what: str) -> Weight:
        """Return the array that begins here, without reading its values, and pass over it."""
        count = math.prod(shape) * numpy_dtype(dtype).itemsize
        self.require(count, f"{what} of {dtype}{list(shape)}")
        value = self._data.weight(self.at, shape, dtype)
        self.at += count
        return value

    def error(self, message: str, *, back: int = 0) -> FormatError:
        """Return an error at this position, or `back` bytes before it."""
        return FormatError(message, path=self.path, offset=self.at - back)
