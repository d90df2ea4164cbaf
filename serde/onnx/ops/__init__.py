"""Converters of ONNX operators, in the categories of :mod:`serde.relay.op`.

The tables load the modules, by ``index.json``.
"""

from __future__ import annotations

from serde.onnx.ops.table import OPS as TABLE, TABLES

__all__ = ["TABLE", "TABLES"]
