"""Converters of TFLite, in the categories of :mod:`serde.relay.op`.

The tables load the modules, by ``index.json``.
"""

from __future__ import annotations

from serde.tflite.ops.table import OPS as TABLE

__all__ = ["TABLE"]
