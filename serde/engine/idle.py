"""Processes of engines that wait for another model.

One is taken again only where a fresh one would be the same: by the process that started it, with
the same environment, module path, directory and limits. In a forked copy of that process there
are none. One that waits for long ends by itself (:data:`PATIENCE_SECONDS`), all others with the
process that started them.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

__all__ = ["PATIENCE_SECONDS", "IdleWorkers", "Surroundings"]

Worker = TypeVar("Worker")

PATIENCE_SECONDS: Final = 60.0
"""After which a process that runs no model ends."""

_MOST: Final = 4
"""Processes that wait at once: those of a source and a target, in two pairs of formats."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a fresh process would inherit.

    Attributes:
        name: What the process is called in errors, which is the framework that it has imported.
        pid: Of the process that starts it.
        directory: The working directory.
        path: Where modules are found.
        environment: The environment.
        limits: Of memory, as the system holds them.
    """

    name: str
    pid: int
    directory: str
    path: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    limits: tuple[tuple[int, int], ...]

    @classmethod
    def here(cls, name: str) -> Surroundings | None:
        """Return those of a process started now; None where one may not wait."""
        try:
            directory = os.getcwd()
            limits = _limits()
        except OSError:
            return None
        environment = tuple(sorted(os.environ.items()))
        path = tuple(map(os.fspath, sys.path))
        return cls(name, os.getpid(), directory, path, environment, limits)


def _limits() -> tuple[tuple[int, int], ...]:
    """Return the limits of memory.

    Raises:
        OSError: That of time is set too, which several models would share.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limits.
        return ()
    if resource.getrlimit(resource.RLIMIT_CPU)[0] != resource.RLIM_INFINITY:
        raise OSError("processor time is limited")
    return tuple(map(resource.getrlimit, (resource.RLIMIT_AS, resource.RLIMIT_DATA)))


class IdleWorkers(Generic[Worker]):
    """Processes that wait, the last one behind.

    Lists are changed by single operations of their own, and no lock is held: one would stay
    held in a copy of this process that was forked meanwhile.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Surroundings, Worker]] = []

    def add(self, surroundings: Surroundings, worker: Worker) -> list[Worker]:
        """Keep a process; return those that are too many, to be ended."""
        self._waiting.append((surroundings, worker))
        spare = []
        while len(self._waiting) > _MOST:
            spare.append(self._waiting.pop(0)[1])
        return spare

    def take(self, surroundings: Surroundings | None) -> Worker | None:
        """Return a process that was started in these surroundings, None if none waits."""
        for each in reversed(self._waiting.copy()):
            if each[0] != surroundings:
                continue
            try:
                self._waiting.remove(each)
            except ValueError:  # Another thread has it.
                continue
            return each[1]
        return None
