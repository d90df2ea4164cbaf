"""The table of converters of Relax, both directions.

Importers have the names of operators (``relax.nn.relu``): their operands are positional, the
attributes of the call are keywords.
"""

from __future__ import annotations

from serde.walk.table import ConverterTable

__all__ = ["OPS"]

OPS = ConverterTable("relax", home="serde.relax.ops")
