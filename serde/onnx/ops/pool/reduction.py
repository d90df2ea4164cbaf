"""Pooling over all positions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import serde.relay as relay
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.reduce import emit_reduce
from serde.onnx.ops.shape.layout import to_layout
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr


def _export_global(
    ctx: ExportContext, x: Value, *, op: str, reduction: str, layout: str, out_layout: str
) -> Value:
    """Of integers ONNX has the reduction only."""
    image = to_layout(ctx, x, layout, "NCHW")
    if ctx.takes(op, ctx.type(x).dtype):
        result = ctx.emit(op, image)
    else:
        result = emit_reduce(ctx, reduction, image, [2, 3], keepdims=True)
    return to_layout(ctx, result, "NCHW", out_layout or layout)


OPS.exports("nn.global_max_pool2d")(
    partial(_export_global, op="GlobalMaxPool", reduction="ReduceMax")
)


OPS.exports("nn.global_avg_pool2d")(
    partial(_export_global, op="GlobalAveragePool", reduction="ReduceMean")
)


def _import_global(ctx: ImportContext, x: Expr, *, name: str, fold: Callable[..., Expr]) -> Expr:
    """Over other than two axes it is a reduction."""
    rank = ctx.type(x).rank
    if rank == 4:
        return getattr(relay.nn, name)(x)
    return fold(x, axis=tuple(range(2, rank)), keepdims=True)


OPS.imports("GlobalMaxPool", since=(1, 22))(
    partial(_import_global, name="global_max_pool2d", fold=relay.max)
)


OPS.imports("GlobalAveragePool", since=(1, 22))(
    partial(_import_global, name="global_avg_pool2d", fold=relay.mean)
)
