"""Arithmetic, comparison and mathematical functions, element by element."""

from __future__ import annotations

from serde.onnx.ops.elementwise import binary
from serde.onnx.ops.elementwise.convert import cast, filled, truth, typed, widened
from serde.onnx.ops.elementwise.fixed_point import fixed_ratio, scaled
from serde.onnx.ops.elementwise.unary import export_clip, export_round

__all__ = [
    "binary",
    "cast",
    "export_clip",
    "export_round",
    "filled",
    "fixed_ratio",
    "scaled",
    "truth",
    "typed",
    "widened",
]
