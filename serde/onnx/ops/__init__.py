"""Converters of ONNX operators, in the categories of :mod:`serde.relay.op`."""

from __future__ import annotations

import importlib
import pkgutil

from serde.onnx.ops.table import OPS as TABLE
from serde.onnx.ops.table import TABLES

__all__ = ["TABLE", "TABLES"]

for _module in sorted(info.name for info in pkgutil.walk_packages(__path__, f"{__name__}.")):
    importlib.import_module(_module)
