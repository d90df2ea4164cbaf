"""The table of converters of MIL's operators."""

from __future__ import annotations

from serde.converters import ConverterTable
from serde.coreml.versions import CHANGES

__all__ = ["OPS"]

OPS = ConverterTable("coreml", changes=CHANGES)
