"""Detection: anchors, regions of feature maps, and the suppression of overlapping boxes."""

from __future__ import annotations

from serde.onnx.ops.vision import anchors, boxes, per_class, proposal, regions, suppression

__all__ = ["anchors", "boxes", "per_class", "proposal", "regions", "suppression"]
