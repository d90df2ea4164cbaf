"""Runs one model of a batch: brings it here, converts it in a process of its own, publishes it."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any as AnyValue
from typing import Final

from serde.batching.child import CONVERT, IDENTIFY, PREPARE
from serde.batching.isolation import Ending, Isolation, ServerEnded, isolation_here
from serde.batching.records import Job, Outcome, Settings
from serde.io.staging import sweep

__all__ = ["Runner", "run_job"]

_WARMS_AT: Final = 3
"""Models of a format after which the server is made ready for more of them."""

_NO_MEMORY: Final = ("bad_alloc", "MemoryError", "Cannot allocate memory", "out of memory")
_FROM_OUTSIDE: Final = frozenset((signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)))


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

    def _attempt(self, job: Job, settings: Settings) -> tuple[Outcome, bool]:
        """Return how a model ended, and whether it may end otherwise if it is tried again."""
        with tempfile.TemporaryDirectory(dir=settings.scratch or None) as scratch:
            return self._convert(job, settings, job.target, scratch)

    def _convert(
        self, job: Job, settings: Settings, target: str, scratch: str
    ) -> tuple[Outcome, bool]:
        """Convert what lies on local disk."""
        options = {"check": settings.check, **settings.options, **job.options}
        request = {
            "sources": job.sources,
            "target": target,
            "to": settings.to,
            "options": {"overwrite": settings.overwrite, **options},
            "known": job.known,
            "scratch": scratch,
        }
        try:
            ending = self._isolation.call(
                CONVERT, request, seconds=settings.seconds, memory=settings.memory
            )
        except ServerEnded:
            told = "the process that others are forked from was killed, and this one with it"
            return _outcome(job, "crashed", error=told), True
        if ending.answer is None:
            with suppress(OSError):
                sweep(Path(target).absolute().parent)
            outcome = _died(job, ending, settings, self._identified(request, settings))
            return outcome, ending.in_time and -ending.code in _FROM_OUTSIDE
        self._learn(ending.answer, settings.to)
        return _answered(job, ending), False

    def _identified(
        self, request: Mapping[str, AnyValue], settings: Settings
    ) -> Mapping[str, AnyValue]:
        """Return what is known of the bytes of a model whose process died of them."""
        with suppress(ServerEnded):
            ending = self._isolation.call(
                IDENTIFY, request, seconds=settings.seconds, memory=settings.memory
            )
            return ending.answer or {}
        return {}

    def _learn(self, answer: Mapping[str, AnyValue], to: str) -> None:
        """Have the server import what the process of a model had to, for those that come."""
        way = answer["report"]["facts"].get("source"), to
        with self._lock:
            self._ways[way] += 1
            if self._ways[way] < _WARMS_AT or answer["status"] != "done":
                return
            loaded = answer["loaded"]
            new = {kind: [n for n in loaded[kind] if n not in self._prepared] for kind in loaded}
            ways = [way] if f"{way}" not in self._prepared else []
            if not (ways or any(new.values())):
                return
            self._prepared.update(*new.values(), map(str, ways))
        self._isolation.prepare(PREPARE, {**new, "ways": ways})


def _answered(job: Job, ending: Ending) -> Outcome:
    answer = ending.answer
    known = _known(answer, answer["report"])
    written = answer.get("bytes_written", 0)
    error = answer["error"]
    return _outcome(
        job, answer["status"], **known, error=error, bytes_written=written, memory=ending.memory
    )


def _known(answer: Mapping[str, AnyValue], report: Mapping[str, AnyValue]) -> dict[str, AnyValue]:
    """Return what an outcome says of the bytes that were read, as far as they were."""
    return {
        "content": answer.get("content", ""),
        "bytes_read": answer.get("bytes_read", 0),
        "report": {**report, "files": answer.get("files", [])},
    }


def _died(
    job: Job, ending: Ending, settings: Settings, identified: Mapping[str, AnyValue]
) -> Outcome:
    """Return the outcome of a model whose process ended without an answer."""
    said = f": {ending.said}" if ending.said else ""
    if not ending.in_time:
        status, error = "out of time", f"took more than {settings.seconds:g} s"
    elif any(words in ending.said for words in _NO_MEMORY):
        status, error = "out of memory", f"more memory is needed than it may take{said}"
    elif -ending.code == getattr(signal, "SIGKILL", None):
        status = "crashed"
        error = "its process was killed (signal 9), as a system does that runs out of memory"
    elif ending.code < 0:
        status, error = "crashed", f"its process crashed ({_signal_name(-ending.code)}){said}"
    else:
        status, error = "crashed", f"its process ended (exit code {ending.code}){said}"
    return _outcome(job, status, error=error, memory=ending.memory, **_known(identified, {}))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _outcome(job: Job, status: str, **known: AnyValue) -> Outcome:
    return Outcome(name=job.name, sources=job.sources, target=job.target, status=status, **known)
