"""Operators that pick, place, slice, sort and accumulate elements."""

from __future__ import annotations

from serde.relay.op.index import (
    arrangement,
    cache,
    dynamic,
    gather,
    scan,
    scatter,
    select,
    signed,
    slicing,
    sorting,
    subset,
)

__all__ = [
    "arrangement",
    "cache",
    "dynamic",
    "gather",
    "scan",
    "scatter",
    "select",
    "signed",
    "slicing",
    "sorting",
    "subset",
]
