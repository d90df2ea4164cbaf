"""Convolutions: direct and transposed, and at learned places."""

from __future__ import annotations

from serde.mxnet.ops.conv import blocks, deformable, direct
from serde.mxnet.ops.conv.direct import LAYOUTS, layouts, per_axis, transposed

__all__ = ["LAYOUTS", "blocks", "deformable", "direct", "layouts", "per_axis", "transposed"]
