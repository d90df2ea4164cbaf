"""Slicing, looking up, writing by index, and ordering."""

from __future__ import annotations

from serde.onnx.ops.index import dynamic, gather, scan, scatter, select, slicing, sorting, subset

__all__ = ["dynamic", "gather", "scan", "scatter", "select", "slicing", "sorting", "subset"]
