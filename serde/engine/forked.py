"""Engines forked from a process that was made for one model, instead of started afresh.

A fresh interpreter takes longer to start than a small model to convert and run. A process that
was itself forked for one model, has no threads and no guard to mind may fork for its engines.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, Final

__all__ = ["ForkedProcess", "fork_engines", "forked_engines", "may_fork"]

_NAMES: Final[ContextVar[list[str] | None]] = ContextVar("engines", default=None)


@contextmanager
def fork_engines() -> Iterator[None]:
    """Let engines that are opened inside be forked; only where this process has no threads."""
    token = _NAMES.set([])
    try:
        yield
    finally:
        _NAMES.reset(token)


def may_fork() -> bool:
    """Whether engines are forked here."""
    return _NAMES.get() is not None


def forked_engines() -> list[str]:
    """Return the names of the engines that were forked so far."""
    return list(_NAMES.get() or ())


class ForkedProcess:
    """A process that runs an engine, as ``subprocess.Popen`` would have started it.

    Args:
        name: Name of the engine.
        environment: What its environment has besides that of this process.
        errors: Where what it prints goes.

    Attributes:
        pid: Its number.
        stdin: Where requests are written.
        stdout: Where answers are read.
    """

    def __init__(self, name: str, environment: Mapping[str, str], errors: IO[bytes]) -> None:
        names = _NAMES.get()
        if names is not None:
            names.append(name)
        asked, asks = os.pipe()
        answered, answers = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            for number in (asks, answered):
                os.close(number)
            _become_worker(asked, answers, errors.fileno(), environment)
        for number in (asked, answers):
            os.close(number)
        self.stdin: IO[bytes] = os.fdopen(asks, "wb")
        self.stdout: IO[bytes] = os.fdopen(answered, "rb")
        self._code: int | None = None

    def kill(self) -> None:
        """Kill the process, if it has not been waited for."""
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for its end; return its exit code, or the negative number of a signal."""
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._code


def _become_worker(
    requests: int, answers: int, errors: int, environment: Mapping[str, str]
) -> None:
    """Answer requests in the child, and never return."""
    from serde.engine.worker import main

    try:
        os.environ.update(environment)
        _NAMES.set(None)
        for number, place in ((requests, 0), (answers, 1), (errors, 2)):
            os.dup2(number, place)
            os.close(number)
        main(os.fdopen(0, "rb", closefd=False))
    finally:
        sys.stderr.flush()
        os._exit(1)
