"""The table of MXNet's converters."""

from __future__ import annotations

from serde.converters import ConverterTable
from serde.mxnet.attributes import decode_attribute

__all__ = ["OPS"]

OPS = ConverterTable("mxnet", decode=decode_attribute)
