"""Determinants."""

from __future__ import annotations

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import has_dtype
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


@OPS.exports("serde.det", when=has_dtype("float32"))
def export_det(ctx: ExportContext, data: Value) -> Value:
    """ONNX Runtime has determinants of float32 alone; others are computed row by row."""
    return ctx.emit("Det", data)


@OPS.imports("Det", since=(11, 22))
def import_det(ctx: ImportContext, x: Expr) -> Expr:
    return call("serde.det", x)
