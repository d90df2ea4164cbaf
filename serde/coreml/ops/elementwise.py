"""Arithmetic and conversion, element by element."""

from __future__ import annotations

from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.converters import ImportContext as Ctx
from serde.coreml.builder import Value
from serde.coreml.exporter import ExportContext as Out
from serde.coreml.ops.table import OPS
from serde.errors import Unsupported
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

MIL_NAMES = {dtype: name for name, dtype in DTYPES.items()}

WRITTEN = {
    15: frozenset({"bool", "float16", "float32", "int32"}),
    17: frozenset({"int8", "int16", "uint8", "uint16"}),
}
"""dtypes that a cast may have, by the version of iOS from which on."""

Name = Literal["bool", "fp16", "fp32", "int8", "int16", "int32", "uint8", "uint16"]


@OPS.imports("identity")
def import_identity(ctx: Ctx, x: Expr) -> Expr:
    return x


@OPS.imports("cast", since=(1, 17))
def import_cast(ctx: Ctx, x: Expr, *, dtype: Name) -> Expr:
    return relay.cast(x, DTYPES[dtype])


@OPS.exports("cast")
def export_cast(ctx: Out, data: Value, *, dtype: np.dtype[AnyValue]) -> Value:
    if dtype.name not in WRITTEN[15] and (dtype.name not in WRITTEN[17] or ctx.version < 17):
        raise Unsupported(f"casts to {dtype.name} for iOS{ctx.version}")
    return ctx.emit("cast", x=data, dtype=MIL_NAMES[dtype.name])
