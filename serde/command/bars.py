"""Bars on a terminal for what takes long: how much is done, and how long the rest takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from serde.core.progress import Progress
from serde.core.texts import printable, size_text

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["PATIENCE", "Bar", "count_text"]

PATIENCE = 2.0
"""Seconds that a stage goes on before it gets a bar."""


class Bar:
    """The bar of one stage on a terminal.

    Args:
        console: The terminal.
        stage: What goes on.
    """

    def __init__(self, console: Console, stage: str) -> None:
        from rich.progress import (
            BarColumn,
            Progress as RichProgress,
            TextColumn,
            TimeRemainingColumn,
        )

        self.stage = stage
        self._bars = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[count]}", markup=False),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task = self._bars.add_task(printable(stage), total=None, count="")
        self._bars.start()

    @property
    def console(self) -> Console:
        """Where lines are printed above the bar."""
        return self._bars.console

    def show(self, progress: Progress) -> None:
        """Show how far the stage has come."""
        total = progress.total or None
        self._bars.update(
            self._task, completed=progress.done, total=total, count=count_text(progress)
        )

    def stop(self) -> None:
        """Take the bar away."""
        self._bars.stop()


def count_text(progress: Progress) -> str:
    """Return how much is done of how much, as ``1.2 of 4.0 GB`` or ``300 of 1,000 nodes``."""
    done, total = progress.done, progress.total
    if progress.unit == "bytes":
        return f"{size_text(done)} of {size_text(total)}" if total else size_text(done)
    return f"{done:,} of {total:,} {progress.unit}" if total else f"{done:,} {progress.unit}"
