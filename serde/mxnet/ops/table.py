"""The table of MXNet's converters."""

from __future__ import annotations

from serde.mxnet.attributes import decode_attribute
from serde.mxnet.operators import BESIDE, FORWARD, OPTIMIZERS
from serde.walk.table import ConverterTable

__all__ = ["OPS"]

OPS = ConverterTable(
    "mxnet",
    changes=dict.fromkeys(BESIDE | FORWARD | OPTIMIZERS, (1,)),
    decode=decode_attribute,
    home="serde.mxnet.ops",
    usual_layouts=True,
)
