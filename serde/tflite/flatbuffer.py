"""Tables of a FlatBuffer, each read checked against the file before anything is trusted.

LiteRT's schema knows the fields; FlatBuffers' package for Python has no verifier. The layout is
that of https://flatbuffers.dev/internals: a table begins with the distance to its vtable, which
holds the sizes and the position of every field.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import Array
from serde.errors import FormatError
from serde.io.cursor import Cursor

__all__ = ["Table", "root_table"]

_MOST_TEXT: Final = 2**20
"""Bytes of a text: of a name, or of a description."""


class _Visits:
    """Counts the tables and elements read: a file whose tables share bytes could claim any number.

    Every table takes at least four bytes and four more in what refers to it.
    """

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self._left = cursor.size // 2 + 1024

    def draw(self, count: int, position: int) -> None:
        self._left -= count
        if self._left < 0:
            found = "more tables than bytes: they overlap"
            raise FormatError(found, path=self.cursor.path, offset=position)


class Table:
    """A table at a position.

    It answers as ``flatbuffers.table.Table`` does, so that accessors of a schema can read it.

    Raises:
        FormatError: It is not sound; as all methods do.
    """

    def __init__(self, visits: _Visits, position: int) -> None:
        self._visits = visits
        self._cursor = visits.cursor
        self.Pos = position
        visits.draw(1, position)
        self._vtable = position - self._scalar("<i", position)
        if self._vtable == position:
            raise self.fault("a table that is its own vtable")
        self._slots, self._length = struct.unpack("<HH", self._read(self._vtable, 4))
        if self._slots < 4 or self._slots % 2 or self._length < 4:
            raise self.fault("a vtable of impossible lengths", self._vtable)
        self._read(self._vtable + self._slots - 2, 2)
        self._read(position + self._length - 1, 1)

    def fault(self, message: str, position: int | None = None) -> FormatError:
        """Return an error about this table."""
        where = self.Pos if position is None else position
        return FormatError(message, path=self._cursor.path, offset=max(where, 0))

    def _read(self, position: int, count: int) -> bytes:
        if position < 0:
            raise self.fault("a reference to what is before the file")
        self._cursor.at = min(position, self._cursor.size)
        return self._cursor.take(count, "a table")

    def _scalar(self, layout: str, position: int) -> AnyValue:
        return struct.unpack(layout, self._read(position, struct.calcsize(layout)))[0]

    # As accessors of a schema call it.

    def Offset(self, slot: int) -> int:  # noqa: N802
        """Return where in the table a field is, 0 where it has its default."""
        if slot + 2 > self._slots:
            return 0
        found = int(self._scalar("<H", self._vtable + slot))
        if found >= self._length:
            raise self.fault(f"a field at byte {found} of a table of {self._length}")
        return found

    def Get(self, flags: AnyValue, position: int) -> AnyValue:  # noqa: N802
        """Return a number at a position."""
        found = np.frombuffer(self._read(int(position), flags.bytewidth), flags.name.lower())[0]
        return flags.py_type(found)

    def Vector(self, offset: int) -> int:  # noqa: N802
        """Return where the first element of a vector is."""
        return self._target(self.Pos + int(offset)) + 4

    def VectorLen(self, offset: int) -> int:  # noqa: N802
        """Return how many elements a vector has, of a byte at least."""
        start = self.Vector(offset)
        count = int(self._scalar("<I", start - 4))
        self._visits.draw(0, start)
        if count > self._cursor.size - start:
            raise self.fault(f"a vector of {count} elements beyond the end of the file", start)
        return count

    def GetVectorAsNumpy(self, flags: AnyValue, offset: int) -> Array:  # noqa: N802
        """Return the numbers of a vector."""
        return self._array(int(offset), np.dtype(flags.name.lower()))

    def String(self, position: int) -> bytes:  # noqa: N802
        """Return a text whose reference is at a position."""
        start = self._target(int(position))
        count = int(self._scalar("<I", start))
        if count > _MOST_TEXT:
            raise self.fault(f"expected a text of at most {_MOST_TEXT} bytes, found {count}", start)
        self._visits.draw(count // 64, start)
        return self._read(start + 4, count)

    def _target(self, position: int) -> int:
        """Return what a reference at a position refers to."""
        found = position + int(self._scalar("<I", position))
        if found == position:
            raise self.fault("a reference to itself", position)
        return found

    # By slots: 4 is the first field, each next one 2 more.

    def number(self, slot: int, layout: str, default: int = 0) -> int:
        """Return a field that is a number, of a layout of ``struct``."""
        offset = self.Offset(slot)
        return self._scalar(f"<{layout}", self.Pos + offset) if offset else default

    def text(self, slot: int) -> str:
        """Return a field that is a text, empty where there is none."""
        offset = self.Offset(slot)
        if not offset:
            return ""
        return self.String(self.Pos + offset).decode("utf-8", "backslashreplace")

    def bytes_range(self, slot: int) -> tuple[int, int] | None:
        """Return where a field that is a vector of bytes lies: its position and length."""
        offset = self.Offset(slot)
        return (self.Vector(offset), self.VectorLen(offset)) if offset else None

    def numbers(self, slot: int, dtype: str) -> Array:
        """Return a field that is a vector of numbers."""
        offset = self.Offset(slot)
        return self._array(offset, np.dtype(dtype)) if offset else np.empty(0, dtype)

    def _array(self, offset: int, kind: np.dtype[AnyValue]) -> Array:
        start, count = self.Vector(offset), self.VectorLen(offset)
        self._visits.draw(count * kind.itemsize // 8, start)
        return np.frombuffer(self._read(start, count * kind.itemsize), kind)

    def table(self, slot: int) -> Table | None:
        """Return a field that is a table."""
        offset = self.Offset(slot)
        return Table(self._visits, self._target(self.Pos + offset)) if offset else None

    def tables(self, slot: int) -> Sequence[Table]:
        """Return a field that is a vector of tables."""
        offset = self.Offset(slot)
        if not offset:
            return []
        start, count = self.Vector(offset), self.VectorLen(offset)
        self._visits.draw(count, start)
        self._read(start, count * 4)
        return [Table(self._visits, self._target(start + 4 * i)) for i in range(count)]


def root_table(cursor: Cursor) -> Table:
    """Return the first table of a FlatBuffer.

    Raises:
        FormatError: It is not sound.
    """
    cursor.at = 0
    return Table(_Visits(cursor), cursor.u32("the position of the first table"))
