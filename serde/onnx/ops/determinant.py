"""Determinants."""

from __future__ import annotations

from serde.onnx.context import ImportContext as ImportCtx
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.expr import Call, Expr
from serde.relay.registry import call
from serde.relay.types import TensorType


def _has_kernel(node: Call) -> bool:
    """ONNX Runtime has determinants of float32 alone; others are computed row by row."""
    data = node.args[0].type
    return isinstance(data, TensorType) and data.dtype == "float32"


@OPS.exports("serde.det", when=_has_kernel)
def export_det(ctx: Ctx, data: Value) -> Value:
    return ctx.emit("Det", data)


@OPS.imports("Det", since=(11, 22))
def import_det(ctx: ImportCtx, x: Expr) -> Expr:
    return call("serde.det", x)
