"""Convolutions, those of what is past too. ONNX adds the bias itself."""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.relay as relay
from serde.onnx.ops.conv.windows import (
    SPATIAL,
    ConvAttributes,
    RelayConv,
    compute_padding,
    pad_same,
    per_axis,
    require_bytes,
    require_dtype,
)
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TupleGetItem, call, is_float
from serde.relay.lowering.conv import CONVOLUTIONS


@OPS.exports(*CONVOLUTIONS)
def export_conv(
    ctx: Export, x: Value, weight: Value, bias: Value | None = None, *, conv: RelayConv
) -> Value:
    if is_float(ctx.type(x).dtype):
        require_dtype(ctx, x)
        return ctx.emit("Conv", x, weight, bias, **conv.to_onnx(ctx, weight))
    require_bytes(ctx, x, weight)
    result = ctx.emit("ConvInteger", x, weight, **conv.to_onnx(ctx, weight))
    if ctx.result_type().dtype == "int64":
        result = cast(ctx, result, np.int64)
    if bias is None:
        return result
    ones = (1,) * (ctx.type(x).rank - 2)
    return ctx.emit("Add", result, ctx.view(bias, (*ctx.type(bias).shape, *ones)))


@OPS.imports("Conv", since=(1, 11, 22))
def import_conv(
    ctx: Import, x: Expr, w: Expr, b: Expr | None = None, *, conv: ConvAttributes
) -> Expr:
    kernel = conv.kernel(ctx, w)
    ndim = len(kernel)
    strides = per_axis(conv.strides, ndim, "strides")
    dilations = per_axis(conv.dilations, ndim, "dilations")
    x, auto_pad = pad_same(ctx, x, kernel, strides, dilations, conv.auto_pad, 0)
    result = call(
        f"nn.conv{ndim}d", x, w, strides=strides,
        padding=compute_padding(ctx, x, kernel, strides, dilations, conv.pads, auto_pad),
        dilation=dilations, groups=conv.group, channels=ctx.type(w).shape[0], kernel_size=kernel,
        data_layout="NC" + SPATIAL[ndim], kernel_layout="OI" + SPATIAL[ndim],
    )  # fmt: skip
    return result if b is None else relay.nn.bias_add(result, b, axis=1)


@OPS.exports("serde.causal_conv1d", since=27)
def export_causal_conv(
    ctx: Export,
    data: Value,
    weight: Value,
    bias: Value | None,
    state: Value | None,
    *,
    activate: bool,
) -> tuple[Value, ...]:
    activation = "silu" if activate else None
    inputs = (data, weight, bias, state)
    return ctx.emit_tuple("CausalConvWithState", *inputs, outputs=2, activation=activation)


@OPS.imports("CausalConvWithState", since=27)
def import_causal_conv(
    ctx: Import,
    x: Expr,
    weight: Expr,
    bias: Expr | None = None,
    past_state: Expr | None = None,
    *,
    activation: Literal["none", "silu", "swish"] = "none",
) -> list[Expr]:
    found = call("serde.causal_conv1d", x, weight, bias, past_state, activate=activation != "none")
    return [TupleGetItem(found, index) for index in range(2)]
