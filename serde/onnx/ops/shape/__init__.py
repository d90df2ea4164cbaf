"""Shapes: reshaping, joining, splitting, broadcasting and filling."""

from __future__ import annotations

from serde.onnx.ops.shape import broadcast, create, dynamic, join, pad
from serde.onnx.ops.shape.arrange import arranged
from serde.onnx.ops.shape.reshape import integers, squeeze, unsqueeze

__all__ = [
    "arranged",
    "broadcast",
    "create",
    "dynamic",
    "integers",
    "join",
    "pad",
    "squeeze",
    "unsqueeze",
]
