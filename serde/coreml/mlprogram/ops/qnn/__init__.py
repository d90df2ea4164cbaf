"""Quantised tensors, and weights that are kept compressed."""

from __future__ import annotations

from serde.coreml.mlprogram.ops.qnn import compressed, linear

__all__ = ["compressed", "linear"]
