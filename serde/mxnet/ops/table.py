"""The table of MXNet's converters, what these work with, and dtypes of windows."""

from __future__ import annotations

from serde.mxnet.attributes import decode_attribute
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext as Export
from serde.mxnet.import_context import ImportContext as Import
from serde.mxnet.operators import BESIDE, FORWARD, OPTIMIZERS
from serde.walk.table import ConverterTable
from serde.walk.takes import dtypes

__all__ = ["COMPUTED", "FLOATS", "OPS", "Export", "Import", "Value"]

OPS = ConverterTable(
    "mxnet",
    changes=dict.fromkeys(BESIDE | FORWARD | OPTIMIZERS, (1,)),
    decode=decode_attribute,
    home="serde.mxnet.ops",
    usual_layouts=True,
)


FLOATS = ("float32", "float64")
COMPUTED = dtypes(*FLOATS)
"""What MXNet computes windows in."""
