"""Arithmetic and conversion, element by element."""

from __future__ import annotations

from typing import Literal

import serde.relay as relay
from serde.converters import ImportContext as Ctx
from serde.coreml.ops.table import OPS
from serde.relay.expr import Expr

DTYPES = {
    "bool": "bool",
    "fp16": "float16",
    "fp32": "float32",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "uint8": "uint8",
    "uint16": "uint16",
}
"""Names of dtypes in MIL."""

Name = Literal["bool", "fp16", "fp32", "int8", "int16", "int32", "uint8", "uint16"]


@OPS.imports("cast", since=(1, 17))
def import_cast(ctx: Ctx, x: Expr, *, dtype: Name) -> Expr:
    return relay.cast(x, DTYPES[dtype])
