"""Operators that change, join, repeat or make shapes."""

from __future__ import annotations

from serde.relay.op.shape import (
    arrange,
    broadcast,
    columns,
    create,
    dynamic,
    join,
    layout,
    matrix,
    pad,
    reshape,
    window,
)

__all__ = [
    "arrange",
    "broadcast",
    "columns",
    "create",
    "dynamic",
    "join",
    "layout",
    "matrix",
    "pad",
    "reshape",
    "window",
]
