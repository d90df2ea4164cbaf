"""Types of operands: MXNet computes windows in float32 or float64."""

from __future__ import annotations

from serde.walk.expansion.tensors import fixed_shape, tensor_type

__all__ = ["FLOATS", "fixed_shape", "tensor_type"]

FLOATS = ("float32", "float64")
"""What MXNet computes windows in."""
