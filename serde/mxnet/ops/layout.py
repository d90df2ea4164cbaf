"""Layouts and dtypes of operands, changed before Relay's operators are written.

MXNet computes with channels behind the batch axis and in float32 or float64; what is
laid out otherwise is moved there and back, and what is narrower is widened and back.
"""

from __future__ import annotations

from serde.relay.lowering.layout import arranged
from serde.walk.expansion.tensors import fixed_shape, tensor_type

__all__ = ["FLOATS", "SPATIAL", "arranged", "fixed_shape", "tensor_type"]

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
"""Letters of the spatial axes for each number of them."""

FLOATS = ("float32", "float64")
"""What MXNet computes windows in."""
