"""Smaller models: options, samples and figures that the formats' own tools share."""
