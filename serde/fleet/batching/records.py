"""What a batch is made of: its jobs, its settings, one outcome a model, and what runs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any as AnyValue, Final, Protocol

from serde.core.outcome import OUTCOMES
from serde.core.records import dataclass, field, fields

__all__ = ["RETRYABLE", "STATUSES", "Executor", "Job", "Outcome", "Settings"]

STATUSES: Final[Mapping[str, int]] = MappingProxyType(
    {
        **{word: code for code, word in OUTCOMES.items()},
        "unreadable line": 65,
        "out of memory": 71,
        "out of time": 124,
        "crashed": 134,
        "unchanged": 0,
    }
)
"""How one model can end, and its code: those of a command, and what only a batch can say.

``unchanged`` is what a worker says of a model whose bytes are those of :attr:`Job.known`.
"""

RETRYABLE: Final = frozenset(
    ("unreachable", "out of memory", "out of time", "crashed", "interrupted", "package missing")
)
"""Failures that another run may not see, though neither the model nor serde has changed."""


@dataclass(frozen=True, slots=True)
class Job:
    """One model of a batch. All values can be written as JSON, and pickled.

    Attributes:
        name: What it is called in the ledger and the report: its source as it was given or listed.
        sources: Paths or URLs of its files.
        target: Path or URL to write.
        options: Options of :func:`serde.convert` that are of this model alone, which go before
            those of the settings: ``input_shapes``, ``source_format``, ``check``, ``opset``.
        known: Digest of the bytes from which the target was made that is there, empty if none
            is; a worker that finds the same bytes has nothing to do.
    """

    name: str
    sources: tuple[str, ...]
    target: str
    options: Mapping[str, AnyValue] = field(default_factory=dict)
    known: str = ""

    def outcome(self, status: str, **known: AnyValue) -> Outcome:
        """Return an outcome of the job."""
        return Outcome(
            name=self.name, sources=self.sources, target=self.target, status=status, **known
        )

    def as_dict(self) -> dict[str, AnyValue]:
        """Return the job as values that JSON can hold."""
        return _as_dict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What all jobs of a batch have in common.

    Attributes:
        to: Name of the target's format.
        out: Directory or URL that the targets are written to.
        options: Options of :func:`serde.convert`, as JSON holds them; a job's go before.
        check: Number of seeded inputs on which source and target are compared; 0 for no check.
        seconds: Wall time that one model may take, staging included; None for any.
        memory: Bytes that the process of one model may allocate; None for any.
        retries: How often a model is tried again whose process died by no fault of its limits,
            or whose store did not answer.
        scratch: Directory in which sources and targets of stores lie meanwhile; that of the
            system if empty.
        overwrite: Whether targets may be replaced that no batch wrote, as in
            :func:`serde.convert`.
        sandbox: Whether the process of a model is kept to its sources and its target; None where
            the kernel can.
        threads: Threads that one model may use.
        storage: What ``fsspec`` is given for stores; it may be secret, and is written nowhere.
    """

    to: str
    out: str
    options: Mapping[str, AnyValue] = field(default_factory=dict)
    check: int = 0
    seconds: float | None = None
    memory: int | None = None
    retries: int = 1
    scratch: str = ""
    overwrite: bool = False
    sandbox: bool | None = None
    threads: int = 1
    storage: Mapping[str, AnyValue] = field(default_factory=dict, repr=False)

    def as_dict(self) -> dict[str, AnyValue]:
        """Return the settings as values that JSON can hold, without what may be secret."""
        return {name: value for name, value in _as_dict(self).items() if name != "storage"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one model ended. All values can be written as JSON, and pickled.

    Attributes:
        name: As :attr:`Job.name`; of a line that cannot be read, ``manifest.jsonl:12``.
        sources: As :attr:`Job.sources`.
        target: As :attr:`Job.target`.
        status: One of :data:`STATUSES`.
        error: Why it failed, in one line; empty if it did not.
        content: Digest of the bytes that were read, empty where none were.
        bytes_read: Bytes of the source's files.
        bytes_written: Bytes of the target's files.
        seconds: Wall time, staging included.
        memory: Largest resident memory of its process in bytes, 0 where it had none.
        attempts: How often it was tried.
        worker: What ran it: ``host:pid`` of the process that looked after its own.
        started: When it began, in seconds since 1970.
        report: :meth:`serde.Report.as_dict` as far as it got; empty if it did not begin.
        reused: Whether it is what the ledger says of an earlier run.
    """

    name: str
    sources: tuple[str, ...]
    target: str
    status: str
    error: str = ""
    content: str = ""
    bytes_read: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    memory: int = 0
    attempts: int = 1
    worker: str = ""
    started: float = 0.0
    report: Mapping[str, AnyValue] = field(default_factory=dict)
    reused: bool = False

    @property
    def exit_code(self) -> int:
        """The code of its status."""
        return STATUSES[self.status]

    @property
    def is_done(self) -> bool:
        """Whether the target was written, and agreed where it was to be checked."""
        return self.exit_code == 0

    def as_dict(self) -> dict[str, AnyValue]:
        """Return the outcome as values that JSON can hold."""
        return {**_as_dict(self), "sources": list(self.sources), "exit_code": self.exit_code}


def _as_dict(record: AnyValue) -> dict[str, AnyValue]:
    """Return the fields of a record; what they hold is not copied."""
    return {item.name: getattr(record, item.name) for item in fields(record)}


class Executor(Protocol):
    """What runs the jobs of a batch: processes of this machine, or a cluster."""

    def run(self, jobs: Iterable[Job], settings: Settings) -> Iterator[Outcome]:
        """Yield an outcome for each job, in the order in which they end.

        Jobs are taken as there is room for them: there may be a million, and making one may take
        a request to a store. No failure of a model is raised. Closing the iterator ends what
        still runs, and leaves nothing of it behind.
        """
