"""Resizing, sampling and morphology of images."""
