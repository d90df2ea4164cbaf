"""The terminal: results on stdout, progress on stderr, colours only where both are wanted."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from serde.core import Report, Table, printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

    from serde.command.bars import Bar
    from serde.core.progress import Progress

__all__ = ["LiveReport", "Terminal"]

_SPACE = 2
_PADDING = (0, _SPACE, 0, 0)

_FOLDED = 16
"""How wide a column of texts must be at least to be folded, rather than made lines of a block."""

_PIPE_WIDTH = 10_000
"""Columns off a terminal, so that nothing is cut or wrapped."""


class Terminal:
    """Where a command prints.

    Attributes:
        quiet: Print errors only.
        verbose: Print what is logged, and tracebacks.
        color: Colours are allowed on a terminal.
        results: Whether tables and lines go to stdout; not if it is kept for JSON.
    """

    def __init__(self) -> None:
        self.quiet = False
        self.verbose = False
        self.color = not os.environ.get("NO_COLOR")
        self.results = True
        self._working: list[str] = []
        self._status: Any = None
        self._bar: Bar | None = None

    def line(self, text: str, style: str | None = None, *, aside: str = "") -> None:
        """Print one line of the result, with a remark for people where it goes to a terminal."""
        if self.results and not self.quiet:
            seen = f"{text}  {aside}" if aside and sys.stdout.isatty() else text
            self._print(sys.stdout, seen, style)

    def progress(self, text: str, style: str = "dim") -> None:
        """Print one line about what was done."""
        if not self.quiet:
            self._print(sys.stderr, text, style)

    def log(self, text: str) -> None:
        """Print one line that was logged; asked for by a flag, so also when quiet."""
        self._print(sys.stderr, text, "dim")

    def error(self, text: str) -> None:
        """Print why a command failed; also when quiet."""
        self._print(sys.stderr, text, "red")

    def raw(self, text: str) -> None:
        """Print text for machines on stdout, as it is."""
        _write(sys.stdout, text + "\n")

    def table(self, table: Table, *, aside: bool = False) -> None:
        """Print a table, and an empty line after it; `aside` on stderr."""
        if self.quiet or not self.results:
            return
        stream = sys.stderr if aside else sys.stdout
        plain = None if stream.isatty() else _plain_lines(table)
        if plain is not None:
            _write(stream, "\n".join(plain) + "\n\n")
            return
        console = self._console(stream)
        fits = _can_fold(table, console.width) or _width(table) <= console.width
        if not fits and table.parts:
            for part in table.parts:
                self.table(part, aside=aside)
            return
        with console.capture() as capture:
            for each in [_grid(table)] if fits else _blocks(table):
                console.print(each)
        lines = [line.rstrip() for line in capture.get().splitlines()]
        _write(stream, "\n".join(lines) + "\n\n")

    def ticks(self) -> tuple[str, str]:
        """Return what marks an output that agrees and one that does not."""
        try:
            "✓✗".encode(sys.stdout.encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            return "ok", "DIFFERS"
        return "✓", "✗"

    @contextmanager
    def working(self, name: str) -> Iterator[None]:
        """Show on a terminal that something is going on."""
        self._working.append(name)
        self._show_status()
        try:
            yield
        finally:
            self._working.pop()
            self._show_status()

    @property
    def has_bars(self) -> bool:
        """Whether stages that take long get a bar: on a terminal, unless for machines or quiet."""
        return self.results and not self.quiet and sys.stderr.isatty()

    def advance(self, progress: Progress) -> None:
        """Show how far a stage has come, once it has taken a while."""
        from serde.command.bars import PATIENCE, Bar

        if progress.seconds < PATIENCE:
            return
        if self._bar is not None and self._bar.stage != progress.stage:
            self._stop_bar()
        if self._bar is None:
            if self._status is not None:
                self._status.stop()
                self._status = None
            self._bar = Bar(self._console(sys.stderr), progress.stage)
        self._bar.show(progress)

    def counting_bar(self, name: str, total: int) -> tuple[Any, Any]:
        """Return a bar for so many things, and its task, whose field ``figures`` it shows."""
        from rich.progress import BarColumn, Progress as RichProgress, TextColumn

        columns = [
            BarColumn(),
            TextColumn("{task.completed:,} of {task.total:,} {task.description}", markup=False),
            TextColumn("{task.fields[figures]}", markup=False),
        ]
        bar = RichProgress(*columns, console=self._console(sys.stderr), transient=True)
        return bar, bar.add_task(name, total=total, figures="")

    def _stop_bar(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _show_status(self) -> None:
        self._stop_bar()
        if self.quiet or not sys.stderr.isatty():
            return
        if self._status is None:
            self._status = self._console(sys.stderr).status("")
        if self._working:
            self._status.update(printable(self._working[-1]))
            self._status.start()
        else:
            self._status.stop()
            self._status = None

    def _print(self, stream: TextIO, text: str, style: str | None) -> None:
        text = printable(text)
        if not stream.isatty():
            _write(stream, text + "\n")
            return
        console = self._console(stream)
        live = self._status if self._bar is None else self._bar
        if live is not None and stream is sys.stderr:
            console = live.console
        console.print(text, style=style or "", soft_wrap=True)

    def _console(self, stream: TextIO) -> Console:
        from rich.console import Console

        terminal = stream.isatty()
        return Console(
            file=stream,
            force_terminal=terminal,
            color_system="auto" if terminal and self.color else None,
            width=None if terminal else _PIPE_WIDTH,
            highlight=False,
            markup=False,
            emoji=False,
        )


def _plain_lines(table: Table) -> list[str] | None:
    """Return the lines of a table as they are off a terminal, None where rich must measure it.

    It takes rich longer to be loaded than to convert a small model.
    """
    rows = [table.columns, *table.rows] if table.header else list(table.rows)
    if not all(cell.isascii() and cell.isprintable() for row in rows for cell in row):
        return None
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    if not all(widths) or sum(widths) + _SPACE * len(widths) > _PIPE_WIDTH:
        return None
    return [
        (" " * _SPACE)
        .join(
            cell.rjust(width) if index in table.right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        .rstrip()
        for row in rows
    ]


def _can_fold(table: Table, width: int) -> bool:
    """Whether a table that is too wide is still legible with its texts folded."""
    count = len(table.columns)
    return count <= 2 or (not table.right and width >= count * (_FOLDED + _SPACE))


def _width(table: Table) -> int:
    """Return how many columns of a terminal a table takes where nothing is folded."""
    from rich.cells import cell_len

    head = [table.columns] if table.header else []
    widths = (max(map(cell_len, cells)) for cells in zip(*head, *table.rows, strict=True))
    return sum(widths) + _SPACE * (len(table.columns) - 1)


def _grid(table: Table) -> RichTable:
    """Return a table with a line for each row."""
    from rich.table import Table as RichTable

    grid = RichTable(box=None, pad_edge=False, padding=_PADDING, show_header=table.header)
    for index, name in enumerate(table.columns):
        number = index in table.right
        justify: Any = "right" if number else "left"
        grid.add_column(name, justify=justify, no_wrap=number, overflow="fold")
    for row in table.rows:
        grid.add_row(*map(_text, row))
    return grid


def _blocks(table: Table) -> Iterator[RenderableType]:
    """Yield a block for each row: its name with its mark, then a line for each other column."""
    from rich.padding import Padding
    from rich.table import Table as RichTable

    marked = table.columns[-1] == ""
    named = 1 if table.columns[0] else 2
    last = len(table.columns) - marked
    for row in table.rows:
        head = [*row[:named], *row[last:]]
        yield _text("  ").join(map(_text, filter(None, head)))
        grid = RichTable(box=None, pad_edge=False, padding=_PADDING, show_header=False)
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        lines = list(zip(table.columns[named:last], row[named:last], strict=True))
        for name, cell in lines:
            if name and cell:
                grid.add_row(name, _text(cell))
        remarks = [_text(cell) for name, cell in lines if cell and not name]
        yield Padding(grid, (0, 0, 0, _SPACE))
        yield from (Padding(each, (0, 0, 0, _SPACE)) for each in remarks)


def _text(cell: str) -> Text:
    from rich.text import Text

    return Text(printable(cell), style={"✓": "green", "✗": "red"}.get(cell, ""), overflow="fold")


def _write(stream: TextIO, text: str) -> None:
    """Write text; if its reader has left, this and all that follows goes nowhere."""
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class LiveReport(Report):
    """A report that prints each stage when it is done, with its seconds.

    Args:
        terminal: Where to.
    """

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self._terminal = terminal

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage and print it."""
        self.on_progress = self._terminal.advance if self._terminal.has_bars else None
        with self._terminal.working(name), super().stage(name):
            yield
        self._terminal.progress(f"{name:<20}{self.stages[-1].seconds:8.2f} s")
