"""Images at other places, by look-ups and sums."""

from __future__ import annotations

from serde.nnef.ops.table import OPS
from serde.walk.expansion.resizing import (
    image_expansion,
)
from serde.walk.expansion.sampling import expand_dilation2d

__all__: list[str] = []

OPS.expands("image.dilation2d")(expand_dilation2d)
for _ndim in (1, 2, 3):
    OPS.expands(f"image.resize{_ndim}d")(image_expansion(_ndim))
