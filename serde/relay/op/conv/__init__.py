"""Convolutions: direct, transposed, deformable; a gradient; and the correlation of images."""

from __future__ import annotations

from serde.relay.op.conv import backward, deformable, direct, sampled, transposed

__all__ = ["backward", "deformable", "direct", "sampled", "transposed"]
