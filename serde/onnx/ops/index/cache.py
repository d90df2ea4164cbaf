"""Rows written into a cache."""

from __future__ import annotations

from typing import Literal

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


@OPS.exports("serde.tensor_scatter", since=24)
def export_tensor_scatter(
    ctx: ExportContext,
    data: Value,
    update: Value,
    write_indices: Value | None,
    *,
    axis: int,
    mode: str,
) -> Value:
    return ctx.emit("TensorScatter", data, update, write_indices, axis=axis, mode=mode)


@OPS.imports("TensorScatter", since=24)
def import_tensor_scatter(
    ctx: ImportContext,
    past_cache: Expr,
    update: Expr,
    write_indices: Expr | None = None,
    *,
    axis: int = -2,
    mode: Literal["linear", "circular"] = "linear",
) -> Expr:
    return call("serde.tensor_scatter", past_cache, update, write_indices, axis=axis, mode=mode)
