"""What became of a batch, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from serde.core.report import Table
from serde.core.texts import printable, size_text

if TYPE_CHECKING:
    from serde.fleet.batching.records import Outcome
    from serde.fleet.batching.report import BatchReport

__all__ = ["batch_line", "batch_tables", "failure_text"]

_SHOWN = 20


def failure_text(outcome: Outcome) -> str:
    """Return the line that tells of a failure."""
    told = outcome.error if outcome.name in outcome.error else f"{outcome.name}: {outcome.error}"
    return printable(f"{outcome.status}: {told}").replace("\n", " ")


def batch_tables(report: BatchReport) -> Iterator[Table]:
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


def batch_line(report: BatchReport, total: int) -> str:
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
