"""Reductions of axes: plain ones, norms and logarithms of sums, losses."""

from __future__ import annotations

from serde.relay.op.reduce import loss, norm, plain

__all__ = ["loss", "norm", "plain"]
