"""Importers of products of matrices."""

from __future__ import annotations

import serde.relay as relay
from serde.relax.import_context import ImportContext
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr, Tuple
from serde.relay.ir.registry import call

__all__: list[str] = []


@OPS.imports("relax.matmul")
def import_matmul(ctx: ImportContext, x1: Expr, x2: Expr, *, out_dtype: str | None = None) -> Expr:
    """With another dtype of the result, operands are of it before they are multiplied."""
    if out_dtype is not None:
        x1, x2 = (x if ctx.dtype(x) == out_dtype else relay.cast(x, out_dtype) for x in (x1, x2))
    return call("serde.matmul", x1, x2)


@OPS.imports("relax.einsum")
def import_einsum(ctx: ImportContext, operands: Expr, *, subscripts: str) -> Expr:
    return relay.einsum(Tuple(ctx.fields(operands)), subscripts)


@OPS.imports("relax.outer")
def import_outer(ctx: ImportContext, x1: Expr, x2: Expr) -> Expr:
    return relay.multiply(relay.expand_dims(x1, 1), relay.expand_dims(x2, 0))
