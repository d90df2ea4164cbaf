"""The tables of ONNX's converters, one for each domain of operators."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from serde.converters import ConverterTable
from serde.onnx.versions import CHANGES

__all__ = ["MICROSOFT", "OPS", "TABLES"]

OPS = ConverterTable("onnx", changes={name: tuple(sorted(each)) for name, each in CHANGES.items()})
"""Operators of ONNX itself."""

MICROSOFT = ConverterTable("com.microsoft")
"""Operators that ONNX Runtime adds."""

TABLES: Mapping[str, ConverterTable] = MappingProxyType({"": OPS, "com.microsoft": MICROSOFT})
"""The table of each domain that is read."""
