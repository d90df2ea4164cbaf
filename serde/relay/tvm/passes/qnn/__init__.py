"""Passes over quantised operators, as ``relay.qnn.transform`` has them."""

from __future__ import annotations

from serde.relay.tvm.passes.qnn.passes import CanonicalizeOps, Legalize

__all__ = ["CanonicalizeOps", "Legalize"]
