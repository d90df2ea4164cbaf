"""Types of operands: MXNet computes windows in float32 or float64."""

from __future__ import annotations

from serde.walk.expansion.tensors import fixed_shape, tensor_type
from serde.walk.takes import dtypes

__all__ = ["COMPUTED", "FLOATS", "fixed_shape", "tensor_type"]

FLOATS = ("float32", "float64")
COMPUTED = dtypes(*FLOATS)
"""What MXNet computes windows in."""
