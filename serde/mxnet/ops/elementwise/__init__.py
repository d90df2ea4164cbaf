"""Arithmetic, comparison and mathematical functions, element by element."""

from __future__ import annotations

from serde.mxnet.ops.elementwise import (
    binary,
    bitwise,
    convert,
    division,
    fixed_point,
    promotion,
    scalars,
    unary,
)

__all__ = [
    "binary",
    "bitwise",
    "convert",
    "division",
    "fixed_point",
    "promotion",
    "scalars",
    "unary",
]
