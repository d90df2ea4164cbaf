"""What people read of names that files bring, of sizes, and of what processes print."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterable, Sequence
from typing import IO, Any, Final

__all__ = ["last_line", "near_names", "printable", "shown", "size_text", "weights_text"]

_READ_BYTES: Final = 8192
_SHOWN_CHARACTERS: Final = 300
"""How much is read, and shown, of the end of what a process printed."""


class _Shown(reprlib.Repr):
    """Shortens long values; a tensor is its type and shape."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 100

    def repr_instance(self, x: Any, level: int) -> str:
        if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, type):
            return f"{type(x).__name__} of {x.dtype}{list(x.shape)}"
        return super().repr_instance(x, level)


_SHOWN: Final = _Shown()


def shown(value: object) -> str:
    """Return what a message shows of a value that a caller gave, which may be as large as a net."""
    return _SHOWN.repr(value)


def size_text(count: int) -> str:
    """Return a number of bytes in decimal units, as ``102.5 MB``."""
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def weights_text(sizes: Sequence[int]) -> str:
    """Return how many weights there are and their bytes together, as ``2 weights of 102.5 MB``."""
    return f"{len(sizes)} weight{'' if len(sizes) == 1 else 's'} of {size_text(sum(sizes))}"


def near_names(name: str, known: Iterable[str]) -> str:
    """Return a question after the name that is most like one, empty where none is."""
    from difflib import get_close_matches

    near = get_close_matches(name, sorted(known), n=1)
    return f" Did you mean {near[0]}?" if near else ""


def printable(text: str) -> str:
    """Return text whose control characters, which a file may bring, are spelled out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def last_line(file: IO[bytes]) -> str:
    """Return the last line of what a process printed into a file, cut if it is long.

    Args:
        file: It must be seekable; however much there is, only its end is read.

    Returns:
        The line; empty where nothing was printed.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _READ_BYTES))
    lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1].strip()[:_SHOWN_CHARACTERS] if lines else ""
