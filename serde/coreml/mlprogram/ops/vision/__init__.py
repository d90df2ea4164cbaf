"""Objects in images: anchors, regions, and boxes of which the best stay."""
