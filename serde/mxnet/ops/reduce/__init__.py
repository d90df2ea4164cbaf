"""Reductions: plain ones, NumPy's sums and statistics, norms, losses."""

from __future__ import annotations

from serde.mxnet.ops.reduce import loss, norm, plain, statistics

__all__ = ["loss", "norm", "plain", "statistics"]
