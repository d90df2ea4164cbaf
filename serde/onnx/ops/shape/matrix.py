"""Diagonals and triangles of the innermost matrices."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import as_dtype, cast, to_int64
from serde.onnx.ops.shape.reshape import as_scalar
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr

TRIANGLES = ("float32", "float64", "int32", "int64")
"""Dtypes of which ONNX Runtime has a Trilu of every version; int64 holds the other integers."""


@OPS.exports("trilu", since=14)
def export_trilu(ctx: ExportContext, x: Value, k: Value, *, upper: bool) -> Value:
    dtype = ctx.type(x).dtype
    work = dtype
    if dtype not in TRIANGLES:
        work = "int64" if dtype in ("bool", "uint64") or "int" in dtype else "float32"
    result = ctx.emit("Trilu", as_dtype(ctx, x, work), to_int64(ctx, k), upper=int(upper))
    return result if work == dtype else cast(ctx, result, dtype)


@OPS.imports("Trilu", since=14)
def import_trilu(ctx: ImportContext, x: Expr, k: Expr | None = None, *, upper: bool = True) -> Expr:
    diagonal = relay.Constant(np.int64(0)) if k is None else k
    return relay.trilu(x, as_scalar(ctx, diagonal), upper=upper)
