"""Resizing, sampling and rearranging of images."""

from __future__ import annotations

from serde.relay.op.image import (
    blocks,
    crop,
    dynamic,
    grid,
    morphology,
    resampling,
    resize,
    sampling,
    upsampling,
)

__all__ = [
    "blocks",
    "crop",
    "dynamic",
    "grid",
    "morphology",
    "resampling",
    "resize",
    "sampling",
    "upsampling",
]
