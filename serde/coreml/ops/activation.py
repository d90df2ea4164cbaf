"""Activations."""

from __future__ import annotations

import serde.relay as relay
from serde.coreml.builder import Value
from serde.coreml.context import ImportContext as Ctx
from serde.coreml.exporter import ExportContext as Out
from serde.coreml.ops.table import OPS
from serde.relay.expr import Expr


@OPS.imports("relu")
def import_relu(ctx: Ctx, x: Expr) -> Expr:
    return relay.nn.relu(x)


@OPS.exports("nn.relu")
def export_relu(ctx: Out, data: Value) -> Value:
    return ctx.emit("relu", x=data)


@OPS.imports("softmax")
def import_softmax(ctx: Ctx, x: Expr, *, axis: int = -1) -> Expr:
    return relay.nn.softmax(x, axis=axis)


@OPS.exports("nn.softmax")
def export_softmax(ctx: Out, data: Value, *, axis: int) -> Value:
    return ctx.emit("softmax", x=data, axis=axis)
