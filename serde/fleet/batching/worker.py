"""Runs one model of a batch: brings it here, converts it in a process of its own, publishes it."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.bridge.formats import get_bridge
from serde.core.outcome import OUTCOMES, exit_code
from serde.errors import SerdeError
from serde.fleet.batching.child import CONVERT, IDENTIFY, PREPARE, one_line
from serde.fleet.batching.endings import answered, died, was_killed_from_outside
from serde.fleet.batching.isolation import Isolation, ServerEnded, isolation_here
from serde.fleet.batching.looks import Looks
from serde.fleet.batching.records import Job, Outcome, Settings
from serde.fleet.batching.sandbox import needed
from serde.fleet.stores.publishing import published
from serde.fleet.stores.staging import stage, told
from serde.fleet.stores.urls import Address, safe_url
from serde.io.staging import clear_directory, staging_directory, sweep

__all__ = ["Runner", "run_job"]

_WARMS_AT: Final = 3
"""Models of a format after which the server converts a net of its own, for more of them."""

_WANTS: Final = "wants"
"""Status of a model that lacks files which it names itself."""

_ALWAYS: Final = ("serde.api", "serde.fleet.batching.child", "serde.fleet.stores.staging")
_NOTHING: Final[Mapping[str, AnyValue]] = {"engines": [], "ways": []}


def run_job(job: Job, settings: Settings) -> Outcome:
    """Run one model, its process forked from one that this process keeps for all that come.

    Args:
        job: The model.
        settings: What all have in common.

    Returns:
        How it ended; nothing that goes wrong with a model is raised.
    """
    return _shared_runner(os.getpid(), settings.threads).run(job, settings)


@cache
def _shared_runner(_process: int, threads: int) -> Runner:
    return Runner(threads)


class _Unpublished(Exception):
    """Ends what would publish a target, of which there is none."""

    def __init__(self, outcome: Outcome, again: bool) -> None:
        self.outcome = outcome
        self.again = again


class Runner:
    """Runs models, each in a process of its own; may be used by several threads.

    Args:
        threads: How many threads each process may start.
        isolation: What makes the processes; what suits the system if left out.
    """

    def __init__(self, threads: int = 1, isolation: Isolation | None = None) -> None:
        self._isolation = isolation_here(threads) if isolation is None else isolation
        self._worker = f"{socket.gethostname()}:{os.getpid()}"
        self._lock = threading.Lock()
        self._ways: Counter[tuple[str, str]] = Counter()
        self._prepared: set[str] = set()
        self._begun: set[str] = set()
        self._directories: defaultdict[Path, list[Path]] = defaultdict(list)
        self._kept = ExitStack()
        weakref.finalize(self, self._kept.close)

    def run(self, job: Job, settings: Settings) -> Outcome:
        """Return how one model ended, tried again where it died by no fault of its own."""
        started, clock = time.time(), time.perf_counter()
        attempts = 0
        while True:
            attempts += 1
            outcome, again = self._attempt(job, settings)
            if not again or attempts > settings.retries:
                break
        seconds = time.perf_counter() - clock
        return replace(
            outcome, attempts=attempts, seconds=seconds, started=started, worker=self._worker
        )

    def close(self) -> None:
        """Kill all that still runs."""
        self._isolation.close()
        self._kept.close()

    def _attempt(self, job: Job, settings: Settings) -> tuple[Outcome, bool]:
        """Return how a model ended, and whether it may end otherwise if it is tried again."""
        scratch = Path(settings.scratch or tempfile.gettempdir())
        try:
            with published(job.target, scratch, storage_options=settings.storage) as target:
                if any(Address.of(each).protocol for each in job.sources):
                    outcome, again = self._fetch_and_convert(job, settings, target, scratch)
                else:
                    sources = [Address.of(each).path for each in job.sources]
                    outcome, again = self._convert(job, settings, sources, target, scratch)
                if outcome.status != "done":
                    error = told(outcome.error, _places(job, target))
                    raise _Unpublished(replace(outcome, error=error), again)
        except _Unpublished as unpublished:
            return unpublished.outcome, unpublished.again
        except (SerdeError, OSError) as error:
            fault = "unreachable" if isinstance(error, OSError) else OUTCOMES[exit_code(error)]
            return job.outcome(fault, error=one_line(error)), False
        if Address.of(job.target).protocol:
            outcome.report["batch"]["seal"] = Looks(settings.storage).seal(job.target)
        return outcome, False

    def _fetch_and_convert(
        self, job: Job, settings: Settings, target: Path, scratch: Path
    ) -> tuple[Outcome, bool]:
        """Convert a model that lies in a store, which its own process alone looks into.

        What the model names itself is fetched, and it is tried again, when that process says so.
        """
        outcome, again = self._fetch_with((), job, settings, target, scratch)
        if outcome.status == _WANTS:
            wanted = outcome.report["batch"]["wants"]
            outcome, again = self._fetch_with(wanted, job, settings, target, scratch)
        return outcome, again

    def _fetch_with(
        self, along: Sequence[str], job: Job, settings: Settings, target: Path, scratch: Path
    ) -> tuple[Outcome, bool]:
        options = {**settings.options, **job.options}
        with stage(
            job.sources,
            scratch,
            format=options.pop("source_format", None),
            options={name: value for name, value in options.items() if name != "converters"},
            storage_options=settings.storage,
            opens=False,
            along=along,
        ) as staged:
            looks = Looks(settings.storage)
            beside = Address.of(job.sources[0])
            along_with = (str(beside.beside(x)) for x in staged.facts.get("companions", ()))
            look = looks.of(job.sources, [*job.sources, *along_with])
            if staged.digest == job.known:
                outcome, again = job.outcome("unchanged"), False
            else:
                paths = [os.fspath(path) for path in staged.paths]
                outcome, again = self._convert(job, settings, paths, target, scratch, along)
            if outcome.status == _WANTS:
                return outcome, again
            outcome = replace(
                outcome,
                error=staged.told(outcome.error),
                content=staged.digest,
                bytes_read=staged.nbytes,
                report={**outcome.report, "batch": {"look": look}},
            )
            return outcome, again

    def _convert(
        self,
        job: Job,
        settings: Settings,
        sources: Sequence[str],
        target: Path,
        scratch: Path,
        along: Sequence[str] | None = None,
    ) -> tuple[Outcome, bool]:
        """Convert what lies on local disk; `along` is what was fetched besides, if it was."""
        common = {"check": settings.check, "overwrite": settings.overwrite}
        request: dict[str, AnyValue] = {
            "sources": sources,
            "target": os.fspath(target),
            "to": settings.to,
            "options": {**common, **settings.options, **job.options},
            "known": job.known,
            "folder": os.getcwd(),
            "asks": along is not None and not along,
            "sandbox": settings.sandbox,
        }
        self._begin(settings.to)
        limits: AnyValue = {"seconds": settings.seconds, "memory": settings.memory}
        identified = None  # Of what was fetched all is known.
        try:
            with self._own_directory(scratch) as own:
                request["scratch"] = os.fspath(own.absolute())
                # Code of others may leave anything behind, and what was fetched lies apart.
                alone = along is not None or "converters" in request["options"]
                alike = None if alone else needed(request)
                ending = self._isolation.call(CONVERT, request, alike=alike, **limits)
                if ending.answer is not None:
                    self._learn(ending.answer, settings.to)
                    return answered(job, ending), False
                with suppress(OSError):
                    sweep(target.absolute().parent)
                if along is None:
                    identified = self._isolation.call(IDENTIFY, request, **limits).answer
        except ServerEnded:
            told = "the process that others are forked from was killed, and this one with it"
            return job.outcome("crashed", error=told), True
        return died(job, ending, settings, identified or {}), was_killed_from_outside(ending)

    @contextmanager
    def _own_directory(self, scratch: Path) -> Iterator[Path]:
        """Yield an empty directory that no other model has meanwhile; it is kept for another."""
        with self._lock:
            free = self._directories[scratch]
            own = free.pop() if free else None
        if own is None or not own.is_dir():
            own = self._kept.enter_context(staging_directory(scratch))
        yield own
        if clear_directory(own):
            free.append(own)

    def _begin(self, to: str) -> None:
        """Have the server import what every conversion to a format needs, once."""
        with self._lock:
            if to in self._begun:
                return
            self._begun.add(to)
            bridge = type(get_bridge(to)).__module__
            self._isolation.prepare(PREPARE, {"modules": [*_ALWAYS, bridge], **_NOTHING})

    def _learn(self, answer: Mapping[str, AnyValue], to: str) -> None:
        """Have the server import what the process of a model had to, for those that come."""
        if answer["status"] != "done":
            return
        way = answer["report"]["facts"]["source"], to
        with self._lock:
            self._ways[way] += 1
            loaded = answer["loaded"]
            new = {kind: [n for n in loaded[kind] if n not in self._prepared] for kind in loaded}
            ways = [way] if self._ways[way] == _WARMS_AT else []
            if not (ways or any(new.values())):
                return
            self._prepared.update(*new.values())
        self._isolation.prepare(PREPARE, {**new, "ways": ways})


def _places(job: Job, target: Path) -> dict[str, str]:
    """Return what the folder is called in which a target of a store is made."""
    address = Address.of(job.target)
    if not address.protocol:
        return {}
    return {f"{target.parent}{os.sep}": safe_url(str(address.beside("")))}
