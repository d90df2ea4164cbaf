"""How far a stage has come: told by what does the work, to whoever listens.

Work is counted where it is done, in the unit that it is done in (nodes, bytes of weights), by
what :func:`counting` returns; how much there is to come is told by :func:`expect`. Neither knows
who listens: a stage of a :class:`~serde.core.report.Report` that has an ``on_progress``, or nobody,
and
then counting costs a call that does nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from serde.core.records import dataclass

__all__ = ["INTERVAL", "Progress", "counting", "expect", "listening"]

INTERVAL = 0.1
"""Seconds between two calls of a listener, at least."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage has come.

    Attributes:
        stage: Name of the stage, such as ``save``.
        unit: What is counted: ``nodes``, ``bytes`` or ``passes``.
        done: How many are done.
        total: How many there are, at least `done`; 0 if that is not known.
        seconds: Since the stage began.
    """

    stage: str
    unit: str
    done: int
    total: int
    seconds: float


Listener = Callable[[Progress], object]


class _Counter:
    """Counts the work of one stage and tells of it now and then."""

    def __init__(self, stage: str, listener: Listener) -> None:
        self._stage = stage
        self._listener = listener
        self._start = self._told = time.perf_counter()
        self._done: dict[str, int] = {}
        self._total: dict[str, int] = {}

    def expect(self, unit: str, amount: int) -> None:
        self._total[unit] = self._total.get(unit, 0) + amount

    def counting(self, unit: str) -> Callable[[int], None]:
        def count(amount: int) -> None:
            self._done[unit] = done = self._done.get(unit, 0) + amount
            now = time.perf_counter()
            if now - self._told >= INTERVAL:
                self._told = now
                total = self._total.get(unit, 0)
                seconds = now - self._start
                self._listener(
                    Progress(self._stage, unit, done, max(total, done) if total else 0, seconds)
                )

        return count


_COUNTER: ContextVar[_Counter | None] = ContextVar("serde_progress", default=None)


@contextmanager
def listening(stage: str, listener: Listener) -> Iterator[None]:
    """Let `listener` know how far the body of a ``with`` statement has come.

    Args:
        stage: What the body is called.
        listener: Called with a :class:`Progress`, no more than ten times a second.
    """
    token = _COUNTER.set(_Counter(stage, listener))
    try:
        yield
    finally:
        _COUNTER.reset(token)


def expect(unit: str, amount: int) -> None:
    """Tell how many more of a unit the stage will count."""
    counter = _COUNTER.get()
    if counter is not None:
        counter.expect(unit, amount)


def counting(unit: str) -> Callable[[int], None]:
    """Return what counts work as it is done; it is asked for once, in front of a loop."""
    counter = _COUNTER.get()
    return _ignore if counter is None else counter.counting(unit)


def _ignore(_amount: int) -> None:
    """Count for nobody."""
