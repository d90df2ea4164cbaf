"""A batch on the terminal: how far it is while it runs, and what became of it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from serde.command.batch_tables import batch_line, batch_tables, failure_text
from serde.command.console import Terminal
from serde.command.render import as_json
from serde.core.texts import size_text

if TYPE_CHECKING:
    from types import TracebackType

    from serde.fleet.batching.records import Outcome
    from serde.fleet.batching.report import BatchReport

__all__ = ["BatchView"]

_SHOWN_FAILURES = 100
"""Failures that are told one by one; a report file has all."""

_INTERVAL = 5.0
"""Seconds between two lines where there is no terminal."""

_FIRST_INTERVAL = 0.5


class BatchView:
    """Shows a batch while it runs, and tells what became of it.

    On a terminal a bar moves; elsewhere there is a line now and then. Each failure is a line.

    Args:
        terminal: Where to.
        total: How many models there are.
    """

    def __init__(self, terminal: Terminal, total: int) -> None:
        self._terminal = terminal
        self._total = total
        self._done = self._failed = self._reused = self._bytes = 0
        self._start = self._told = time.monotonic()
        self._interval = _FIRST_INTERVAL
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> BatchView:
        if self._terminal.has_bars:
            self._bar, self._task = self._terminal.counting_bar("models", self._total)
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, outcome: Outcome) -> None:
        """Count an outcome, and tell of it if it is a failure."""
        self._done += 1
        self._reused += outcome.reused
        self._bytes += 0 if outcome.reused else outcome.bytes_read
        if not outcome.is_done:
            self._failed += 1
            self._tell_failure(outcome)
        now = time.monotonic()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, figures=self._figures(now))
        elif now - self._told >= self._interval and self._done < self._total:
            self._told, self._interval = now, _INTERVAL
            self._terminal.progress(f"{self._done:,} of {self._total:,}  {self._figures(now)}")

    def _tell_failure(self, outcome: Outcome) -> None:
        if self._failed <= _SHOWN_FAILURES:
            text, style = failure_text(outcome), "yellow"
        elif self._failed == _SHOWN_FAILURES + 1:
            text, style = "further failures stand in the report files only", "dim"
        else:
            return
        if self._bar is not None:
            self._bar.console.print(text, style=style, markup=False, soft_wrap=True)
        else:
            self._terminal.progress(text, style)

    def _figures(self, now: float) -> str:
        """Return rates, the time that is left, and how many failed."""
        seconds = max(now - self._start, 1e-9)
        rate = (self._done - self._reused) / seconds
        parts = [f"{rate:.1f} models/s", f"{size_text(round(self._bytes / seconds))}/s"]
        if rate > 0:
            parts.append(f"{_clock((self._total - self._done) / rate)} left")
        if self._failed:
            parts.append(f"{self._failed:,} failed")
        return "  ".join(parts)

    def tell(self, report: BatchReport) -> None:
        """Print what became of the models."""
        terminal = self._terminal
        for table in batch_tables(report):
            terminal.table(table)
        done = report.failed == 0 and not report.interrupted
        terminal.line(batch_line(report, self._total), "green" if done else "yellow")
        if report.fault:
            terminal.error(f"serde: the ledger does not hold all of it: {report.fault}")

    def print_json(self, report: BatchReport) -> None:
        """Print one JSON object on stdout, an outcome at a time."""
        for text in json_parts(report):
            sys.stdout.write(text)
        sys.stdout.write("\n")
        sys.stdout.flush()


def json_parts(report: BatchReport) -> Iterator[str]:
    """Yield the parts of the JSON object that tells of a batch and of each model."""
    outcome = "interrupted" if report.interrupted else "failed" if report.failed else "done"
    whole = as_json({"outcome": outcome, "error": None, **report.as_dict()})
    yield whole.removesuffix("\n}") + ',\n  "outcomes": ['
    for number, each in enumerate(report):
        text = json.dumps(json.loads(as_json(each.as_dict())))
        yield (",\n    " if number else "\n    ") + text
    yield "\n  ]\n}"


def _clock(seconds: float) -> str:
    """Return a time as ``2:05`` or ``1:02:05``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
