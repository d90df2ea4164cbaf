"""Slicing, looking up, writing and sorting."""

from __future__ import annotations

from serde.mxnet.ops.index import gather, scan, scatter, select, slicing, sorting, subset

__all__ = ["gather", "scan", "scatter", "select", "slicing", "sorting", "subset"]
