"""Activations."""

from __future__ import annotations

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.table import OPS

__all__: list[str] = []


@OPS.exports("nn.relu")
def export_relu(ctx: ExportContext, data: Value) -> Value:
    return ctx.emit("nn.relu", data)


@OPS.exports("nn.softmax")
def export_softmax(ctx: ExportContext, data: Value, *, axis: int) -> Value:
    return ctx.emit("nn.softmax", data, axis=axis)
