"""Shapes: reshaping, joining, splitting, broadcasting and filling."""

from __future__ import annotations

from serde.mxnet.ops.shape import (
    arrangement,
    creation,
    diagonal,
    joining,
    ranges,
    rearrangement,
    reshaping,
)

__all__ = ["arrangement", "creation", "diagonal", "joining", "ranges", "rearrangement", "reshaping"]
