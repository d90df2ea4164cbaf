"""Numbers drawn at random, the densities of their distributions, choices and shuffles."""

from __future__ import annotations

from serde.mxnet.ops.random import arrays, choices, densities, draws, seeded

__all__ = ["arrays", "choices", "densities", "draws", "seeded"]
