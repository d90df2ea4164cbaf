"""JSON as a tree of lists and objects; strings that hold JSON or a tuple are no more than texts."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, ClassVar

from fuzz.mutators.document import Document, Spot
from fuzz.mutators.values import some_float, some_integer, some_text

__all__ = ["JsonDocument"]


class JsonDocument(Document):
    """A file of JSON.

    Args:
        value: What it says.
    """

    name: ClassVar[str] = "json"

    def __init__(self, value: Any) -> None:
        self.root = [value]

    @classmethod
    def read(cls, data: bytes) -> JsonDocument | None:
        """Return the document of some bytes, or None where they are no JSON."""
        try:
            return cls(json.loads(data))
        except (ValueError, RecursionError):
            return None

    def spots(self) -> Iterator[Spot]:
        """Yield every value."""
        return _spots(self.root[0], "")

    def other_value(self, spot: Spot, rng: random.Random) -> Any:
        """Return another value, mostly of the same type."""
        value = spot.part
        if rng.randrange(6) == 0:
            return rng.choice((None, True, False, 0, -1, 1.5, 1e400, "", "x", [], {}, [value]))
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return some_integer(rng, value)
        if isinstance(value, float):
            return some_float(rng, value)
        if isinstance(value, str):
            return some_text(rng, value)
        if isinstance(value, list):
            return _other_list(value, rng)
        if isinstance(value, dict):
            return _other_object(value, rng)
        return rng.choice((0, "", [], {}))

    def content(self) -> bytes:
        """Return the text."""
        return json.dumps(self.root[0] if self.root else None).encode("utf-8", "surrogatepass")


def _spots(value: Any, kind: str) -> Iterator[Spot]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield Spot(value, key, key)
            yield from _spots(inner, key)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield Spot(value, place, f"{kind}[]")
            yield from _spots(inner, f"{kind}[]")


def _other_list(value: list[Any], rng: random.Random) -> list[Any]:
    kind = rng.randrange(5)
    if kind == 0:
        return []
    if kind == 1:
        return value + value
    if kind == 2:
        return rng.sample(value, len(value))
    if kind == 3:
        return [value]
    return [*value, some_integer(rng)]


def _other_object(value: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    kind = rng.randrange(4)
    if kind == 0 or not value:
        return {}
    keys = list(value)
    if kind == 1:
        return {**value, some_text(rng, rng.choice(keys)): value[rng.choice(keys)]}
    one, other = rng.choice(keys), rng.choice(keys)
    if kind == 2:
        return {**value, one: value[other], other: value[one]}
    return {(some_text(rng, key) if key == one else key): each for key, each in value.items()}
