"""In what circumstances passes run."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any as AnyValue, Protocol

from serde.core.records import dataclass
from serde.relay.ir.module import IRModule

__all__ = ["Instrument", "PassContext", "PassInfo"]


@dataclass(frozen=True)
class PassInfo:
    """Facts about a pass.

    Attributes:
        opt_level: The level from which on it runs.
        name: Its name.
        required: Names of the passes that come before it.
    """

    opt_level: int
    name: str
    required: Sequence[str] = ()


class Instrument(Protocol):
    """What watches passes; see :class:`serde.relay.tvm.passes.instrument.PassInstrument`."""

    def enter_pass_ctx(self) -> None:
        """Notice that a context begins."""

    def exit_pass_ctx(self) -> None:
        """Notice that a context ends."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Return whether a pass may run."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Look at a module before a pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Look at a module behind a pass."""


class PassContext:
    """Which passes run, how, and who watches; ``with PassContext(opt_level=3): ...``.

    Each thread has contexts of its own.

    Args:
        opt_level: :class:`Sequential` leaves out passes of a higher level.
        required_pass: Names of passes that it runs whatever their level.
        disabled_pass: Names of passes that it leaves out whatever their level.
        instruments: What watches the passes, or keeps them from running.
        config: Values for options of passes, by their names.

    Raises:
        TypeError: An argument is of another kind.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        instruments: Sequence[Instrument] | None = None,
        config: Mapping[str, AnyValue] | None = None,
    ) -> None:
        self.opt_level = opt_level
        self.required_pass = _names("required_pass", required_pass)
        self.disabled_pass = _names("disabled_pass", disabled_pass)
        self.instruments: Sequence[Instrument] = tuple(instruments or ())
        self.config: dict[str, AnyValue] = dict(config or {})

    @staticmethod
    def current() -> PassContext:
        """Return the innermost context of this thread; outside all, its own one of all defaults."""
        return _ENTERED.stack[-1]

    def __enter__(self) -> PassContext:
        self._tell_all("enter_pass_ctx")
        _ENTERED.stack.append(self)
        return self

    def __exit__(self, *_error: object) -> None:
        _ENTERED.stack.pop()
        self._tell_all("exit_pass_ctx")

    def override_instruments(self, instruments: Sequence[Instrument] | None) -> None:
        """Let others watch; those so far are told that the context ends for them."""
        self._tell_all("exit_pass_ctx")
        self.instruments = tuple(instruments or ())
        self._tell_all("enter_pass_ctx")

    def enables(self, info: PassInfo) -> bool:
        """Whether a :class:`Sequential` runs a pass here."""
        if info.name in self.disabled_pass:
            return False
        return info.name in self.required_pass or self.opt_level >= info.opt_level

    def before_pass(self, mod: IRModule, info: PassInfo) -> bool:
        """Return whether all instruments let a pass run, and let them look if so.

        A pass that the context requires runs whatever they say.
        """
        wanted = info.name in self.required_pass
        # All are asked, also after one has said no.
        if not (wanted or all([each.should_run(mod, info) for each in self.instruments])):
            return False
        for each in self.instruments:
            each.run_before_pass(mod, info)
        return True

    def after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Let the instruments look at what a pass has made."""
        for each in self.instruments:
            each.run_after_pass(mod, info)

    def _tell_all(self, event: str) -> None:
        """Call one method of all instruments; where one fails, none watches any more.

        Those that the context began for before that are told that it ends.
        """
        told = []
        try:
            for each in self.instruments:
                getattr(each, event)()
                told.append(each)
        except Exception:
            self.instruments = ()
            if event == "enter_pass_ctx":
                for each in told:
                    each.exit_pass_ctx()
            raise


def _names(what: str, given: Iterable[str] | None) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, (Iterable, type(None))):
        raise TypeError(f"{what} must be a list of names, found {given!r}")
    names = tuple(given or ())
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"{what} must be a list of names, found {given!r}")
    return names


class _Entered(threading.local):
    def __init__(self) -> None:
        self.stack = [PassContext()]


_ENTERED = _Entered()
