"""Triangles of the innermost matrices, and identity matrices."""

from __future__ import annotations

from functools import partial

import serde.core.allocation as allocation
import serde.relay as relay
from serde.relax.export_context import ExportContext, Value
from serde.relax.import_context import ImportContext, Scalar
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.walk.takes import CONSTANT, Takes

__all__: list[str] = []


@OPS.exports("trilu", takes=Takes(k=CONSTANT))
def export_trilu(ctx: ExportContext, data: Value, k: Value, *, upper: bool) -> Value:
    return ctx.emit("triu" if upper else "tril", data, int(ctx.constant(k)))


@OPS.imports("relax.eye")
def import_eye(ctx: ImportContext, *, n: Scalar, m: Scalar, k: Scalar, dtype: str) -> Expr:
    rows, columns, diagonal = ctx.number(n), ctx.number(m), ctx.number(k)
    return ctx.const(allocation.eye(rows, columns, diagonal), dtype)


@OPS.imports("relax.eye_like")
def import_eye_like(ctx: ImportContext, x: Expr, *, k: Scalar, dtype: str | None) -> Expr:
    rows, columns = ctx.static_shape(x, 2)
    return ctx.const(allocation.eye(rows, columns, ctx.number(k)), dtype or ctx.dtype(x))


def _import_triangle(ctx: ImportContext, x: Expr, *, k: Scalar, upper: bool) -> Expr:
    return relay.trilu(x, ctx.const(ctx.number(k), "int32"), upper)


OPS.imports("relax.tril")(partial(_import_triangle, upper=False))
OPS.imports("relax.triu")(partial(_import_triangle, upper=True))
