"""The partial inverse of max pooling."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import cast, scalar_like
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import split_padding
from serde.relay.op.pool.unpool import MaxUnpool
from serde.walk.takes import Takes


@OPS.exports("serde.max_unpool", takes=Takes(output_shape=None))
def export_max_unpool(
    ctx: ExportContext, data: Value, indices: Value, *, window: MaxUnpool
) -> Value:
    """Given another shape, ONNX numbers elements as in the least one, ONNX Runtime as in that."""
    if ctx.type(indices).dtype != "int64":
        indices = cast(ctx, indices, "int64")
    before, after = split_padding(window.padding, len(window.pool_size))
    return ctx.emit(
        "MaxUnpool",
        data,
        indices,
        kernel_shape=list(window.pool_size),
        strides=list(window.strides or (1,) * len(window.pool_size)),
        pads=[*before, *after],
    )


@OPS.imports("MaxUnpool", since=(9, 11, 22))
def import_max_unpool(
    ctx: ImportContext,
    x: Expr,
    indices: Expr,
    output_shape: Expr | None = None,
    *,
    kernel_shape: tuple[int, ...],
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Expr:
    """Indices count in the shape that the window gives, to which a greater shape adds zeros."""
    result = call(
        "serde.max_unpool",
        x,
        indices,
        pool_size=kernel_shape,
        strides=strides,
        padding=pads or (0,),
    )
    if output_shape is None:
        return result
    least = relay.Constant(np.array(ctx.static_shape(result), np.int64))
    more = relay.subtract(relay.cast(output_shape, "int64"), least)
    widths = ctx.fold(relay.stack([relay.zeros_like(more), more], axis=1))
    return relay.nn.pad(result, widths, scalar_like(ctx, x, 0))
