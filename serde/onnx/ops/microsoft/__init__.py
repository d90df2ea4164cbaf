"""Operators that ONNX Runtime adds in the domain com.microsoft, by category.

They are read only: what they mean is said in Relay, and written as ONNX's own operators.
"""

from __future__ import annotations

from serde.onnx.ops.microsoft import (
    activation,
    attention,
    conv,
    grouped,
    linalg,
    norm,
    qlinear,
    qnn,
)

__all__ = ["activation", "attention", "conv", "grouped", "linalg", "norm", "qlinear", "qnn"]
