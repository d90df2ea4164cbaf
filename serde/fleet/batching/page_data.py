"""What the HTML page of a batch knows of each model: rows of values that its script reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.core.texts import printable
from serde.fleet.batching.findings import verdict
from serde.fleet.batching.records import Outcome
from serde.viewing.page import embedded_json

__all__ = ["COLUMNS", "MODELS", "PageData", "status_class"]

MODELS: Final = 50_000
"""Most models that a page has in its table; those that failed come first."""

COLUMNS: Final = (
    "name", "status", "verdict", "seconds", "memory", "bytes_read", "bytes_written", "nodes",
    "error", "sources", "target", "attempts", "worker", "gaps", "outputs", "allowed", "notes",
    "stages", "engines", "accuracy",
)  # fmt: skip
_NODES, _GAPS, _OUTPUTS, _LINES = 5, 100, 50, 20
"""Names of nodes of a gap, gaps, outputs and other lines that a model has in a page at most."""

_NEARNESS: Final = ("cosine", "snr", "error", "agreement")
"""Figures of an output that was made smaller."""


class PageData:
    """The models of a page: filled one by one, and bounded.

    Attributes:
        left_out: Models that the page has no room for.
    """

    def __init__(self, outcomes: Iterable[Outcome] = ()) -> None:
        self.left_out = 0
        self._done: list[list[AnyValue]] = []
        self._failed: list[list[AnyValue]] = []
        self._gaps: dict[tuple[str, str, str, str], int] = {}
        for outcome in outcomes:
            self.add(outcome)

    def add(self, outcome: Outcome) -> None:
        """Add a model, one that failed in the place of one that did not if need be."""
        rows = self._done if outcome.is_done else self._failed
        if len(self._failed) + len(self._done) >= MODELS:
            self.left_out += 1
            if rows is self._done or not self._done:
                return
            self._done.pop()
        rows.append(list(self._row(outcome)))

    @property
    def statuses(self) -> list[str]:
        """How the models of the page ended, each once."""
        return sorted({row[1] for row in self._rows()})

    def as_json(self) -> str:
        """Return JSON that may stand in an element ``script``."""
        gaps = [
            {"op": op, "way": way, "reason": reason, "hint": hint}
            for op, way, reason, hint in self._gaps
        ]
        classes = {status: status_class(status) for status in self.statuses}
        return embedded_json(
            {"columns": COLUMNS, "classes": classes, "gaps": gaps, "rows": self._rows()}
        )

    def _rows(self) -> list[list[AnyValue]]:
        return self._failed + self._done

    def _row(self, outcome: Outcome) -> Iterator[AnyValue]:
        """Yield the values of one model, in the order of the columns."""
        report = outcome.report
        sources = () if outcome.sources == (outcome.name,) else outcome.sources
        yield printable(outcome.name)
        yield outcome.status
        yield verdict(report)
        yield round(outcome.seconds, 3)
        yield from (outcome.memory, outcome.bytes_read, outcome.bytes_written)
        yield report.get("nodes")
        yield printable(outcome.error)
        yield [printable(source) for source in sources[:_LINES]]
        yield printable(outcome.target)
        yield outcome.attempts
        yield printable(outcome.worker)
        yield self._gaps_of(report)
        yield [_output(each) for each in (report.get("verdicts") or ())[:_OUTPUTS]]
        allowed = (report.get("allowed") or ())[:_LINES]
        yield [printable(f"{each['op']} {each['node']}: {each['reason']}") for each in allowed]
        yield [printable(note) for note in (report.get("notes") or ())[:_LINES]]
        stages = (report.get("stages") or ())[:_LINES]
        yield [[printable(stage["name"]), round(stage["seconds"], 3)] for stage in stages]
        yield [printable(engine) for engine in report.get("engines") or ()]
        yield [_accuracy(each) for each in (report.get("accuracy") or ())[:_OUTPUTS]]

    def _gaps_of(self, report: Mapping[str, AnyValue]) -> list[list[AnyValue]]:
        """Return places of gaps in the table of all, the number of nodes and names of some."""
        way = printable(report.get("title") or "")
        found: dict[int, list[str]] = {}
        for issue in report.get("issues") or ():
            texts = (issue["op"], way, issue["reason"], issue.get("hint") or "")
            op, way, reason, hint = map(printable, texts)
            place = self._gaps.setdefault((op, way, reason, hint), len(self._gaps))
            found.setdefault(place, []).append(printable(issue["node"]))
        shown: Sequence[tuple[int, list[str]]] = list(found.items())[:_GAPS]
        return [[place, len(nodes), nodes[:_NODES]] for place, nodes in shown]


def status_class(status: str) -> str:
    """Return what colour a status has in the page."""
    return status if status in ("done", "unchanged", "refused") else "failed"


def _output(found: Mapping[str, AnyValue]) -> list[AnyValue]:
    """Return the verdict on one output."""
    word = "agrees" if found["passed"] else "differs" if found["informative"] else "says nothing"
    figures = [_figure(found[name]) for name in ("max_abs", "max_rel", "cosine")]
    return [printable(found["output"]), word, *figures, printable(found.get("remark") or "")]


def _accuracy(found: Mapping[str, AnyValue]) -> list[AnyValue]:
    """Return how near an output is to the source's, before and after it was made smaller."""
    sides = [
        [_figure(side[name]) for name in _NEARNESS] for side in (found["before"], found["after"])
    ]
    return [printable(found["output"]), found["passed"], *sides]


def _figure(value: AnyValue) -> AnyValue:
    """Return a number that JSON has; one that is not finite as a text."""
    finite = not isinstance(value, float) or math.isfinite(value)
    return value if finite else str(value)
