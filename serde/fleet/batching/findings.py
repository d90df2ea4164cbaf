"""What the outcomes of a batch come to: counts, figures, reasons, and models that stand out."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any as AnyValue, Final

from serde.core.records import dataclass
from serde.fleet.batching.gaps import Gaps
from serde.fleet.batching.records import Outcome

__all__ = ["VERDICTS", "Findings", "Reason", "ranked", "verdict"]

VERDICTS: Final = ("agrees", "differs", "says nothing", "not checked")
"""What a check has found of one model."""

_KEPT: Final = 20
_PATTERNS: Final = 10_000
_NUMBER: Final = re.compile(r"(?<![\w.])\d[\d,.]*(?!\w)")


@dataclass(slots=True)
class Reason:
    """One way in which models failed.

    Attributes:
        status: How they ended.
        text: Why; what differs from model to model is ``…``.
        models: How many.
        example: Name of one of them.
    """

    status: str
    text: str
    models: int
    example: str


class Findings:
    """What the outcomes of a batch come to; filled one by one, and small for any number.

    Attributes:
        statuses: Models by how they ended.
        verdicts: Models by what a check found, each one of :data:`VERDICTS`.
        workers: Models by what ran them, those of an earlier run left out.
        gaps: Which operators hold up which models.
        reused: Models that an earlier run had done.
        bytes_read: Bytes of all sources.
        bytes_written: Bytes of all targets.
        busy: Seconds of all models together.
        began: When the first began in this run, in seconds since 1970; None if none did.
        ended: When the last ended, likewise.
    """

    def __init__(self, outcomes: Iterable[Outcome] = ()) -> None:
        self.statuses: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.workers: Counter[str] = Counter()
        self.gaps = Gaps()
        self.reused = 0
        self.bytes_read = 0
        self.bytes_written = 0
        self.busy = 0.0
        self.began: float | None = None
        self.ended: float | None = None
        self._reasons: dict[tuple[str, str], Reason] = {}
        self._slowest: list[tuple[float, str]] = []
        self._largest: list[tuple[int, str]] = []
        self._hungriest: list[tuple[int, str]] = []
        for outcome in outcomes:
            self.add(outcome)

    def add(self, outcome: Outcome) -> None:
        """Count one outcome."""
        self.statuses[outcome.status] += 1
        self.verdicts[verdict(outcome.report)] += 1
        self.gaps.add(outcome.name, outcome.report)
        self.bytes_read += outcome.bytes_read
        self.bytes_written += outcome.bytes_written
        self._count_time(outcome)
        _keep(self._largest, (outcome.bytes_read, outcome.name))
        if not outcome.is_done:
            self._count_reason(outcome)

    def _count_time(self, outcome: Outcome) -> None:
        """Count what a run of this time took; an earlier one's is no matter of this one."""
        if outcome.reused:
            self.reused += 1
            return
        if outcome.worker:
            self.workers[outcome.worker] += 1
        if outcome.started:
            end = outcome.started + outcome.seconds
            self.began = min(self.began or outcome.started, outcome.started)
            self.ended = max(self.ended or end, end)
        self.busy += outcome.seconds
        _keep(self._slowest, (outcome.seconds, outcome.name))
        _keep(self._hungriest, (outcome.memory, outcome.name))

    def _count_reason(self, outcome: Outcome) -> None:
        """Count a failure under what is common to those like it."""
        text = _without_names(outcome)
        pattern = _NUMBER.sub("…", text)
        key = (outcome.status, pattern)
        if key not in self._reasons and len(self._reasons) >= _PATTERNS:
            key, text = (outcome.status, "others"), "others"
        reason = self._reasons.setdefault(key, Reason(outcome.status, text, 0, outcome.name))
        reason.models += 1
        if reason.text != text:
            reason.text = pattern

    @property
    def models(self) -> int:
        """How many models there are."""
        return self.statuses.total()

    @property
    def done(self) -> int:
        """How many targets are there."""
        return self.statuses["done"] + self.statuses["unchanged"]

    @property
    def failed(self) -> int:
        """How many targets are not there, or differ from their source."""
        return self.models - self.done

    @property
    def elapsed(self) -> float:
        """Wall time from the first beginning to the last end, in seconds."""
        return 0.0 if self.began is None or self.ended is None else self.ended - self.began

    @property
    def rate(self) -> float:
        """Models a second of this run; 0 where there were none."""
        return (self.models - self.reused) / self.elapsed if self.elapsed else 0.0

    def reasons(self) -> list[Reason]:
        """Return the ways in which models failed, the most frequent first."""
        return sorted(self._reasons.values(), key=lambda r: (-r.models, r.status, r.text))

    def slowest(self) -> list[tuple[str, float]]:
        """Return the models that took longest, and their seconds."""
        return [(name, seconds) for seconds, name in ranked(self._slowest)]

    def largest(self) -> list[tuple[str, int]]:
        """Return the models with the largest sources, and their bytes."""
        return [(name, size) for size, name in ranked(self._largest)]

    def hungriest(self) -> list[tuple[str, int]]:
        """Return the models whose processes needed most memory, and how many bytes."""
        return [(name, size) for size, name in ranked(self._hungriest)]


def verdict(report: Mapping[str, AnyValue]) -> str:
    """Return what a check has found, one of :data:`VERDICTS`.

    Args:
        report: :meth:`serde.core.report.Report.as_dict` of a conversion.
    """
    verdicts = report.get("verdicts") or ()
    if not verdicts:
        return "not checked"
    if any(each["informative"] and not each["passed"] for each in verdicts):
        return "differs"
    return "agrees" if any(each["passed"] for each in verdicts) else "says nothing"


def ranked(found: Iterable[tuple[AnyValue, str]]) -> list[tuple[AnyValue, str]]:
    """Return figures of models, the greatest first and those of zero left out."""
    return sorted((each for each in found if each[0] > 0), key=lambda each: (-each[0], each[1]))


def _keep(heap: list[tuple[AnyValue, str]], item: tuple[AnyValue, str]) -> None:
    """Put a figure among the greatest."""
    if len(heap) < _KEPT:
        heapq.heappush(heap, item)
    elif item > heap[0]:
        heapq.heapreplace(heap, item)


def _without_names(outcome: Outcome) -> str:
    """Return the first line of an error without what is only this model's.

    What a refused model lacks is counted by operator; its error names them all.
    """
    text = outcome.error.partition("\n")[0]
    if outcome.report.get("issues"):
        return "operators that cannot be converted"
    names = {*outcome.sources, outcome.target, outcome.name}
    names |= {name.rstrip("/").rpartition("/")[2] for name in names}
    for own in sorted(names, key=len, reverse=True):
        if len(own) > 2:
            text = text.replace(own, "…")
    return text or outcome.status
