"""Determinants."""

from __future__ import annotations

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType


def _has_kernel(node: Call) -> bool:
    """ONNX Runtime has determinants of float32 alone; others are computed row by row."""
    data = node.args[0].type
    return isinstance(data, TensorType) and data.dtype == "float32"


@OPS.exports("serde.det", when=_has_kernel)
def export_det(ctx: ExportContext, data: Value) -> Value:
    return ctx.emit("Det", data)


@OPS.imports("Det", since=(11, 22))
def import_det(ctx: ImportContext, x: Expr) -> Expr:
    return call("serde.det", x)
