"""The gradient of a convolution with respect to its weight."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.conv.windows import arrange, cast, sum_dtype
from serde.relax.ops.table import OPS
from serde.relay.ir.shapes import split_padding

__all__: list[str] = []


@OPS.exports("nn.conv2d_backward_weight", ignored=("channels",))
def export_conv2d_backward_weight(
    ctx: ExportContext,
    grad: Value,
    data: Value,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    kernel_size: tuple[int, ...] | None,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    """The layouts are those of `grad`, of `data` and of the weight."""
    te, tir = ctx.framework.te, ctx.framework.tir
    dtype = ctx.type(grad).dtype
    total = sum_dtype(dtype, out_dtype)
    (top, left), _ = split_padding(padding, 2)

    def conv2d_backward_weight(errors: AnyValue, images: AnyValue) -> AnyValue:
        batch, outputs, height, width = errors.shape
        _, inputs, rows, columns = images.shape
        part, some = tir.floordiv(inputs, groups), tir.floordiv(outputs, groups)
        n = te.reduce_axis((0, batch), name="n")
        y = te.reduce_axis((0, height), name="y")
        x = te.reduce_axis((0, width), name="x")

        def add_up(o: AnyValue, c: AnyValue, i: AnyValue, j: AnyValue) -> AnyValue:
            row = y * strides[0] + i * dilation[0] - top
            column = x * strides[1] + j * dilation[1] - left
            inside = tir.all(row >= 0, row < rows, column >= 0, column < columns)
            read = images[n, tir.floordiv(o, some) * part + c, row, column].astype(total)
            read = tir.if_then_else(inside, read, tir.const(0, total))
            return te.sum(errors[n, o, y, x].astype(total) * read, axis=[n, y, x])

        shape = (outputs, part, *(kernel_size or ()))
        return te.compute(shape, add_up, name="conv2d_backward_weight")

    made = ctx.emit_te(
        conv2d_backward_weight,
        arrange(ctx, grad, data_layout, "NCHW"),
        arrange(ctx, data, kernel_layout, "NCHW"),
    )
    made = cast(ctx, made, total, ctx.result_type().dtype)
    return arrange(ctx, made, "OIHW", out_layout or "OIHW")
