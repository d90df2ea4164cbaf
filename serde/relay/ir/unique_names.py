"""Names that are given once each, by a number where one is wanted again."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

__all__ = ["UniqueNames"]


class UniqueNames:
    """Names that are taken so far.

    Args:
        taken: Names that are not given out.
        first: The first number behind a name that is taken.
        joint: What is before that number; None for an underscore behind a digit, else nothing.
    """

    def __init__(
        self, taken: Iterable[str] = (), *, first: int = 1, joint: str | None = "_"
    ) -> None:
        self._taken = set(taken)
        self._first = first
        self._joint = joint
        self._next: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def take(self, *names: str) -> None:
        """Keep names from being given out."""
        self._taken.update(names)

    def release(self, name: str) -> None:
        """Let a name be given out again."""
        self._taken.discard(name)

    def reserve(self, name: str, joint: str | None = None) -> str:
        """Take and return `name`, or the first of ``name_1``, ``name_2``... that is free.

        Args:
            name: The name.
            joint: What stands before the number, where it is another for this name.
        """
        unique, joint = name, self._joint if joint is None else joint
        if joint is None:
            joint = "_" if name[-1:].isdigit() else ""
        for number in count(self._next.get(name, self._first)):
            if unique not in self:
                break
            unique = f"{name}{joint}{number}"
            self._next[name] = number + 1
        self._taken.add(unique)
        return unique
