"""Protobuf as a tree of fields; no schema is needed, so formats with one and without are alike."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fuzz.mutators.blob import mutate_blob
from fuzz.mutators.document import Document, Spot
from fuzz.mutators.values import FLOATS, some_float, some_integer, some_text

__all__ = ["ProtobufDocument", "read_message"]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

MOST_BYTES = 1 << 16
"""A longer field holds weights, and is not looked into."""

MOST_DEPTH = 60


@dataclass
class Field:
    """A field of a message.

    Attributes:
        number: Its number.
        wire: How its value is stored.
        value: An integer, bytes or, where the bytes are a message, its fields.
    """

    number: int
    wire: int
    value: int | bytes | list[Field]


def read_message(data: bytes, depth: int = 0) -> list[Field] | None:
    """Return the fields of a message, or None where the bytes are none."""
    found: list[Field] = []
    place = 0
    while place < len(data):
        read = _read_varint(data, place)
        if read is None or read[0] >> 3 == 0 or read[0] >> 3 > 1 << 20:
            return None
        key, place = read
        wire = key & 7
        value: int | bytes | list[Field]
        if wire == VARINT:
            read = _read_varint(data, place)
            if read is None:
                return None
            value, place = read
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
            value, place = data[place : place + size], place + size
        elif wire == BYTES:
            read = _read_varint(data, place)
            if read is None or read[0] > len(data) - read[1]:
                return None
            value = data[read[1] : sum(read)]
            place = sum(read)
            if 1 < len(value) <= MOST_BYTES and depth < MOST_DEPTH and not _is_text(value):
                inner = read_message(value, depth + 1)
                value = value if inner is None else inner
        else:
            return None
        if place > len(data):
            return None
        found.append(Field(key >> 3, wire, value))
    return found


def _is_text(data: bytes) -> bool:
    return min(data) >= 32 and max(data) < 127


def _read_varint(data: bytes, place: int) -> tuple[int, int] | None:
    value = 0
    for index in range(10):
        if place + index >= len(data):
            return None
        byte = data[place + index]
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value, place + index + 1
    return None


def _varint(value: int) -> bytes:
    value &= 2**64 - 1
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def _write(fields: list[Field]) -> bytes:
    made = []
    for field in fields:
        made.append(_varint(field.number << 3 | field.wire))
        value = field.value
        if isinstance(value, int):
            made.append(_varint(value))
        else:
            content = _write(value) if isinstance(value, list) else value
            made += [_varint(len(content))] * (field.wire == BYTES) + [content]
    return b"".join(made)


class ProtobufDocument(Document):
    """A file that is one message, or a part of one.

    Args:
        fields: Its fields.
    """

    name: ClassVar[str] = "protobuf"

    def __init__(self, fields: list[Field]) -> None:
        self.fields = fields

    def spots(self) -> Iterator[Spot]:
        """Yield every field."""
        return _spots(self.fields, ())

    def other_value(self, spot: Spot, rng: random.Random) -> Field:
        """Return the field with another value, rarely with another number or wire type."""
        field: Field = spot.part
        number, wire, value = field.number, field.wire, field.value
        if rng.randrange(12) == 0:
            return Field(some_integer(rng, number) % 64 or 1, wire, value)
        if isinstance(value, int):
            return Field(number, wire, some_integer(rng, value))
        if isinstance(value, list):
            return Field(number, wire, self._other_message(value, rng))
        if wire != BYTES:
            return Field(number, wire, _other_fixed(value, rng))
        if (value and _is_text(value)) or not value:
            return Field(number, wire, some_text(rng, value.decode()).encode())
        return Field(number, wire, _other_bytes(value, rng))

    def _other_message(self, fields: list[Field], rng: random.Random) -> bytes | list[Field]:
        kind = rng.randrange(6)
        if kind == 0:
            return b""
        if kind == 1:
            return [*fields, *fields]
        if kind == 2:
            return rng.sample(fields, len(fields))
        if kind == 3:
            content = _write(fields)
            return content[: rng.randrange(len(content) + 1)]
        if kind == 4:
            return [Field(rng.randrange(1, 30), BYTES, list(fields))]
        extra = Field(rng.randrange(1, 30), VARINT, some_integer(rng))
        return [*fields, extra]

    def content(self) -> bytes:
        """Return the message."""
        return _write(self.fields)


def _spots(fields: list[Field], path: tuple[int, ...]) -> Iterator[Spot]:
    for place, field in enumerate(fields):
        # Nested messages of one kind have paths that end alike.
        kind = (*path, field.number)[-3:]
        yield Spot(fields, place, kind)
        if isinstance(field.value, list):
            yield from _spots(field.value, kind)


def _other_fixed(value: bytes, rng: random.Random) -> bytes:
    code = {4: "<f", 8: "<d"}.get(len(value))
    if code is None:
        return value
    try:
        return struct.pack(code, some_float(rng, struct.unpack(code, value)[0]))
    except OverflowError:
        return struct.pack(code, rng.choice(FLOATS[:8]))


def _other_bytes(value: bytes, rng: random.Random) -> bytes:
    """Return other bytes, which may be packed integers or floats."""
    kind = rng.randrange(4)
    if kind == 0:
        return b"".join(_varint(some_integer(rng)) for _ in range(rng.randrange(6)))
    if kind == 1 and len(value) >= 4:
        place = rng.randrange(len(value) // 4) * 4
        return value[:place] + _other_fixed(value[place : place + 4], rng) + value[place + 4 :]
    if kind == 2 and len(value) >= 8:
        place = rng.randrange(len(value) // 8) * 8
        integer = (some_integer(rng) % 2**64).to_bytes(8, "little")
        return value[:place] + integer + value[place + 8 :]
    return mutate_blob(value, rng)
