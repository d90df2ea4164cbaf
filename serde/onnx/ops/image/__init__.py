"""Resizing and sampling of images."""

from __future__ import annotations

from serde.onnx.ops.image import crop, grid, morphology, resampling, resize

__all__ = ["crop", "grid", "morphology", "resampling", "resize"]
