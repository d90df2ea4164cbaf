"""The tables of ONNX's converters, one for each domain of operators, and what these work with."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from serde.onnx.attributes import check_message
from serde.onnx.export_context import ExportContext as Export, Value
from serde.onnx.import_context import ImportContext as Import
from serde.onnx.schemas import fault_of_call
from serde.onnx.versions import CHANGES, MICROSOFT_OPERATORS, ML_CHANGES, RUNTIME_OPERATORS
from serde.walk.table import ConverterTable

__all__ = ["MICROSOFT", "ML", "OPS", "TABLES", "Export", "Import", "Value"]

HOME: Final = "serde.onnx.ops"

OPS = ConverterTable(
    "onnx",
    changes={
        **{name: tuple(sorted(each)) for name, each in CHANGES.items()},
        **dict.fromkeys(RUNTIME_OPERATORS, (1,)),
    },
    decode=check_message,
    home=HOME,
    usual_layouts=True,
    schema=fault_of_call,
)
"""Operators of ONNX itself."""

MICROSOFT = ConverterTable(
    "com.microsoft",
    changes=dict.fromkeys(MICROSOFT_OPERATORS, (1,)),
    decode=check_message,
    home=HOME,
)
"""Operators that ONNX Runtime adds."""

ML = ConverterTable("ai.onnx.ml", changes=ML_CHANGES, decode=check_message, home=HOME)
"""Operators of classical machine learning, which come with ONNX."""

TABLES: Mapping[str, ConverterTable] = MappingProxyType(
    {"": OPS, "com.microsoft": MICROSOFT, "ai.onnx.ml": ML}
)
"""The table of each domain that is read."""
