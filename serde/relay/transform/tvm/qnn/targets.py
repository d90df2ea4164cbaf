"""What a target says of itself, as far as the forms of quantised operators depend on it."""

from __future__ import annotations

import shlex
import threading
from dataclasses import dataclass
from typing import Final

from serde.errors import RelayError

__all__ = ["Target", "current_target"]

_KEYS: Final = {
    "llvm": ("cpu",),
    "c": ("cpu",),
    "cuda": ("cuda", "gpu"),
    "rocm": ("rocm", "gpu"),
    "hexagon": ("hexagon",),
}
_SSE42: Final = frozenset((
    "alderlake", "broadwell", "cannonlake", "cascadelake", "cooperlake", "core-avx-i", "core-avx2",
    "corei7", "corei7-avx", "haswell", "icelake-client", "icelake-server", "ivybridge", "nehalem",
    "rocketlake", "sandybridge", "sapphirerapids", "skylake", "skylake-avx512", "tigerlake",
    "westmere", "x86-64-v2", "x86-64-v3", "x86-64-v4", "znver1", "znver2", "znver3", "znver4",
))  # fmt: skip
"""Processors of x86 that have SSE4.2."""


@dataclass(frozen=True)
class Target:
    """A target in TVM's words, such as ``llvm -mcpu=cascadelake``; ``with Target(...): ...``.

    Each thread has targets of its own.

    Args:
        text: The kind, then options.

    Raises:
        RelayError: There is no such kind.
    """

    text: str

    def __post_init__(self) -> None:
        if self.kind not in _KEYS:
            raise RelayError(f"a target is one of {', '.join(sorted(_KEYS))}, not {self.kind!r}")

    @property
    def kind(self) -> str:
        """The first word."""
        return (shlex.split(self.text) or [""])[0]

    @property
    def options(self) -> dict[str, str]:
        """What follows, by name."""
        pairs = (word.lstrip("-").partition("=") for word in shlex.split(self.text)[1:])
        return {name: value for name, _, value in pairs}

    @property
    def keys(self) -> tuple[str, ...]:
        """Names under which something may be registered for the target, nearest first."""
        named = [self.options[name] for name in ("device", "model") if name in self.options]
        return (*named[:1], *_KEYS[self.kind])

    @property
    def features(self) -> frozenset[str]:
        """What its processor is told to have, as ``dotprod``."""
        words = self.options.get("mattr", "").split(",")
        return frozenset(word[1:] for word in words if word.startswith("+"))

    @property
    def has_fast_int8(self) -> bool:
        """Whether it multiplies uint8 by int8 fast: processors of x86 from SSE4.2 on."""
        return self.options.get("mcpu", "") in _SSE42

    @property
    def has_asimd(self) -> bool:
        """Whether it has the vector instructions of AArch64."""
        return "aarch64" in self.options.get("mtriple", "") or "neon" in self.features

    @property
    def has_dotprod(self) -> bool:
        """Whether it sums products of int8 fast: processors of ARM from 8.4 on, or so told."""
        return "dotprod" in self.features or "v8.4a" in self.features

    def __enter__(self) -> Target:
        _ENTERED.stack.append(self)
        return self

    def __exit__(self, *_error: object) -> None:
        _ENTERED.stack.pop()


class _Entered(threading.local):
    def __init__(self) -> None:
        self.stack: list[Target] = []


_ENTERED = _Entered()


def current_target() -> Target | None:
    """Return the innermost target of this thread, or None."""
    return _ENTERED.stack[-1] if _ENTERED.stack else None
