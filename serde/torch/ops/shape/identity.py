"""Identity matrices."""

from __future__ import annotations

import numpy as np

import serde.allocation as allocation
from serde.relay.ir.expr import Call, Constant, Expr
from serde.relay.ir.registry import call
from serde.torch.export_context import ExportContext, Value
from serde.torch.import_context import ImportContext, SymInt
from serde.torch.ops.elementwise.convert import PLACEMENT
from serde.torch.ops.shape.create import DType, fill, fill_like
from serde.torch.ops.table import OPS

SMALL = 64
"""Elements of an identity matrix that is written out."""


def _cut(ctx: ImportContext, x: Expr) -> Expr:
    """Return matrices of which nothing but the diagonal is left."""
    zero = ctx.scalar(0, "int64")
    return call("trilu", call("trilu", x, zero, upper=True), zero, upper=False)


def identity_like(ctx: ImportContext, x: Expr) -> Expr:
    """Return identity matrices shaped like others."""
    return _cut(ctx, fill_like(ctx, x, ctx.scalar(1, ctx.dtype(x))))


@OPS.imports("aten::eye", ignored=PLACEMENT)
def import_eye(
    ctx: ImportContext, *, n: SymInt, m: SymInt | None = None, dtype: DType = None
) -> Expr:
    kind = ctx.default_dtype if dtype is None else dtype.name
    size = (n, n if m is None else m)
    rows, columns = map(ctx.dim, size)
    if isinstance(rows, int) and isinstance(columns, int) and rows * columns <= SMALL:
        return ctx.cast(Constant(allocation.eye(rows, columns, dtype=np.float32)), kind)
    return _cut(ctx, fill(ctx, size, ctx.scalar(1, kind)))


def _is_main_diagonal(call: Call) -> bool:
    return call.attrs["k"] == 0


@OPS.exports("serde.eye_like", when=_is_main_diagonal)
def export_eye_like(ctx: ExportContext, data: Value, *, k: int, dtype: DType) -> Value:
    type_ = ctx.result_type()
    return ctx.call("torch.eye", *ctx.sizes(type_.shape), dtype=ctx.dtype(type_.dtype))
