"""The table of converters of NNEF, both directions.

Importers have the names of fragments; parameters that are tensors are positional, under the
standard's names, all others are keywords with the standard's defaults (``lambda`` is ``lambda_``).
"""

from __future__ import annotations

from serde.walk.table import ConverterTable

__all__ = ["OPS"]

OPS = ConverterTable("nnef", home="serde.nnef.ops", usual_layouts=True)
