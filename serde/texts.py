"""What people read of names that files bring, and of sizes."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["printable", "size_text", "weights_text"]


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


def printable(text: str) -> str:
    """Return text whose control characters, which a file may bring, are spelled out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
