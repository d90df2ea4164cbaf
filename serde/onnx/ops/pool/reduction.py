"""Pooling over all positions."""

from __future__ import annotations

from collections.abc import Callable

import serde.relay as relay
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.reduce import emit_reduce
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr


def _make_exporter(op: str, reduction: str) -> Callable[..., Value]:
    def export_global(ctx: ExportContext, x: Value) -> Value:
        """Of integers ONNX has the reduction only."""
        if ctx.takes(op, ctx.type(x).dtype):
            return ctx.emit(op, x)
        return emit_reduce(ctx, reduction, x, [2, 3], keepdims=True)

    return export_global


OPS.exports("nn.global_max_pool2d")(_make_exporter("GlobalMaxPool", "ReduceMax"))


OPS.exports("nn.global_avg_pool2d")(_make_exporter("GlobalAveragePool", "ReduceMean"))


def _make_importer(name: str, fold: Callable[..., Expr]) -> Callable[..., Expr]:
    def import_global(ctx: ImportContext, x: Expr) -> Expr:
        """Over other than two axes it is a reduction."""
        rank = ctx.type(x).rank
        if rank == 4:
            return getattr(relay.nn, name)(x)
        return fold(x, axis=tuple(range(2, rank)), keepdims=True)

    return import_global


OPS.imports("GlobalMaxPool", since=(1, 22))(_make_importer("global_max_pool2d", relay.max))


OPS.imports("GlobalAveragePool", since=(1, 22))(_make_importer("global_avg_pool2d", relay.mean))
