"""Activations that gate another tensor."""

from __future__ import annotations

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.table import OPS


@OPS.exports("serde.swiglu", since=28)
def export_swiglu(ctx: ExportContext, gate: Value, value: Value, *, alpha: float) -> Value:
    return ctx.emit("SwiGLU", gate, value, alpha=alpha)
