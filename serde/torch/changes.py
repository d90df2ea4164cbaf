"""What a program changes in place, so that a branch can be walked on trial and taken back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any as AnyValue, TypeAlias

__all__ = ["Cell", "Changes", "Trial", "read_cell", "write_cell"]

Cell: TypeAlias = AnyValue
"""A list, a dict, or an object whose attribute `content` is what it holds."""


def read_cell(cell: Cell) -> AnyValue:
    """Return what a cell holds, a list or dict as a copy."""
    if isinstance(cell, list):
        return list(cell)
    return dict(cell) if isinstance(cell, dict) else cell.content


def write_cell(cell: Cell, content: AnyValue) -> None:
    """Let a cell hold something else."""
    if isinstance(cell, list):
        cell[:] = content
    elif isinstance(cell, dict):
        cell.clear()
        cell.update(content)
    else:
        cell.content = content


class Trial:
    """What was changed since a trial began.

    Attributes:
        before: Cells from around it that were changed, with what they held.
        made: Cells that are younger than the trial.
    """

    def __init__(self) -> None:
        self.before: list[tuple[Cell, AnyValue]] = []
        self.made: list[Cell] = []
        self._seen: set[int] = set()

    def note(self, cell: Cell) -> None:
        """Keep what a cell from around the trial holds, if it is changed for the first time."""
        if id(cell) not in self._seen:
            self._seen.add(id(cell))
            self.before.append((cell, read_cell(cell)))

    def make(self, cell: Cell) -> None:
        """Note that a cell is younger than the trial."""
        self._seen.add(id(cell))
        self.made.append(cell)

    def after(self) -> list[tuple[Cell, AnyValue]]:
        """Return the cells that were changed, with what they hold now."""
        return [(cell, read_cell(cell)) for cell, _ in self.before]


class Changes:
    """The trials under way, innermost last."""

    def __init__(self) -> None:
        self._trials: list[Trial] = []

    def before(self, cell: Cell) -> None:
        """Tell that a cell is about to change."""
        for each in self._trials:
            each.note(cell)

    def create(self, cell: AnyValue) -> None:
        """Tell that a cell is new, so that what is changed in it changes nothing around."""
        for each in self._trials:
            each.make(cell)

    def write(self, cell: Cell, content: AnyValue) -> None:
        """Change what a cell holds."""
        self.before(cell)
        write_cell(cell, content)

    @contextmanager
    def trial(self) -> Iterator[Trial]:
        """Take back at its end what is changed in the body of a ``with`` statement."""
        found = Trial()
        self._trials.append(found)
        try:
            yield found
        finally:
            self._trials.pop()
            for cell, content in reversed(found.before):
                write_cell(cell, content)
