"""Detection: anchors, boxes, and pooling of regions."""

from __future__ import annotations

from serde.mxnet.ops.vision import boxes, geometry, regions, sensitive, suppression

__all__ = ["boxes", "geometry", "regions", "sensitive", "suppression"]
