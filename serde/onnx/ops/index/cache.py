"""Rows written into a cache."""

from __future__ import annotations

from serde.onnx.ops.table import OPS
from serde.walk.pairs import pair

OPS.pairs(pair("TensorScatter", "serde.tensor_scatter", since=24, axis=-2, mode="linear"))
