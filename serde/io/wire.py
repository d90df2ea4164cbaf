"""The bytes of protobuf messages: where bulk data lies in them, and splicing.

Only the messages on the way to such data are entered; everything else is a
span that is copied as it is. So a file of any size is scanned in the time of
its graph, and the bytes of weights are never read.

Source: the protobuf encoding documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Protocol

from serde.core.records import dataclass, field
from serde.errors import FormatError

__all__ = [
    "ByteSource", "Cut", "MessageLayout", "Payload", "Piece", "Scanner", "Span", "WireField",
    "field_header", "splice", "total_length",
]  # fmt: skip

VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 = range(6)

MAX_DEPTH = 100
"""Deepest nesting of messages that protobuf reads."""

_WINDOW = 2**15
_MAX_FIELD = 2**29


@dataclass(frozen=True, slots=True)
class MessageLayout:
    """Which messages lead to data that is to stay where it is.

    Attributes:
        root: The message that a file consists of.
        children: For each message those in it that lead there: field number to name, message
            and whether it repeats.
        data: For each message the fields whose bytes are values as they lie in memory: field
            number to name.
    """

    root: str
    children: Mapping[str, Mapping[int, tuple[str, str, bool]]]
    data: Mapping[str, Mapping[int, str]]


class ByteSource(Protocol):
    """Bytes that are read by position."""

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    @property
    def path(self) -> str | None:
        """The file they lie in, if there is one."""
        ...

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes `start` to `stop`."""
        ...


@dataclass(frozen=True, slots=True)
class WireField:
    """One field of a message: its number and wire type, and its place in the source.

    Attributes:
        number: Field number.
        wire: Wire type.
        tag: Position of the tag.
        start: Position of the content.
        stop: Position after the content.
    """

    number: int
    wire: int
    tag: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A data field.

    Attributes:
        path: The message it is in, such as ``graph.initializer[3]``.
        field: Name of the field.
        start: Position of its content.
        stop: Position after its content.
    """

    path: str
    field: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of the source that stay as they are."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


class Payload(Protocol):
    """Bytes that come from elsewhere; their number is known."""

    def __len__(self) -> int: ...


Piece = Span | bytes | Payload


@cache
def _run_of(key: int) -> re.Pattern[bytes]:
    """Return what matches numbers of up to 64 bits that have a tag of one byte."""
    tag = re.escape(bytes([key]))
    return re.compile(
        rb"(?:" + tag + rb"(?:[\x80-\xff]{0,8}[\x00-\x7f]|[\x80-\xff]{9}[\x00\x01]))*"
    )


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field_header(number: int, length: int) -> bytes:
    """Return tag and length of a length-delimited field."""
    return _varint(number << 3 | LENGTH) + _varint(length)


class Scanner:
    """Reads fields by position, through a small window of the source."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._base = 0
        self._window = b""

    def fields(self, start: int, stop: int) -> Iterator[WireField]:
        """Yield the fields of the message between `start` and `stop`.

        Numbers of one field that follow each other, of which a file may hold millions, are
        yielded as one field.

        Raises:
            FormatError: The bytes are not fields that end at `stop`.
        """
        position = start
        while position < stop:
            tag = position
            key, position = self._read_varint(position, stop)
            number, wire = key >> 3, key & 7
            if not 0 < number < _MAX_FIELD or wire in (GROUP_END, 6, 7):
                raise self._error(tag, f"expected a protobuf field, found tag {key}")
            begin, end = self._content(number, wire, tag, position, stop)
            if wire == VARINT and key < 0x80:
                end = self._pass_run(key, end, stop)
            yield WireField(number, wire, tag, begin, end)
            position = end

    def _pass_run(self, key: int, position: int, stop: int) -> int:
        """Return the position after further numbers of a field, as far as the window shows."""
        offset, end = position - self._base, min(stop - self._base, len(self._window))
        found = _run_of(key).match(self._window, offset, end)
        return position if found is None else self._base + found.end()

    def _content(
        self, number: int, wire: int, tag: int, position: int, stop: int
    ) -> tuple[int, int]:
        """Return where the content of a field begins and ends."""
        begin = position
        if wire == VARINT:
            _, end = self._read_varint(position, stop)
        elif wire == LENGTH:
            length, begin = self._read_varint(position, stop)
            end = begin + length
        elif wire == GROUP:
            end = self._group_end(number, tag, position, stop)
        else:
            end = position + (8 if wire == FIXED64 else 4)
        if end > stop:
            raise self._error(
                tag, f"field {number} claims {end - begin} bytes, {stop - begin} remain"
            )
        return begin, end

    def _group_end(self, number: int, tag: int, position: int, stop: int) -> int:
        """Return the position after a group, whose fields are passed over."""
        open_groups = [number]
        while open_groups:
            if position >= stop:
                raise self._error(tag, f"group {number} has no end")
            key, position = self._read_varint(position, stop)
            inner, wire = key >> 3, key & 7
            if wire == GROUP:
                open_groups.append(inner)
                self._check_depth(len(open_groups), tag)
            elif wire == GROUP_END and inner == open_groups[-1]:
                open_groups.pop()
            elif wire in (VARINT, FIXED64, LENGTH, FIXED32) and 0 < inner < _MAX_FIELD:
                _, position = self._content(inner, wire, tag, position, stop)
            else:
                raise self._error(tag, f"group {number} holds tag {key}, which cannot be there")
        return position

    def _check_depth(self, depth: int, position: int) -> None:
        if depth > MAX_DEPTH:
            raise self._error(position, f"nested deeper than {MAX_DEPTH} messages")

    def _read_varint(self, position: int, stop: int) -> tuple[int, int]:
        """Return the number at `position` and the position after it."""
        offset = position - self._base
        if offset < 0 or offset + 10 > len(self._window):
            end = min(self._source.size, position + _WINDOW)
            self._window = self._source.read(position, end)
            self._base, offset = position, 0
        window = self._window
        if offset < len(window) and window[offset] < 0x80 and position < stop:
            return window[offset], position + 1
        value = shift = 0
        for index in range(offset, min(offset + 10, len(window))):
            byte = window[index]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                after = self._base + index + 1
                if after > stop or value >= 2**64:
                    break
                return value, after
            shift += 7
        raise self._error(position, "expected a number of at most 10 bytes within its message")

    def _error(self, position: int, message: str) -> FormatError:
        return FormatError(message, path=self._source.path, offset=position)


@dataclass(slots=True)
class _Frame:
    """A message that is being scanned, and the pieces that take its place."""

    kind: str
    path: str
    entry: WireField
    fields: Iterator[WireField]
    kept_from: int
    pieces: list[Piece] = field(default_factory=list)
    length: int = 0
    changed: bool = False

    def put(self, old: WireField, pieces: Sequence[Piece]) -> None:
        """Put `pieces` in the place of a whole field, tag included."""
        self.keep(old.tag)
        self.pieces.extend(pieces)
        self.length += sum(map(len, pieces))
        self.kept_from = old.stop
        self.changed = True

    def keep(self, stop: int) -> None:
        """Keep what lies between the last change and `stop`."""
        if stop > self.kept_from:
            self.pieces.append(Span(self.kept_from, stop))
            self.length += stop - self.kept_from


def splice(
    source: ByteSource,
    layout: MessageLayout,
    *,
    enters: Callable[[int, int], bool],
    replace: Callable[[Cut], Sequence[Piece] | None],
) -> list[Piece]:
    """Return the pieces of a message in which data fields are replaced.

    The lengths of all messages around a replaced field are computed anew.

    Args:
        source: The bytes of the message.
        layout: The kind of message it is, and which of its fields are data.
        enters: Whether to look into the message between two positions.
        replace: Gives the pieces that take the place of a whole data field; None keeps it.

    Raises:
        FormatError: The bytes are not a protobuf message, or nest too deep.
    """
    scanner = Scanner(source)
    whole = WireField(0, LENGTH, 0, 0, source.size)
    stack = [_Frame(layout.root, "", whole, scanner.fields(0, source.size), 0)]
    counts: dict[tuple[str, int], int] = {}
    while True:
        frame = stack[-1]
        entered = _advance(frame, layout, counts, enters, replace)
        if entered is not None:
            kind, path, entry = entered
            scanner._check_depth(len(stack), entry.tag)
            fields = scanner.fields(entry.start, entry.stop)
            stack.append(_Frame(kind, path, entry, fields, entry.start))
            continue
        frame.keep(frame.entry.stop)
        stack.pop()
        if not stack:
            return frame.pieces
        if frame.changed:
            header = field_header(frame.entry.number, frame.length)
            stack[-1].put(frame.entry, [header, *frame.pieces])


def _advance(
    frame: _Frame,
    layout: MessageLayout,
    counts: dict[tuple[str, int], int],
    enters: Callable[[int, int], bool],
    replace: Callable[[Cut], Sequence[Piece] | None],
) -> tuple[str, str, WireField] | None:
    """Scan on to the next message to enter; return its kind, path and field."""
    children = layout.children.get(frame.kind, {})
    data = layout.data.get(frame.kind, {})
    for item in frame.fields:
        if item.wire != LENGTH:
            continue
        child = children.get(item.number)
        if child is not None:
            name, kind, repeats = child
            index = counts.get((frame.path, item.number), 0)
            # A message given twice is merged by protobuf, so counting goes on.
            counts[frame.path, item.number] = index + 1
            if enters(item.start, item.stop):
                step = f"{name}[{index}]" if repeats else name
                return kind, f"{frame.path}.{step}" if frame.path else step, item
        elif item.number in data:
            cut = Cut(frame.path, data[item.number], item.start, item.stop)
            pieces = replace(cut)
            if pieces is not None:
                frame.put(item, pieces)
    return None


def total_length(pieces: Sequence[Piece]) -> int:
    """Return the number of bytes of all pieces."""
    return sum(map(len, pieces))
