"""Detection: anchors, boxes, and pooling of regions."""

from __future__ import annotations

from serde.mxnet.ops.vision import boxes, regions

__all__ = ["boxes", "regions"]
