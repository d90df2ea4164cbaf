"""Arithmetic, comparison and mathematical functions, element by element."""

from __future__ import annotations

from serde.mxnet.ops.elementwise import (
    arithmetic,
    bits,
    composed,
    contrib,
    division,
    promotion,
    special,
)
from serde.mxnet.ops.elementwise.arithmetic import import_cbrt, scalar_like

__all__ = [
    "arithmetic",
    "bits",
    "composed",
    "contrib",
    "division",
    "import_cbrt",
    "promotion",
    "scalar_like",
    "special",
]
