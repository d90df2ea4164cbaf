"""The table of converters of TFLite.

Importers have the names of operators in the schema; parameters that are tensors are positional,
options are keywords under the schema's names. Versions of an operator grow with the types that it
takes and not with what it means, so that one importer reads them all.
"""

from __future__ import annotations

from typing import Final

from serde.walk.table import ConverterTable

__all__ = ["CODES", "INTEGERS", "OPS"]

OPS = ConverterTable("tflite", home="serde.tflite.ops")
"""Operators on numbers."""

INTEGERS = ConverterTable("tflite codes", home="serde.tflite.ops")
"""Operators on codes of quantised tensors, by the arithmetic that the reference kernels have."""

CODES: Final = set[str]()
"""Operators that move the codes of quantised tensors as they are."""
