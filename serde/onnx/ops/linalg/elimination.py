"""Determinants."""

from __future__ import annotations

from serde.onnx.ops.elementwise.convert import has_dtype
from serde.onnx.ops.table import OPS
from serde.walk.pairs import pair

# ONNX Runtime has determinants of float32 alone; others are computed row by row.
OPS.pairs(pair("Det", "serde.det", since=(11, 22), target=1, when=has_dtype("float32")))
