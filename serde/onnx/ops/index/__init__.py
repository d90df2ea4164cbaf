"""Slicing, looking up, writing by index, and ordering."""

from __future__ import annotations

from serde.onnx.ops.index import (
    cache,
    dynamic,
    gather,
    ngrams,
    scan,
    scatter,
    select,
    slicing,
    sorting,
    subset,
)

__all__ = [
    "cache",
    "dynamic",
    "gather",
    "ngrams",
    "scan",
    "scatter",
    "select",
    "slicing",
    "sorting",
    "subset",
]
