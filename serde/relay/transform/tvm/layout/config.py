"""Which layers keep their layout."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar, Token
from typing import Final

__all__ = ["LayoutConfig"]


class LayoutConfig:
    """Keeps some convolutions from :class:`ConvertLayout`: ``with LayoutConfig([0]): ...``.

    Args:
        skip_layers: Numbers of the convolutions that stay, counted from 0 in the order in which
            the pass meets them.
    """

    def __init__(self, skip_layers: Iterable[int] | None = None) -> None:
        self.skip_counter = 0
        self.skip_layers = list(skip_layers or ())
        self._tokens: list[Token[LayoutConfig | None]] = []

    @staticmethod
    def current() -> LayoutConfig | None:
        """Return the innermost one that is entered here, or None."""
        return _CURRENT.get()

    def check_skip(self) -> bool:
        """Return whether the next convolution stays, and count it."""
        skip = self.skip_counter in self.skip_layers
        self.skip_counter += 1
        return skip

    def reset(self) -> None:
        """Count from 0 again, and skip none."""
        self.skip_counter = 0
        self.skip_layers = []

    def __enter__(self) -> LayoutConfig:
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(self, *_error: object) -> None:
        _CURRENT.reset(self._tokens.pop())


_CURRENT: Final[ContextVar[LayoutConfig | None]] = ContextVar("layout_config", default=None)
