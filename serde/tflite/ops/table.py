"""The table of converters of TFLite, and what these work with.

Importers have the names of operators in the schema; parameters that are tensors are positional,
options are keywords under the schema's names. Versions of an operator grow with the types that it
takes and not with what it means, so that one importer reads them all.
"""

from __future__ import annotations

from typing import Final

from serde.tflite.export_context import ExportContext as Export, Value
from serde.tflite.import_context import ImportContext as Import
from serde.walk.table import ConverterTable

__all__ = ["CODES", "HANDLES", "INTEGERS", "OPS", "Export", "Import", "Value"]

OPS = ConverterTable("tflite", home="serde.tflite.ops")
"""Operators on numbers."""

INTEGERS = ConverterTable("tflite codes", home="serde.tflite.ops")
"""Operators on codes of quantised tensors, by the arithmetic that the reference kernels have."""

HANDLES: Final = frozenset(
    ("ASSIGN_VARIABLE", "CALL", "COMPLEX_ABS", "IF", "IMAG", "READ_VARIABLE", "REAL")
)
"""Operators that take resources or complex numbers."""

CODES: Final = frozenset(
    (
        "ARG_MAX", "ARG_MIN", "ASSIGN_VARIABLE", "BATCH_TO_SPACE_ND", "BROADCAST_ARGS",
        "BROADCAST_TO", "CALL", "CALL_ONCE", "DEPTH_TO_SPACE", "DYNAMIC_UPDATE_SLICE",
        "EMBEDDING_LOOKUP", "EXPAND_DIMS", "FILL", "GATHER", "GATHER_ND", "IF", "MATRIX_DIAG",
        "MATRIX_SET_DIAG", "PACK", "RANGE", "RANK", "READ_VARIABLE", "RESHAPE",
        "RESIZE_NEAREST_NEIGHBOR", "REVERSE_SEQUENCE", "REVERSE_V2", "SCATTER_ND", "SHAPE",
        "SLICE", "SPACE_TO_DEPTH", "SPLIT", "SPLIT_V", "SQUEEZE", "STABLEHLO_COMPOSITE",
        "STRIDED_SLICE", "TILE", "TOPK_V2", "TRANSPOSE", "UNIQUE", "UNPACK", "VAR_HANDLE", "WHERE",
        "WHILE",
    )
)  # fmt: skip
"""Operators that move the codes of quantised tensors as they are."""
