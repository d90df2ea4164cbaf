"""Calls that are built before their operands are what the call needs.

A function that changes the layout of a call builds it on operands that are still in another
layout; they are brought into the new one afterwards. Meanwhile types that do not fit are no error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

__all__ = ["defer_types", "types_are_deferred"]

_DEFERRED: Final = ContextVar("types_are_deferred", default=False)


@contextmanager
def defer_types() -> Iterator[None]:
    """Let calls that are built here go without a type where their operands do not fit."""
    token = _DEFERRED.set(True)
    try:
        yield
    finally:
        _DEFERRED.reset(token)


def types_are_deferred() -> bool:
    """Whether a call may go without a type where its operands do not fit."""
    return _DEFERRED.get()
