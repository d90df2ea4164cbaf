"""Determinants."""

from __future__ import annotations

from serde.onnx.ops.table import OPS
from serde.walk.pairs import pair
from serde.walk.takes import Takes, dtypes

# ONNX Runtime has determinants of float32 alone; others are computed row by row.
OPS.pairs(pair("Det", "serde.det", since=(11, 22), target=1, takes=Takes(data=dtypes("float32"))))
