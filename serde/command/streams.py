"""Standard streams that may be closed, be full, or have lost their reader."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

__all__ = ["usable_streams"]


@contextmanager
def usable_streams() -> Iterator[None]:
    """Let stdout and stderr take what is printed, whatever they lead to.

    What a closed stream gets, or one whose reader has left, goes nowhere; so does what stderr
    cannot take. Of stdout any other fault is an ``OSError`` that names it, once.
    """
    _fill_descriptors()
    kept = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.stdout = cast(TextIO, _Stream(kept[0] or nowhere, "standard output"))
        sys.stderr = cast(TextIO, _Stream(kept[1] or nowhere, None))
        try:
            yield
        finally:
            sys.stdout, sys.stderr = kept


def _fill_descriptors() -> None:
    """Open the null device for each standard stream that is closed.

    Otherwise the next file that is opened takes the number, and gets what libraries print.
    """
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= 2:
        os.set_inheritable(fd, True)
        fd = os.open(os.devnull, os.O_RDWR)
    os.close(fd)


class _Stream:
    """A text stream that goes on when it cannot be written to.

    Args:
        stream: The stream.
        name: What an error calls it; None if there is to be none.
    """

    def __init__(self, stream: TextIO, name: str | None) -> None:
        self._stream = stream
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text and return its length; nothing is written to find out whether it can be."""
        if text != "":
            self._attempt(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Write what was gathered."""
        self._attempt(self._stream.flush)

    def _attempt(self, call: Callable[..., object], *args: str) -> None:
        try:
            call(*args)
        except OSError as error:
            # Also what the stream has gathered must go somewhere when the interpreter ends.
            with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self._stream.fileno())
            if self._name is not None and not isinstance(error, BrokenPipeError):
                raise OSError(error.errno, error.strerror, self._name) from None
