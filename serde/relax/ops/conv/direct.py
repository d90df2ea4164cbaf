"""Convolutions over one, two and three spatial axes."""

from __future__ import annotations

from typing import Any as AnyValue

import serde.relay as relay
from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.conv.windows import (
    add_bias,
    arrange,
    arrange_weight,
    cast,
    has_plain_layouts,
    sum_dtype,
)
from serde.relax.ops.table import OPS
from serde.relay.ir.dims import product
from serde.relay.ir.expr import Expr
from serde.relay.ir.layout import is_blocked
from serde.relay.ir.shapes import split_padding
from serde.relay.op.conv.windows import SPATIAL, Convolution
from serde.walk.expansion.tensors import has_filters_of_channels

__all__: list[str] = []


@OPS.exports("nn.conv1d", "nn.conv2d", "nn.conv3d", when=has_plain_layouts)
def export_conv(
    ctx: ExportContext, data: Value, weight: Value, bias: Value | None = None, *, conv: Convolution
) -> Value:
    """Channels first, summed in float32 at least; a weight (C, M, ...) makes C times M channels."""
    rank, dtype = len(conv.strides), ctx.type(data).dtype
    plain = "NC" + SPATIAL[rank]
    inputs = ctx.type(data).shape[conv.data_layout.index("C")]
    x = arrange(ctx, data, conv.data_layout, plain)
    w, shape = arrange_weight(ctx, weight, conv.kernel_layout, "OI", rank)
    if has_filters_of_channels(inputs, shape[0], shape[1], conv.groups):
        flat = [product(shape[:2]), 1, *shape[2:]]
        w = ctx.emit("reshape", w, ctx.shape_expr(flat))
    before, after = split_padding(conv.padding, rank)
    total = sum_dtype(dtype, conv.out_dtype)
    made = ctx.emit(
        f"nn.conv{rank}d",
        x,
        w,
        strides=list(conv.strides),
        padding=[*before, *after],
        dilation=list(conv.dilation),
        groups=conv.groups,
        data_layout=plain,
        kernel_layout="OI" + SPATIAL[rank],
        out_dtype=total,
    )
    made = cast(ctx, made, total, ctx.result_type().dtype)
    made = add_bias(ctx, made, bias, rank)
    return arrange(ctx, made, plain, conv.result_layout)


@OPS.expands(
    "nn.conv1d", "nn.conv2d", "nn.conv3d",
    "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose",
)  # fmt: skip
def expand_blocked_conv(
    data: Expr,
    weight: Expr,
    *,
    strides: tuple[int, ...],
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    **attrs: AnyValue,
) -> Expr:
    """Blocks of channels become whole axes around it."""
    rank, wanted = len(strides), out_layout or data_layout
    transposed = "output_padding" in attrs
    plain = "NC" + SPATIAL[rank]
    filters = ("IO" if transposed else "OI") + SPATIAL[rank]
    if is_blocked(kernel_layout):
        weight = relay.layout_transform(weight, kernel_layout, filters)
        kernel_layout = filters
    if is_blocked(data_layout):
        data = relay.layout_transform(data, data_layout, plain)
        data_layout = plain
    build = getattr(relay.nn, f"conv{rank}d" + ("_transpose" if transposed else ""))
    held = plain if is_blocked(wanted) else wanted
    result = build(
        data,
        weight,
        strides=strides,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=held,
        **attrs,
    )
    return result if held == wanted else relay.layout_transform(result, held, wanted)
