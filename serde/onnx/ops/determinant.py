"""Determinants."""

from __future__ import annotations

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS


@OPS.exports("serde.det")
def export_det(ctx: Ctx, data: Value) -> Value:
    return ctx.emit("Det", data)
