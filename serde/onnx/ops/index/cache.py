"""Rows written into a cache."""

from __future__ import annotations

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS


@OPS.exports("serde.tensor_scatter", since=24)
def export_tensor_scatter(
    ctx: Ctx, data: Value, update: Value, write_indices: Value | None, *, axis: int, mode: str
) -> Value:
    return ctx.emit("TensorScatter", data, update, write_indices, axis=axis, mode=mode)
