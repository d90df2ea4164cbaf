"""Convolutions."""

from __future__ import annotations

from serde.onnx.ops.conv import backward, deformable, direct, transposed

__all__ = ["backward", "deformable", "direct", "transposed"]
