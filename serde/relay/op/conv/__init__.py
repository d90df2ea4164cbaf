"""Convolutions: direct, transposed, deformable; a gradient; and the correlation of images."""
