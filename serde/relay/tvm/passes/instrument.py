"""What watches passes while they run, in a :class:`PassContext`."""

from __future__ import annotations

import inspect
import time
from typing import Any as AnyValue

from serde.core.records import dataclass, field
from serde.relay.ir.module import IRModule
from serde.relay.transform.base import Pass
from serde.relay.transform.context import PassInfo

__all__ = [
    "PassInstrument", "PassTimingInstrument", "PrintAfterAll", "PrintBeforeAll", "PrintIR",
    "pass_instrument",
]  # fmt: skip


class PassInstrument:
    """Base of all instruments: watches nothing and lets every pass run."""

    def enter_pass_ctx(self) -> None:
        """Notice that a context begins."""

    def exit_pass_ctx(self) -> None:
        """Notice that a context ends."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Return whether a pass may run."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Look at a module before a pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Look at a module behind a pass."""


def pass_instrument(pass_instrument_class: AnyValue = None) -> AnyValue:
    """Return a class of instruments made of one with some of the methods; also a decorator.

    Raises:
        TypeError: What is given is no class.
    """

    def decorate(given: AnyValue) -> AnyValue:
        if not inspect.isclass(given):
            raise TypeError(f"expected a class, found {given!r}")
        return type(given.__name__, (given, PassInstrument), {"__doc__": given.__doc__})

    return decorate if pass_instrument_class is None else decorate(pass_instrument_class)


@dataclass
class _Timed:
    """A pass that ran, and those that it ran in turn; seconds."""

    name: str
    begin: float
    duration: float = 0.0
    inner: list[_Timed] = field(default_factory=list)


class PassTimingInstrument(PassInstrument):
    """Measures how long each pass takes; what a context measured is forgotten at its end."""

    def __init__(self) -> None:
        self._done: list[_Timed] = []
        self._running: list[_Timed] = []

    def exit_pass_ctx(self) -> None:
        """Forget all measurements."""
        self._done, self._running = [], []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Start the clock of a pass."""
        self._running.append(_Timed(info.name, time.perf_counter()))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Stop the clock of a pass."""
        timed = self._running.pop()
        timed.duration = time.perf_counter() - timed.begin
        (self._running[-1].inner if self._running else self._done).append(timed)

    def render(self) -> str:
        """Return a line for each pass: name, microseconds, share of all and of what it is part of.

        The context must not have ended; ``PassContext.current().override_instruments([timing])``
        measures outside ``with``.
        """
        lines: list[str] = []
        total = sum(each.duration for each in self._done)
        pending = [(each, 0, total) for each in reversed(self._done)]
        while pending:
            timed, depth, whole = pending.pop()
            inside = sum(each.duration for each in timed.inner)
            micros, own = round(timed.duration * 1e6), round((timed.duration - inside) * 1e6)
            shares = "; ".join(f"{timed.duration / (of or 1):.2%}" for of in (total, whole))
            lines.append(f"{chr(9) * depth}{timed.name}: {micros}us [{own}us] ({shares})")
            pending += [(each, depth + 1, timed.duration) for each in reversed(timed.inner)]
        return "\n".join([*lines, ""]) if lines else ""


class PrintBeforeAll(PassInstrument):
    """Prints the module before each pass."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Print the module."""
        print(f"Before {info.name}:\n{mod}\n")


class PrintAfterAll(PassInstrument):
    """Prints the module behind each pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Print the module."""
        print(f"After {info.name}:\n{mod}\n")


@dataclass(frozen=True)
class PrintIR(Pass):
    """Prints a module between other passes, and leaves it as it is."""

    name = "PrintIR"
    header: str = ""
    show_meta_data: bool = False

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Print the module behind the header."""
        print(f"PrintIR({self.header}):\n{mod.astext(self.show_meta_data)}")
        return mod, False
