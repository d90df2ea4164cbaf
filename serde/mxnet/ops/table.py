"""The table of MXNet's converters."""

from __future__ import annotations

from serde.mxnet.attributes import decode_attribute
from serde.walk.table import ConverterTable

__all__ = ["OPS"]

OPS = ConverterTable("mxnet", decode=decode_attribute)
