"""Slicing, looking up, writing and sorting."""

from __future__ import annotations

from serde.mxnet.ops.index import (
    counting,
    insertion,
    lookup,
    masking,
    picking,
    scan,
    selection,
    sorting,
    storage,
    writing,
)

__all__ = [
    "counting",
    "insertion",
    "lookup",
    "masking",
    "picking",
    "scan",
    "selection",
    "sorting",
    "storage",
    "writing",
]
