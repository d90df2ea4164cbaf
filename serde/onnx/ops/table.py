"""The table of ONNX's converters."""

from __future__ import annotations

from serde.converters import ConverterTable
from serde.onnx.versions import CHANGES

__all__ = ["OPS"]

OPS = ConverterTable("onnx", changes={name: tuple(sorted(each)) for name, each in CHANGES.items()})
