"""Images: resampled, rearranged, read at places."""

from __future__ import annotations

from serde.mxnet.ops.image import blocks, colour, grid, opencv, pixels, resize

__all__ = ["blocks", "colour", "grid", "opencv", "pixels", "resize"]
