"""Convolutions: direct, transposed, deformable; and the correlation of two images."""

from __future__ import annotations

from serde.relay.op.conv import deformable, direct, transposed

__all__ = ["deformable", "direct", "transposed"]
