"""A file as a tree of parts, whatever its format; how parts are changed, and how left out."""

from __future__ import annotations

import copy
import random
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from typing import Any, ClassVar, Final

__all__ = ["Document", "Part", "Pool", "Spot", "change", "reductions"]

_MOST_LEARNT: Final = 60
"""Parts that are kept of one document; of the larger ones copies take long."""

Part = Any
"""A piece of a document; what it is, its class knows."""


class Spot:
    """A part of a document: what holds it, the key there, and a name that parts alike have."""

    __slots__ = ("holder", "key", "kind")

    def __init__(self, holder: Any, key: Any, kind: Hashable) -> None:
        self.holder = holder
        self.key = key
        self.kind = kind

    @property
    def part(self) -> Part:
        return self.holder[self.key]


class Document(ABC):
    """A file, parsed. Parts are entries of Python's lists and dictionaries.

    Attributes:
        name: What kind of file it is; parts of the same kind can take the place of one another.
    """

    name: ClassVar[str]

    @abstractmethod
    def spots(self) -> Iterator[Spot]:
        """Yield every part that can be changed, each before the parts in it."""

    @abstractmethod
    def other_value(self, spot: Spot, rng: random.Random) -> Part:
        """Return something else for a part that holds no others."""

    @abstractmethod
    def content(self) -> bytes:
        """Return the file."""


class Pool:
    """Parts of all seeds by kind, of which one takes the place of another.

    Args:
        most: How many to keep of each kind.
    """

    def __init__(self, most: int = 200) -> None:
        self.most = most
        self._parts: dict[Hashable, list[Part]] = {}
        self._seen: dict[Hashable, int] = {}

    def add(self, document: Document, rng: random.Random) -> None:
        """Keep the parts of a document, of many a fair choice."""
        spots = list(document.spots())
        for spot in rng.sample(spots, min(len(spots), _MOST_LEARNT)):
            kind = (document.name, spot.kind)
            kept = self._parts.setdefault(kind, [])
            seen = self._seen[kind] = self._seen.get(kind, 0) + 1
            if len(kept) < self.most:
                kept.append(copy.deepcopy(spot.part))
            elif (place := rng.randrange(seen)) < self.most:
                kept[place] = copy.deepcopy(spot.part)

    def choose(self, document: Document, kind: Hashable, rng: random.Random) -> Part:
        """Return a part like those of `kind`, None if none is known."""
        parts = self._parts.get((document.name, kind))
        return copy.deepcopy(rng.choice(parts)) if parts else None


def change(document: Document, pool: Pool, rng: random.Random) -> None:
    """Change one part: its value, what stands there, or whether it does."""
    spots = list(document.spots())
    if not spots:
        return
    spot = rng.choice(spots)
    kind = rng.randrange(10)
    if kind < 5:
        spot.holder[spot.key] = document.other_value(spot, rng)
    elif kind < 7 and (part := pool.choose(document, spot.kind, rng)) is not None:
        spot.holder[spot.key] = part
    elif kind == 7:
        del spot.holder[spot.key]
    elif kind == 8 and isinstance(spot.holder, list):
        copies = [copy.deepcopy(spot.part) for _ in range(rng.choice((1, 1, 1, 2, 10, 100)))]
        spot.holder[spot.key : spot.key] = copies
    else:
        alike = [each for each in spots if each.kind == spot.kind]
        spot.holder[spot.key] = copy.deepcopy(rng.choice(alike).part)


def reductions(document: Document) -> Iterator[bytes]:
    """Yield the document without each of its parts, the largest parts first.

    What is wanted is told by :meth:`generator.send`: whether the last one is kept.
    """
    tried = 0
    while True:
        spots = list(document.spots())
        if tried >= len(spots):
            return
        spot = spots[tried]
        part = spot.part
        keys = list(spot.holder) if isinstance(spot.holder, dict) else None
        del spot.holder[spot.key]
        kept = yield document.content()
        if kept:
            continue
        if keys is None:
            spot.holder.insert(spot.key, part)
        else:
            rest = dict(spot.holder)
            spot.holder.clear()
            spot.holder.update({key: part if key == spot.key else rest[key] for key in keys})
        tried += 1
