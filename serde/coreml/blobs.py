"""``weight.bin``: the values of an ML Program's constants.

A header of 64 bytes (count of records, version 2), then for each constant a record of 64
bytes and its data, both at multiples of 64; little-endian. A program refers to a constant by
the position of its record.

Source: the storage format of coremltools' MILBlob, checked against files that it wrote.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from serde.core import MAX_TENSORS, FileRange, FileWeight, OpenFile, Weight, expect
from serde.coreml.elements import Element
from serde.errors import FormatError
from serde.io.messages import Payload, PieceWriter
from serde.io.packed import PackedWeight, stored_chunks, stored_source

__all__ = ["BlobFile", "BlobLayout"]

ALIGNMENT = 64
VERSION = 2
SENTINEL = 0xDEADBEEF
_HEADER = struct.Struct("<II56x")
_RECORD = struct.Struct("<IIQQQ32x")


class BlobFile:
    """A ``weight.bin`` that is read.

    Args:
        opened: The file; it must stay open while constants are looked up.

    Raises:
        FormatError: It does not begin as such a file does.
    """

    def __init__(self, opened: OpenFile) -> None:
        self._opened = opened
        if opened.size < _HEADER.size:
            raise self._error(0, f"expected a header of {_HEADER.size} bytes, found {opened.size}")
        count, version = _HEADER.unpack(self._read_bytes(0, _HEADER.size))
        if version != VERSION or count > MAX_TENSORS:
            raise self._error(0, f"expected version {VERSION}, found {count} records, v{version}")

    def weight(self, offset: int, shape: tuple[int, ...], element: Element) -> Weight:
        """Return the constant whose record lies at `offset`.

        Raises:
            FormatError: There is no record of that type and size.
        """
        if offset % ALIGNMENT or not ALIGNMENT <= offset <= self._opened.size - _RECORD.size:
            raise self._error(
                offset,
                f"expected a record at a multiple of {ALIGNMENT} within {self._opened.size} bytes",
            )
        record = self._read_bytes(offset, _RECORD.size)
        sentinel, code, nbytes, start, spare = _RECORD.unpack(record)
        if sentinel != SENTINEL:
            raise self._error(offset, f"expected the mark {SENTINEL:#x}, found {sentinel:#x}")
        if code != element.blob:
            raise self._error(offset, f"expected {element.name}, found storage type {code}")
        size = int(np.prod(shape, dtype=object))
        wanted = f"{element.nbytes(size)} bytes for {element.name}{list(shape)}"
        if nbytes != element.nbytes(size):
            raise self._error(offset, f"expected {wanted}, found {nbytes}")
        # Before values narrower than a byte, with iOS18, nothing initialised the field.
        unused = nbytes * 8 - size * element.bits
        if element.bits % 8 and spare != unused:
            raise self._error(
                offset, f"expected {wanted}, of which {unused} bits are unused, found {spare}"
            )
        if start % ALIGNMENT or start < offset + _RECORD.size:
            raise self._error(offset, f"data at {start}, which no record may have")
        found = self._opened.range(start, nbytes)
        if element.bits % 8 == 0:
            return FileWeight(found, shape, element.dtype)
        packed = FileWeight(found, (nbytes,), "uint8")
        return PackedWeight(packed, shape, element.dtype, element.bits)

    def _read_bytes(self, start: int, count: int) -> bytes:
        buffer = bytearray(count)
        self._opened.read_into(buffer, start)
        return bytes(buffer)

    def _error(self, offset: int, message: str) -> FormatError:
        return FormatError(message, path=self._opened.path, offset=offset)


class BlobLayout:
    """A ``weight.bin`` that is being laid out: constants are added, then written in order."""

    def __init__(self) -> None:
        self._records: list[tuple[int, Element, Weight, str]] = []
        self._end = ALIGNMENT

    def add(self, weight: Weight, element: Element, name: str) -> int:
        """Append a constant and return the position of its record.

        Args:
            weight: Its values.
            element: Their type in the file.
            name: What it is called in messages.
        """
        offset = self._end
        self._records.append((offset, element, weight, name))
        end = offset + _RECORD.size + element.nbytes(weight.size)
        self._end = -(-end // ALIGNMENT) * ALIGNMENT
        return offset

    def __len__(self) -> int:
        return len(self._records)

    @property
    def sources(self) -> Iterable[FileRange]:
        """The file ranges that constants lie in."""
        found = (stored_source(weight) for _, _, weight, _ in self._records)
        return [each for each in found if each is not None]

    def write(self, path: Path) -> None:
        """Write the file, each constant moved in pieces of bounded length.

        Raises:
            FormatError: A file that constants lie in changed.
            ConverterBug: A constant is not as long as it says.
        """
        expect("bytes", sum(element.nbytes(each.size) for _, element, each, _ in self._records))
        with PieceWriter.open(path) as writer:
            writer.put(_HEADER.pack(len(self._records), VERSION))
            for offset, element, weight, name in self._records:
                nbytes = element.nbytes(weight.size)
                start = offset + _RECORD.size
                spare = nbytes * 8 - weight.size * element.bits
                writer.put(bytes(offset - writer.position))
                writer.put(_RECORD.pack(SENTINEL, element.blob, nbytes, start, spare))
                chunks = partial(stored_chunks, weight, element.bits)
                held = stored_source(weight, element.bits)
                writer.put_payload(Payload(name, nbytes, chunks, held))
