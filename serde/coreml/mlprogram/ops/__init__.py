"""Converters of MIL's operators, in the categories of :mod:`serde.relay.op`."""

from __future__ import annotations

import importlib
import pkgutil

from serde.coreml.mlprogram.ops.table import OPS as TABLE

__all__ = ["TABLE"]

for _module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")
