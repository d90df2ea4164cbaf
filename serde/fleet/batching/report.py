"""What a batch has to say when it is over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any as AnyValue

from serde.core.records import asdict, dataclass, field
from serde.fleet.batching.findings import Findings
from serde.fleet.batching.ledger import read_outcomes
from serde.fleet.batching.records import Outcome, Settings

__all__ = ["BatchReport", "batch_exit_code"]

_BASE, _MOST = 100, 20


def batch_exit_code(failed: int) -> int:
    """Return the exit code of a batch: 0, or 100 and how many models failed, 120 for 20 or more."""
    return _BASE + min(failed, _MOST) if failed else 0


@dataclass(slots=True)
class BatchReport:
    """What became of the models of a batch. Iterating over it yields an outcome for each.

    Outcomes are read from the ledger when they are asked for, so that a million need no memory.

    Attributes:
        settings: What the models had in common.
        ledger: Where their outcomes are kept.
        run: Number of the run in the ledger.
        findings: Counts, reasons, and how many models each missing operator holds up.
        seconds: Wall time of the run.
        interrupted: Whether it was ended before all models were done.
        fault: Why the ledger does not hold all outcomes; empty if it does.
    """

    settings: Settings
    ledger: Path
    run: int
    findings: Findings = field(default_factory=Findings)
    seconds: float = 0.0
    interrupted: bool = False
    fault: str = ""
    unwritten: Sequence[Outcome] = ()

    def __iter__(self) -> Iterator[Outcome]:
        yield from read_outcomes(self.ledger, self.run)
        yield from self.unwritten

    def __len__(self) -> int:
        return self.findings.models

    @property
    def failed(self) -> int:
        """How many models have no target, or one that differs."""
        return self.findings.failed

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0, or 100 and how many failed, 120 for 20 or more."""
        return 130 if self.interrupted else batch_exit_code(self.failed)

    def as_dict(self) -> dict[str, AnyValue]:
        """Return all but the outcomes as values that JSON can hold."""
        found = self.findings
        return {
            "exit_code": self.exit_code,
            "interrupted": self.interrupted,
            "models": found.models,
            "done": found.done,
            "failed": found.failed,
            "reused": found.reused,
            "statuses": dict(sorted(found.statuses.items())),
            "verdicts": dict(sorted(found.verdicts.items())),
            "reasons": [asdict(each) for each in found.reasons()],
            "operators": [asdict(each) for each in found.gaps.operators()],
            "seconds": self.seconds,
            "models_per_second": found.rate,
            "bytes_read": found.bytes_read,
            "bytes_written": found.bytes_written,
            "settings": self.settings.as_dict(),
            "ledger": str(self.ledger),
            "fault": self.fault,
        }
