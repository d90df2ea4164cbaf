"""Resizing, sampling and rearranging of images."""

from __future__ import annotations

from serde.relay.op.image import blocks, grid, resize

__all__ = ["blocks", "grid", "resize"]
