"""One run of a batch: what is done already is told from the ledger, the rest is run and kept."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from serde.core.records import dataclass, replace
from serde.fleet.batching.findings import Findings
from serde.fleet.batching.ledger import Ledger, Seen, options_digest
from serde.fleet.batching.looks import Looks
from serde.fleet.batching.planning import Plan
from serde.fleet.batching.records import Executor, Job, Outcome, Settings
from serde.fleet.batching.report import BatchReport

__all__ = ["BatchRun"]

_ALWAYS_AGAIN = frozenset(("unreachable", "interrupted", "package missing"))
"""Failures that say nothing of a model: another run tries it again."""

_LIMITED = frozenset(("out of time", "out of memory"))
"""Failures that another limit may change."""


@dataclass(slots=True)
class _Running:
    """A job that an executor has.

    Attributes:
        job: The job.
        options: Digest of its options.
        seen: What the ledger says of the bytes that it had, if that still stands.
    """

    job: Job
    options: str
    seen: Seen | None


class BatchRun:
    """A run; iterating over it does what is to be done, and yields outcomes as they come.

    Args:
        plan: What is to be done.
        settings: What all models have in common.
        executor: What runs the models.
        ledger: Where outcomes are kept, and those of earlier runs are found.
        retry_failed: Whether models are tried again that failed in an earlier run.

    Attributes:
        total: How many models there are.
        report: What became of them so far.

    Raises:
        FormatError: The ledger is another file.
        OptionError: The ledger cannot be written, or another run has it open.
    """

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        executor: Executor,
        ledger: Path,
        *,
        retry_failed: bool = False,
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._executor = executor
        self._retry_failed = retry_failed
        self._ledger = Ledger(ledger, settings.as_dict())
        self._looks = Looks(settings.storage)
        self._limits = f"{settings.seconds} {settings.memory}"
        self._reused: deque[Outcome] = deque()
        self._running: dict[tuple[str, str], _Running] = {}
        self.total = len(plan.jobs) + len(plan.faults)
        self.report = BatchReport(settings, ledger, self._ledger.run, Findings())

    def __iter__(self) -> Iterator[Outcome]:
        start, finished = time.perf_counter(), False
        try:
            for outcome in self._outcomes():
                self.report.findings.add(outcome)
                self.report.seconds = time.perf_counter() - start
                yield outcome
            finished = True
        finally:
            self.report.interrupted = not finished
            self.report.fault = self._ledger.fault
            self.report.unwritten = self._ledger.close()
            self.report.seconds = time.perf_counter() - start

    def _outcomes(self) -> Iterator[Outcome]:
        for fault in self._plan.faults:
            self._ledger.record(fault, options="")
            yield fault
        ran = self._executor.run(self._open_jobs(), self._settings)
        with closing(ran):  # type: ignore[type-var]
            for outcome in ran:
                yield from self._take_reused()
                yield self._keep(outcome)
        yield from self._take_reused()
        self._ledger.flush()

    def _take_reused(self) -> Iterator[Outcome]:
        while self._reused:
            yield self._reused.popleft()

    def _open_jobs(self) -> Iterator[Job]:
        """Yield the jobs that have to be run; what is known of the others waits in a queue."""
        for job in self._plan.jobs:
            options, look = self._options(job), self._ledger.look(job)
            seen = None
            if look.content:
                seen = self._ledger.find(job.target, look.content, options)
            if seen is not None and not self._is_current(seen):
                seen = None
            if seen is not None and self._looks.holds(look.look, job.sources):
                self._reused.append(self._ledger.reuse(seen, job))
                continue
            self._running[job.name, job.target] = _Running(job, options, seen)
            yield replace(job, known="" if seen is None else look.content)

    def _options(self, job: Job) -> str:
        """Return the digest of what decides what a model becomes, besides its bytes."""
        settings = self._settings
        return options_digest(
            {
                "to": settings.to,
                "options": {"check": settings.check, **settings.options, **job.options},
            }
        )

    def _is_current(self, seen: Seen) -> bool:
        """Whether an outcome of an earlier run stands, and its target is there as it was."""
        status = seen.outcome.status
        if seen.outcome.is_done:
            return seen.seal != "" and self._looks.seal(seen.outcome.target) == seen.seal
        if self._retry_failed or status in _ALWAYS_AGAIN:
            return False
        return status not in _LIMITED or seen.limits == self._limits

    def _keep(self, outcome: Outcome) -> Outcome:
        """Put an outcome into the ledger; of what was found unchanged, the earlier one counts."""
        running = self._running.pop((outcome.name, outcome.target))
        report = dict(outcome.report)
        told = report.pop("batch", {})
        outcome = replace(outcome, report=report)
        look = told.get("look", "")
        if told.get("files") and outcome.content:
            look = self._looks.of(outcome.sources, told["files"])
        if outcome.status == "unchanged" and running.seen is not None:
            self._ledger.remember(outcome, look)
            return self._ledger.reuse(running.seen, running.job)
        seal = told.get("seal", "")
        if outcome.is_done and not seal:
            seal = self._looks.seal(outcome.target)
        self._ledger.record(
            outcome, options=running.options, limits=self._limits, seal=seal, look=look
        )
        return outcome
