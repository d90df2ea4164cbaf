"""The executor of a batch on this machine: a few threads, each with the process of one model."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterable, Iterator

from serde.fleet.batching.records import Job, Outcome, Settings
from serde.fleet.batching.worker import Runner

__all__ = ["LocalPool", "usable_cores"]


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class LocalPool:
    """Runs so many models at the same time on this machine.

    Args:
        workers: How many; as there are cores if left out.
        runner: What runs a model, which stays open; one of its own for each run if left out.
    """

    def __init__(self, workers: int | None = None, runner: Runner | None = None) -> None:
        self.workers = workers or usable_cores()
        self._runner = runner

    def run(self, jobs: Iterable[Job], settings: Settings) -> Iterator[Outcome]:
        """Yield an outcome for each job, in the order in which they end."""
        runner = self._runner or Runner(settings.threads)
        waiting: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        done: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
        arguments = (runner, settings, waiting, done)
        threads = [
            threading.Thread(target=_work, args=arguments, daemon=True) for _ in range(self.workers)
        ]
        for thread in threads:
            thread.start()
        try:
            yield from _feed(jobs, waiting, done, 2 * self.workers)
        finally:
            for _ in threads:
                waiting.put(None)
            if self._runner is None:
                runner.close()
            for thread in threads:
                thread.join(_PATIENCE)


_PATIENCE = 5.0
"""Seconds that a thread has to end whose process was killed; a store may keep it longer."""


def _feed(
    jobs: Iterable[Job],
    waiting: queue.SimpleQueue[Job | None],
    done: queue.SimpleQueue[Outcome | BaseException],
    room: int,
) -> Iterator[Outcome]:
    """Hand out jobs as long as there is room, and yield what comes back."""
    coming = iter(jobs)
    running, more = 0, True
    while more or running:
        while more and running < room:
            job = next(coming, None)
            more = job is not None
            if job is not None:
                waiting.put(job)
                running += 1
        if running:
            outcome = done.get()
            running -= 1
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome


def _work(
    runner: Runner,
    settings: Settings,
    waiting: queue.SimpleQueue[Job | None],
    done: queue.SimpleQueue[Outcome | BaseException],
) -> None:
    while (job := waiting.get()) is not None:
        try:
            done.put(runner.run(job, settings))
        except BaseException as error:
            done.put(error)
