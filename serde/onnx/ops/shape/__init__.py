"""Shapes: reshaping, joining, splitting, broadcasting and filling."""

from __future__ import annotations

from serde.onnx.ops.shape import (
    arrange,
    blocks,
    broadcast,
    columns,
    create,
    dynamic,
    join,
    layout,
    matrix,
    pad,
    window,
)
from serde.onnx.ops.shape.layout import arranged
from serde.onnx.ops.shape.reshape import (
    along,
    counting,
    integers,
    lengths,
    require_short,
    reshaped,
    squeeze,
    unsqueeze,
)
from serde.onnx.ops.shape.window import Windows

__all__ = [
    "Windows",
    "along",
    "arrange",
    "arranged",
    "blocks",
    "broadcast",
    "columns",
    "counting",
    "create",
    "dynamic",
    "integers",
    "join",
    "layout",
    "lengths",
    "matrix",
    "pad",
    "require_short",
    "reshaped",
    "squeeze",
    "unsqueeze",
    "window",
]
