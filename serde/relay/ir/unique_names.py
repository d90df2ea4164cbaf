"""Names that are given once each, by a number where one is wanted again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

__all__ = ["UniqueNames"]


class UniqueNames:
    """Names that are taken so far.

    Args:
        taken: Names that are not given out.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: Counter[str] = Counter()

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def take(self, name: str) -> None:
        """Keep a name from being given out."""
        self._taken.add(name)

    def release(self, name: str) -> None:
        """Let a name be given out again."""
        self._taken.discard(name)

    def reserve(self, name: str, between: str = "_") -> str:
        """Take and return `name`, or the first of ``name_1``, ``name_2``... that is free.

        Args:
            name: The name.
            between: What stands before the number; the same each time for one name.
        """
        unique = name
        while unique in self._taken:
            self._next[name] += 1
            unique = f"{name}{between}{self._next[name]}"
        self._taken.add(unique)
        return unique
