"""Operators that pick, place, slice, sort and accumulate elements."""

from __future__ import annotations

from serde.relay.op.index import dynamic, gather, scan, scatter, select, slicing, sorting

__all__ = ["dynamic", "gather", "scan", "scatter", "select", "slicing", "sorting"]
