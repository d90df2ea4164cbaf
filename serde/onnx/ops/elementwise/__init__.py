"""Arithmetic, comparison and mathematical functions, element by element."""

from __future__ import annotations

from serde.onnx.ops.elementwise import binary, bitwise, convert, fixed_point, unary
from serde.onnx.ops.elementwise.convert import (
    cast,
    chosen,
    comparable,
    filled,
    truth,
    typed,
    widened,
    working,
)
from serde.onnx.ops.elementwise.fixed_point import fixed_ratio, scaled
from serde.onnx.ops.elementwise.unary import export_clip, export_round

__all__ = [
    "binary",
    "bitwise",
    "cast",
    "chosen",
    "comparable",
    "convert",
    "export_clip",
    "export_round",
    "filled",
    "fixed_point",
    "fixed_ratio",
    "scaled",
    "truth",
    "typed",
    "unary",
    "widened",
    "working",
]
