"""Images: resized, cropped, and read at the places of a grid."""

from __future__ import annotations

from serde.coreml.mlprogram.ops.image import crop, resize, sampling, upsampling

__all__ = ["crop", "resize", "sampling", "upsampling"]
