"""Protobuf messages whose bulk data stays where it is: read without it, written around it.

What a message holds in its data fields is cut out before protobuf reads the
rest, and put back when the message is written, in pieces of bounded length.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from google.protobuf.message import Message

from serde.core import CHUNK_BYTES, MAX_PROTOBUF_BYTES, counting, dataclass, expect
from serde.core.weights import ArrayWeight, FileRange, FileWeight, OpenFile, Weight, numpy_dtype
from serde.errors import ConverterBug, FormatError
from serde.io.atomic import copy_range, write_all
from serde.io.wire import Cut, MessageLayout, Piece, Span, field_header, splice, total_length

__all__ = [
    "INLINE_BYTES", "FileSource", "MemorySource", "Payload", "PieceWriter", "Place", "cut_data",
    "piece_chunks", "place_payloads",
]  # fmt: skip

INLINE_BYTES = 1024
"""Data of at least this length stays where it is and becomes a weight."""


class FileSource:
    """The bytes of an open file."""

    def __init__(self, opened: OpenFile) -> None:
        self._opened = opened
        self.size = opened.size
        self.path: str | None = opened.path

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes `start` to `stop`."""
        buffer = bytearray(stop - start)
        self._opened.read_into(buffer, start)
        return bytes(buffer)

    def weight(self, start: int, stop: int, shape: tuple[int, ...], dtype: str) -> Weight:
        """Return what lies between two positions as a weight."""
        return FileWeight(self._opened.range(start, stop - start), shape, dtype)


class MemorySource:
    """Bytes in memory, which weights then refer to."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.size = len(data)
        self.path: str | None = None

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes `start` to `stop`."""
        return bytes(self._data[start:stop])

    def weight(self, start: int, stop: int, shape: tuple[int, ...], dtype: str) -> Weight:
        """Return what lies between two positions as a weight."""
        value = np.frombuffer(self._data[start:stop], numpy_dtype(dtype))
        return ArrayWeight(value.reshape(shape))


def cut_data(
    source: FileSource | MemorySource, layout: MessageLayout
) -> tuple[bytes, dict[str, Cut]]:
    """Return a message without its large data fields, and these by the path of their message.

    Args:
        source: The bytes.
        layout: Which fields are data.

    Raises:
        FormatError: The bytes are not a message, or one has data more than once.
    """
    cuts: dict[str, Cut] = {}

    def replace(cut: Cut) -> Sequence[Piece] | None:
        if cut.stop - cut.start < INLINE_BYTES:
            return None
        if cut.path in cuts:
            raise FormatError(
                f"{cut.path} has data more than once", path=source.path, offset=cut.start
            )
        cuts[cut.path] = cut
        return []

    pieces = splice(source, layout, enters=lambda a, b: b - a >= INLINE_BYTES, replace=replace)
    if total_length(pieces) > MAX_PROTOBUF_BYTES:
        raise FormatError(
            f"without its weights the model has {total_length(pieces)} bytes, more than the "
            f"{MAX_PROTOBUF_BYTES} that protobuf reads",
            path=source.path,
        )
    parts = [
        piece if isinstance(piece, bytes) else source.read(piece.start, piece.stop)
        for piece in pieces
        if isinstance(piece, (bytes, Span))
    ]
    return b"".join(parts), cuts


@dataclass(frozen=True, slots=True)
class Payload:
    """The bytes of one weight, not yet moved.

    Attributes:
        name: Name of the weight, for messages.
        length: How many bytes there are.
        chunks: Yields them in pieces of bounded length.
        source: The file range that holds exactly these bytes, if there is one.
    """

    name: str
    length: int
    chunks: Callable[[], Iterator[memoryview | bytes]]
    source: FileRange | None = None

    def __len__(self) -> int:
        return self.length

    def fault(self, found: int) -> ConverterBug:
        """Return the error of a weight that is not as long as it says."""
        return ConverterBug(
            f"weight {self.name}: expected {self.length} bytes, its chunks have {found}"
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a message a payload belongs.

    Attributes:
        mark: Puts given bytes into a data field there.
        number: Number of the field that the payload becomes.
        payload: The payload.
    """

    mark: Callable[[bytes], None]
    number: int
    payload: Payload


@dataclass(frozen=True, slots=True)
class _BufferSource:
    buffer: bytes
    size: int
    path: str | None = None

    def read(self, start: int, stop: int) -> bytes:
        return self.buffer[start:stop]


def place_payloads(
    message: Message, layout: MessageLayout, places: Sequence[Place]
) -> tuple[list[Piece], bytes]:
    """Serialise a message with payloads in it; return the pieces and what spans refer to.

    Each place first gets a few bytes that occur nowhere else, which are then found in the
    serialised message; so every field stands where protobuf itself would write it.
    """
    width = 12
    for salt in itertools.count():
        prefix = b"serde:%d:" % salt
        for index, place in enumerate(places):
            place.mark(prefix + b"%0*d" % (width, index))
        buffer = message.SerializeToString(deterministic=True)
        if buffer.count(prefix) == len(places):
            break

    def replace(cut: Cut) -> Sequence[Piece] | None:
        if not buffer.startswith(prefix, cut.start):
            return None
        place = places[int(buffer[cut.start + len(prefix) : cut.stop])]
        return [field_header(place.number, len(place.payload)), place.payload]

    pieces = splice(
        _BufferSource(buffer, len(buffer)),
        layout,
        enters=lambda start, stop: buffer.find(prefix, start, stop) >= 0,
        replace=replace,
    )
    return pieces, buffer


def piece_chunks(pieces: Sequence[Piece], buffer: bytes) -> Iterator[memoryview]:
    """Yield the bytes of a message, whose spans lie in `buffer`."""
    view = memoryview(buffer)
    for piece in pieces:
        if isinstance(piece, Span):
            yield view[piece.start : piece.stop]
        elif isinstance(piece, Payload):
            yield from (memoryview(chunk).cast("B") for chunk in piece.chunks())
        elif isinstance(piece, bytes):
            yield memoryview(piece)


class PieceWriter:
    """Writes pieces one after the other; small ones are gathered."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pending = bytearray()
        self.position = 0

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[PieceWriter]:
        """Open a new file and close it when the body is done."""
        with path.open("xb", buffering=0) as file:
            writer = cls(file.fileno())
            yield writer
            writer.flush()

    def put_pieces(self, pieces: Sequence[Piece], buffer: bytes) -> None:
        """Write the pieces of a message, whose spans lie in `buffer`."""
        view = memoryview(buffer)
        expect("bytes", sum(len(piece) for piece in pieces if isinstance(piece, Payload)))
        for piece in pieces:
            if isinstance(piece, Span):
                self.put(view[piece.start : piece.stop])
            elif isinstance(piece, Payload):
                self.put_payload(piece)
            elif isinstance(piece, bytes):
                self.put(piece)

    def put(self, data: bytes | memoryview) -> None:
        """Write bytes."""
        self.position += len(data)
        if len(data) + len(self._pending) > CHUNK_BYTES:
            self.flush()
        if len(data) > CHUNK_BYTES // 16:
            self.flush()
            write_all(self._fd, data)
        else:
            self._pending += data

    def put_payload(self, payload: Payload) -> None:
        """Write the bytes of a weight.

        Raises:
            FormatError: The file that it lies in changed.
            ConverterBug: It is not as long as it says.
        """
        if payload.source is not None:
            if payload.source.length != len(payload):
                raise payload.fault(payload.source.length)
            self.flush()
            copy_range(payload.source, self._fd)
            self.position += payload.source.length
            return
        start, count = self.position, counting("bytes")
        for chunk in payload.chunks():
            self.put(chunk)
            count(len(chunk))
            if self.position - start > len(payload):
                break
        if self.position - start != len(payload):
            raise payload.fault(self.position - start)

    def flush(self) -> None:
        """Write what was gathered."""
        write_all(self._fd, self._pending)
        self._pending = bytearray()
