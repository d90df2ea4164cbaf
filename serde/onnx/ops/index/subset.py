"""Some of the entries of an axis."""

from __future__ import annotations

import serde.relay as relay
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.walk.pairs import reads
from serde.walk.takes import Takes, dtypes


@OPS.exports("serde.compress")
def export_compress(ctx: ExportContext, x: Value, condition: Value, *, axis: int | None) -> Value:
    """Before 28 it takes no bfloat16."""
    if ctx.type(x).dtype != "bfloat16" or ctx.version >= 28:
        return ctx.emit("Compress", x, condition, axis=axis)
    found = ctx.emit("Compress", cast(ctx, x, "float32"), condition, axis=axis)
    return cast(ctx, found, "bfloat16")


UNIQUE_DTYPES = {
    **dict.fromkeys(("float32", "float64", "int64", "int8")),
    **dict.fromkeys(("float16", "bfloat16"), "float32"),
    **dict.fromkeys(("int16", "int32", "uint8", "uint16", "uint32"), "int64"),
    "bool": "int8",
}
"""Dtypes of Unique in ONNX Runtime, None, and those that hold what other dtypes do."""


@OPS.exports("serde.unique", takes=Takes(data=dtypes(*UNIQUE_DTYPES)))
def export_serde_unique(
    ctx: ExportContext, x: Value, *, axis: int | None, sorted: bool
) -> tuple[Value, ...]:
    dtype = ctx.type(x).dtype
    wide = UNIQUE_DTYPES[dtype]
    given = x if wide is None else cast(ctx, x, wide)
    values, *rest = ctx.emit_tuple("Unique", given, outputs=4, axis=axis, sorted=int(sorted))
    return (values if wide is None else cast(ctx, values, dtype), *rest)


@OPS.imports("Unique", since=(11, 28))
def import_unique(
    ctx: ImportContext, x: Expr, *, axis: int | None = None, sorted: bool = True
) -> list[Expr]:
    found = call("serde.unique", x, axis=axis, sorted=sorted)
    return [relay.TupleGetItem(found, each) for each in range(4)]


OPS.pairs(reads("Compress", "serde.compress", since=(9, 11, 28), axis=None))
