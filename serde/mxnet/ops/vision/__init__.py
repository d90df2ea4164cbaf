"""Detection: anchors, boxes, and pooling of regions."""
