"""Convolutions. ONNX adds the bias itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import serde.relay as relay
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.conv.windows import (
    SPATIAL,
    ConvAttributes,
    RelayConv,
    arrange_filters,
    compute_padding,
    pad_same,
    per_axis,
    require_bytes,
    require_dtype,
)
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.shape.layout import to_layout
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float


def _make_conv_exporter(ndim: int) -> Callable[..., Value]:
    layout, filters = "NC" + SPATIAL[ndim], "OI" + SPATIAL[ndim]

    def export_convolution(
        ctx: ExportContext,
        x: Value,
        weight: Value,
        bias: Value | None = None,
        *,
        conv: RelayConv,
    ) -> Value:
        integers = not is_float(ctx.type(x).dtype)
        if integers:
            require_bytes(ctx, x, weight)
        else:
            require_dtype(ctx, x)
        inputs = ctx.type(x).shape[conv.data_layout.index("C")]
        result = ctx.emit(
            "ConvInteger" if integers else "Conv",
            to_layout(ctx, x, conv.data_layout, layout),
            arrange_filters(ctx, weight, conv.kernel_layout, filters, conv.groups, inputs),
            None if integers else bias,
            **conv.to_onnx(ctx, weight, ndim),
        )
        if ctx.result_type().dtype == "int64":
            result = cast(ctx, result, np.int64)
        if integers and bias is not None:
            result = ctx.emit("Add", result, ctx.view(bias, (*ctx.type(bias).shape, *(1,) * ndim)))
        return to_layout(ctx, result, layout, conv.result_layout)

    return export_convolution


for _ndim in SPATIAL:
    OPS.exports(f"nn.conv{_ndim}d")(_make_conv_exporter(_ndim))


@OPS.imports("Conv", since=(1, 11, 22))
def import_conv(
    ctx: ImportContext, x: Expr, w: Expr, b: Expr | None = None, *, conv: ConvAttributes
) -> Expr:
    kernel = conv.kernel(ctx, w)
    ndim = len(kernel)
    strides = per_axis(conv.strides, ndim, "strides")
    dilations = per_axis(conv.dilations, ndim, "dilations")
    x, auto_pad = pad_same(ctx, x, kernel, strides, dilations, conv.auto_pad, 0)
    build = getattr(relay.nn, f"conv{ndim}d")
    result = build(
        x,
        w,
        strides=strides,
        padding=compute_padding(ctx, x, kernel, strides, dilations, conv.pads, auto_pad),
        dilation=dilations,
        groups=conv.group,
        channels=ctx.type(w).shape[0],
        kernel_size=kernel,
        data_layout="NC" + SPATIAL[ndim],
        kernel_layout="OI" + SPATIAL[ndim],
    )
    return result if b is None else relay.nn.bias_add(result, b, axis=1)
