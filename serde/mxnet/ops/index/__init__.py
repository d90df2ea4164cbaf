"""Slicing, looking up, writing and sorting."""

from __future__ import annotations

from serde.mxnet.ops.index import selection
from serde.mxnet.ops.index.selection import as_index

__all__ = ["as_index", "selection"]
