"""JSON of an archive: values that say where they stand when they are not as expected."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from typing import Any as AnyValue

from serde.core import dataclass, parse_json
from serde.core.limits import MAX_TORCH_CONTAINERS, MAX_TORCH_JSON_BYTES
from serde.errors import FormatError
from serde.io.zips import Archive

__all__ = ["Document", "read_document"]

_MISSING = object()


def read_document(archive: Archive, name: str) -> Document:
    """Return a member that is JSON.

    Raises:
        FormatError: It is missing, longer than the limits, or no JSON.
    """
    data = archive.read(name, MAX_TORCH_JSON_BYTES)
    count = data.count(b"[") + data.count(b"{")
    if count > MAX_TORCH_CONTAINERS:
        raise archive.error(f"{name}: {count} lists and objects, at most {MAX_TORCH_CONTAINERS}")
    try:
        return Document(parse_json(data), name, archive.path)
    except ValueError as error:
        raise archive.error(f"{name}: not JSON: {error}") from None


@dataclass(frozen=True, slots=True)
class Document:
    """A value in a text of JSON.

    Attributes:
        value: The value as ``json`` gives it.
        key: Its key or place in what it is a part of; of the whole text, the member.
        path: The archive.
        parent: What it is a part of.
    """

    value: AnyValue
    key: object
    path: str
    parent: Document | None = None

    @property
    def where(self) -> str:
        """The member, and the keys that lead to the value."""
        keys: list[str] = []
        each: Document | None = self
        while each is not None:
            keys.append(str(each.key)[:100])
            each = each.parent
        return ".".join(reversed(keys))

    def fault(self, message: str) -> FormatError:
        """Return an error about this value."""
        return FormatError(f"{self.where}: {message}", path=self.path)

    def _of(self, kind: type, title: str) -> AnyValue:
        if type(self.value) is not kind:
            raise self.fault(f"expected {title}, found {reprlib.repr(self.value)[:100]}")
        return self.value

    def _part(self, value: AnyValue, key: object) -> Document:
        return Document(value, key, self.path, self)

    def field(self, key: str) -> Document:
        """Return the value of a key that must be there."""
        found = self._of(dict, "an object").get(key, _MISSING)
        if found is _MISSING:
            raise self.fault(f"the key {key!r} is missing")
        return self._part(found, key)

    def optional(self, key: str) -> Document | None:
        """Return the value of a key; None where it is missing or null."""
        found = self._of(dict, "an object").get(key)
        return None if found is None else self._part(found, key)

    def entries(self) -> Iterator[tuple[str, Document]]:
        """Yield the keys of an object with their values."""
        for key, value in self._of(dict, "an object").items():
            yield key, self._part(value, key)

    def items(self) -> list[Document]:
        """Return the entries of a list."""
        found = self._of(list, "a list")
        return [self._part(each, place) for place, each in enumerate(found)]

    def choice(self) -> tuple[str, Document]:
        """Return the only key of an object that says of which kind its value is, and the value."""
        found = self._of(dict, "an object")
        if len(found) != 1:
            raise self.fault(f"expected one key, found {len(found)}")
        ((kind, value),) = found.items()
        return kind, self._part(value, kind)

    def text(self) -> str:
        """Return a text."""
        return self._of(str, "a text")

    def integer(self) -> int:
        """Return an integer of 64 bits."""
        found: int = self._of(int, "an integer")
        if not -(2**63) <= found < 2**63:
            raise self.fault("an integer beyond 64 bits")
        return found

    def boolean(self) -> bool:
        """Return true or false."""
        return self._of(bool, "true or false")

    def number(self) -> float:
        """Return a number with a fraction; infinities and what is no number are texts."""
        try:
            return float(self.value)
        except (TypeError, ValueError, OverflowError):
            raise self.fault(f"expected a number, found {reprlib.repr(self.value)[:100]}") from None
