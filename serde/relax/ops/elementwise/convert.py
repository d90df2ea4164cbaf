"""Conversion of element types."""

from __future__ import annotations

from typing import Any as AnyValue
from typing import Final

import numpy as np

import serde.relay as relay
from serde.core.weights import dtype_name, numpy_dtype
from serde.errors import Unsupported
from serde.relax.export_context import ExportContext, Value
from serde.relax.import_context import ImportContext
from serde.relax.ops.elementwise.arithmetic import truth_of
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr

__all__: list[str] = []

_BYTE: Final = "float8"
"""Begins the names of floats of a byte."""


@OPS.exports("cast")
def export_cast(ctx: ExportContext, data: Value, *, dtype: np.dtype[AnyValue]) -> Value:
    return _convert(ctx, data, dtype_name(dtype))


def _convert(ctx: ExportContext, data: Value, dtype: str) -> Value:
    given = ctx.type(data).dtype
    if given == dtype:
        return data
    if dtype.startswith(_BYTE):
        raise Unsupported(f"TVM does not round to {dtype} as others do")
    if given.startswith(_BYTE):
        return _look_up(ctx, data, given, dtype)
    return truth_of(ctx, data) if dtype == "bool" else ctx.emit("astype", data, dtype)


@OPS.imports("relax.astype", "relax.wrap_param")
def import_astype(ctx: ImportContext, x: Expr, *, dtype: str | None) -> Expr:
    if dtype is None:
        raise Unsupported("a cast to no dtype")
    return x if ctx.dtype(x) == dtype else relay.cast(x, dtype)


def _look_up(ctx: ExportContext, data: Value, given: str, dtype: str) -> Value:
    """Read floats of a byte off a table of them all, since TVM's own code errs on small ones."""
    every = np.arange(256, dtype=np.uint8).view(numpy_dtype(given))
    with np.errstate(invalid="ignore"):
        table = ctx.const(every.astype(numpy_dtype(dtype)))
    place = ctx.emit_te(ctx.framework.topi.reinterpret, data, dtype="uint8")
    return ctx.emit("take", table, ctx.emit("astype", place, "int32"), axis=0, mode="clip")


@OPS.exports("reinterpret")
def export_reinterpret(ctx: ExportContext, data: Value, *, dtype: np.dtype[AnyValue]) -> Value:
    """A truth value is a byte in memory, and one bit to LLVM."""
    given, wanted = ctx.type(data).dtype, dtype_name(dtype)
    if "bool" in (given, wanted):
        byte = ctx.emit("astype", data, "uint8") if given == "bool" else data
        return byte if wanted == "uint8" else ctx.emit("astype", byte, wanted)
    if given == wanted:
        return data
    return ctx.emit_te(ctx.framework.topi.reinterpret, data, dtype=dtype_name(dtype))
