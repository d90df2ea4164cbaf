"""Slicing, looking up, writing and sorting."""

from __future__ import annotations

from serde.mxnet.ops.index import lookup, selection, sorting, storage, writing

__all__ = ["lookup", "selection", "sorting", "storage", "writing"]
