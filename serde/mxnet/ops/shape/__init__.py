"""Shapes: reshaping, joining, splitting, broadcasting and filling."""

from __future__ import annotations

from serde.mxnet.ops.shape import (
    arrange,
    broadcast,
    create,
    join,
    layout,
    matrix,
    pad,
    reshape,
    window,
)

__all__ = ["arrange", "broadcast", "create", "join", "layout", "matrix", "pad", "reshape", "window"]
