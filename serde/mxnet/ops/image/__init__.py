"""Images: resampled, rearranged, read at places."""

from __future__ import annotations

from serde.mxnet.ops.image import blocks, grid, resize

__all__ = ["blocks", "grid", "resize"]
