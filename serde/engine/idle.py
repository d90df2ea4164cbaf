"""Processes of engines that wait for another model.

One is taken again only where a fresh one would be the same: by the process that started it, with
the same environment, module path, directory and limits. In a forked copy of that process there
are none. One that waits for long ends by itself, all others with the process that started them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

__all__ = ["PATIENCE_SECONDS", "IdleWorkers", "surroundings"]

PATIENCE_SECONDS: Final = 60.0
"""After which a process that runs no model ends."""

_MOST: Final = 4
"""Processes that wait at once: those of a source and a target, in two pairs of formats."""

Worker = TypeVar("Worker")


def surroundings(name: str) -> Hashable | None:
    """Return what a process of that name would inherit now; None where it may not wait."""
    limits = []
    try:
        directory = os.getcwd()
        import resource

        if resource.getrlimit(resource.RLIMIT_CPU)[0] != resource.RLIM_INFINITY:
            return None  # Several models would share what one may take.
        limits = [resource.getrlimit(each) for each in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    except ImportError:  # Windows has no such limits.
        pass
    except OSError:  # There is no directory any more.
        return None
    path = tuple(map(os.fspath, sys.path))
    return name, os.getpid(), directory, path, tuple(sorted(os.environ.items())), tuple(limits)


class IdleWorkers(Generic[Worker]):
    """Processes that wait, the last one behind.

    The list is changed by single operations of its own, and no lock is held: one would stay held
    in a copy of this process that was forked meanwhile.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Hashable, Worker]] = []

    def add(self, around: Hashable, worker: Worker) -> list[Worker]:
        """Keep a process that was started in some surroundings; return those that are too many."""
        self._waiting.append((around, worker))
        return [self._waiting.pop(0)[1] for _ in self._waiting[_MOST:]]

    def take(self, around: Hashable) -> Worker | None:
        """Return a process that was started in these surroundings, None if none waits."""
        for each in reversed([each for each in self._waiting if each[0] == around]):
            try:
                self._waiting.remove(each)
            except ValueError:  # Another thread has it.
                continue
            return each[1]
        return None
