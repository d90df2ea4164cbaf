"""Axes and triangles."""

from __future__ import annotations

import serde.relay as relay
from serde.onnx.ops.shape.reshape import as_scalar
from serde.onnx.ops.table import MICROSOFT, Import
from serde.relay.ir.expr import Expr


@MICROSOFT.imports("ExpandDims")
def import_expand_dims(ctx: Import, x: Expr, axis: Expr) -> Expr:
    position = ctx.item(axis)
    return relay.expand_dims(x, axis=position)


@MICROSOFT.imports("Trilu")
def import_trilu(ctx: Import, x: Expr, k: Expr | None = None, *, upper: bool = True) -> Expr:
    diagonal = relay.const(0, "int64") if k is None else k
    return relay.trilu(x, as_scalar(ctx, diagonal), upper)
