"""Determinants."""

from __future__ import annotations

from serde.onnx.context import ImportContext as ImportCtx
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.expr import Expr
from serde.relay.registry import call


@OPS.exports("serde.det")
def export_det(ctx: Ctx, data: Value) -> Value:
    return ctx.emit("Det", data)


@OPS.imports("Det", since=(11, 22))
def import_det(ctx: ImportCtx, x: Expr) -> Expr:
    return call("serde.det", x)
