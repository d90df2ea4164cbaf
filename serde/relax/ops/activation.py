"""Activations."""

from __future__ import annotations

import serde.relay as relay
from serde.relax.export_context import ExportContext, Value
from serde.relax.import_context import ImportContext
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr

__all__: list[str] = []


@OPS.exports("nn.relu")
def export_relu(ctx: ExportContext, data: Value) -> Value:
    return ctx.emit("nn.relu", data)


@OPS.exports("nn.softmax")
def export_softmax(ctx: ExportContext, data: Value, *, axis: int) -> Value:
    return ctx.emit("nn.softmax", data, axis=axis)


@OPS.imports("relax.nn.relu")
def import_relu(ctx: ImportContext, x: Expr) -> Expr:
    return relay.nn.relu(x)
