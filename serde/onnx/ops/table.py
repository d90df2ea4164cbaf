"""The tables of ONNX's converters, one for each domain of operators."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from serde.onnx.versions import CHANGES, ML_CHANGES
from serde.walk.table import ConverterTable

__all__ = ["MICROSOFT", "ML", "OPS", "TABLES"]

OPS = ConverterTable("onnx", changes={name: tuple(sorted(each)) for name, each in CHANGES.items()})
"""Operators of ONNX itself."""

MICROSOFT = ConverterTable("com.microsoft")
"""Operators that ONNX Runtime adds."""

ML = ConverterTable("ai.onnx.ml", changes=ML_CHANGES)
"""Operators of classical machine learning, which come with ONNX."""

TABLES: Mapping[str, ConverterTable] = MappingProxyType(
    {"": OPS, "com.microsoft": MICROSOFT, "ai.onnx.ml": ML}
)
"""The table of each domain that is read."""
