"""Objects in images: anchors, regions, and boxes of which the best stay."""

from __future__ import annotations

from serde.coreml.mlprogram.ops.vision import anchors, regions, suppression

__all__ = ["anchors", "regions", "suppression"]
