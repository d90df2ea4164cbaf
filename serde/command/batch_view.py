"""What became of a batch, on a terminal, as tables, and as files: JSON, Markdown, HTML, Parquet."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from serde.command.console import Terminal
from serde.command.render import as_json, markdown_table
from serde.core import Table, printable, size_text

if TYPE_CHECKING:
    from serde.fleet.batching.records import Outcome
    from serde.fleet.batching.report import BatchReport

__all__ = ["BatchView", "write_batch_report"]

_SHOWN = 20


def _failure_text(outcome: Outcome) -> str:
    """Return the line that tells of a failure."""
    told = outcome.error if outcome.name in outcome.error else f"{outcome.name}: {outcome.error}"
    return printable(f"{outcome.status}: {told}").replace("\n", " ")


def _batch_tables(report: BatchReport) -> Iterator[Table]:
    """Yield the tables of a batch that have rows."""
    found = report.findings
    statuses = sorted(found.statuses.items(), key=lambda item: (item[0] != "done", -item[1]))
    if statuses:
        rows = tuple((status, f"{count:,}") for status, count in statuses)
        yield Table(("ended", "models"), rows, frozenset({1}))
    verdicts = [(word, n) for word, n in found.verdicts.items() if word != "not checked"]
    if verdicts:
        rows = tuple((word, f"{count:,}") for word, count in sorted(verdicts))
        yield Table(("check", "models"), rows, frozenset({1}))
    reasons = found.reasons()
    if reasons:
        yield Table(
            ("why", "ended", "models", "such as"),
            tuple((r.text, r.status, f"{r.models:,}", r.example) for r in reasons[:_SHOWN]),
            frozenset({2}),
        )
    operators = found.gaps.operators()
    if operators:
        yield Table(
            ("operator", "way", "models", "by nothing else", "reason"),
            tuple(
                (
                    gap.operator.op,
                    gap.operator.way,
                    f"{gap.models:,}",
                    f"{gap.alone:,}",
                    gap.reasons[0][0],
                )
                for gap in operators[:_SHOWN]
            ),
            frozenset({2, 3}),
        )


def _batch_line(report: BatchReport, total: int) -> str:
    """Return what became of a batch in one line.

    Args:
        report: The batch.
        total: How many models there were to be.
    """
    found = report.findings
    parts = [f"{found.done:,} of {total:,} models done"]
    if found.reused:
        parts.append(f"{found.reused:,} of an earlier run")
    if report.failed:
        parts.append(f"{report.failed:,} failed")
    if report.interrupted:
        parts.append(f"{total - found.models:,} not begun; the same command goes on")
    ran = found.models - found.reused
    if ran:
        rate = ran / max(report.seconds, 1e-9)
        read = size_text(found.bytes_read)
        parts.append(f"{report.seconds:.1f} s, {rate:.1f} models/s, {read} read")
    return "; ".join(parts)


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

    def __exit__(self, *_error: object) -> None:
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
            text, style = _failure_text(outcome), "yellow"
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
        for table in _batch_tables(report):
            terminal.table(table)
        done = report.failed == 0 and not report.interrupted
        terminal.line(_batch_line(report, self._total), "green" if done else "yellow")
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


def write_batch_report(path: Path, report: BatchReport) -> None:
    """Write a report, of the kind that its suffix says.

    Raises:
        MissingDependency: pyarrow is not installed.
        OptionError: `path` cannot be a new file.
    """
    if path.suffix == ".parquet":
        from serde.fleet.batching.parquet import write_parquet

        write_parquet(path, report)
    elif path.suffix == ".html":
        from serde.fleet.batching.html import write_html

        write_html(path, report, settings=report.settings)
    else:
        from serde.io.atomic import atomic_write

        parts = json_parts(report) if path.suffix == ".json" else _markdown(report)
        with atomic_write(path) as file:
            for text in parts:
                file.write(text.encode(errors="backslashreplace"))
            file.write(b"\n")


def _markdown(report: BatchReport) -> list[str]:
    parts = [f"# serde batch to {report.settings.to}", _batch_line(report, len(report))]
    parts += [markdown_table(table) for table in _batch_tables(report)]
    failures = [f"- {_failure_text(each)}" for each in report if not each.is_done]
    if failures:
        parts += ["## Failures", "\n".join(failures)]
    return ["\n\n".join(parts)]
