"""The table of converters of NNEF, both directions, and what these work with.

Importers have the names of fragments; parameters that are tensors are positional, under the
standard's names, all others are keywords with the standard's defaults (``lambda`` is ``lambda_``).
"""

from __future__ import annotations

from serde.nnef.export_context import ExportContext as Export, Value
from serde.nnef.import_context import ImportContext as Import
from serde.walk.table import ConverterTable

__all__ = ["OPS", "Export", "Import", "Value"]

OPS = ConverterTable("nnef", home="serde.nnef.ops", usual_layouts=True)
