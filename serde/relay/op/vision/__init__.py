"""Detection: anchors, regions of feature maps, and the suppression of overlapping boxes."""

from __future__ import annotations

from serde.relay.op.vision import (
    aligned,
    anchors,
    boxes,
    detection,
    per_class,
    proposal,
    regions,
    rotated,
    sampling,
    scored,
    selection,
    sensitive,
    suppression,
    targets,
)

__all__ = [
    "aligned",
    "anchors",
    "boxes",
    "detection",
    "per_class",
    "proposal",
    "regions",
    "rotated",
    "sampling",
    "scored",
    "selection",
    "sensitive",
    "suppression",
    "targets",
]
