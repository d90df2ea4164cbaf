"""Detection: anchors, regions of feature maps, and the suppression of overlapping boxes."""
