"""Layers between quantised tensors: dequantised, computed in float32, and quantised again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.activation import of_rows
from serde.onnx.ops.conv.direct import AutoPad
from serde.onnx.ops.microsoft.conv import channels_behind, channels_first
from serde.onnx.ops.pool.window import import_average_pool
from serde.onnx.ops.qnn.linear import import_dequantize_linear, quantized
from serde.onnx.ops.table import MICROSOFT
from serde.relay.ir.expr import Expr


def _real(ctx: ImportContext, x: Expr, scale: Expr, zero_point: Expr | None) -> Expr:
    return import_dequantize_linear(ctx, x, scale, zero_point)


def _level(ctx: ImportContext, x: Expr, scale: Expr, zero_point: Expr | None, dtype: str) -> Expr:
    """Return numbers quantised; without a zero point in the dtype that came in."""
    point = relay.const(0, dtype) if zero_point is None else zero_point
    return quantized(ctx, x, scale, point)


def _binary(build: Callable[[Expr, Expr], Expr]) -> Callable[..., Expr]:
    def import_binary(
        ctx: ImportContext,
        a: Expr,
        a_scale: Expr,
        a_zero_point: Expr | None,
        b: Expr,
        b_scale: Expr,
        b_zero_point: Expr | None,
        c_scale: Expr,
        c_zero_point: Expr | None = None,
    ) -> Expr:
        left, right = _real(ctx, a, a_scale, a_zero_point), _real(ctx, b, b_scale, b_zero_point)
        return _level(ctx, build(left, right), c_scale, c_zero_point, ctx.type(a).dtype)

    return import_binary


MICROSOFT.imports("QLinearAdd")(_binary(relay.add))
MICROSOFT.imports("QLinearMul")(_binary(relay.multiply))


@MICROSOFT.imports("QLinearWhere")
def import_qlinear_where(
    ctx: ImportContext,
    condition: Expr,
    x: Expr,
    x_scale: Expr,
    x_zero_point: Expr,
    y: Expr,
    y_scale: Expr,
    y_zero_point: Expr,
    z_scale: Expr,
    z_zero_point: Expr,
) -> Expr:
    left, right = _real(ctx, x, x_scale, x_zero_point), _real(ctx, y, y_scale, y_zero_point)
    return quantized(ctx, relay.where(condition, left, right), z_scale, z_zero_point)


@MICROSOFT.imports("QLinearConcat")
def import_qlinear_concat(
    ctx: ImportContext, y_scale: Expr, y_zero_point: Expr, *inputs: Expr, axis: int
) -> Expr:
    if len(inputs) % 3:
        raise Unsupported(f"{len(inputs)} inputs: expected three for each tensor")
    parts = [
        quantized(ctx, _real(ctx, *inputs[place : place + 3]), y_scale, y_zero_point)
        for place in range(0, len(inputs), 3)
    ]
    return relay.concatenate(parts, axis=axis)


@MICROSOFT.imports("QLinearSigmoid")
def import_qlinear_sigmoid(
    ctx: ImportContext,
    x: Expr,
    x_scale: Expr,
    x_zero_point: Expr | None,
    y_scale: Expr,
    y_zero_point: Expr | None = None,
) -> Expr:
    found = relay.sigmoid(_real(ctx, x, x_scale, x_zero_point))
    return _level(ctx, found, y_scale, y_zero_point, ctx.type(x).dtype)


@MICROSOFT.imports("QLinearLeakyRelu")
def import_qlinear_leaky_relu(
    ctx: ImportContext,
    x: Expr,
    x_scale: Expr,
    x_zero_point: Expr | None,
    y_scale: Expr,
    y_zero_point: Expr | None = None,
    *,
    alpha: float = 0.01,
) -> Expr:
    found = relay.nn.leaky_relu(_real(ctx, x, x_scale, x_zero_point), alpha=alpha)
    return _level(ctx, found, y_scale, y_zero_point, ctx.type(x).dtype)


@MICROSOFT.imports("QLinearSoftmax")
def import_qlinear_softmax(
    ctx: ImportContext,
    x: Expr,
    x_scale: Expr,
    x_zero_point: Expr | None,
    y_scale: Expr,
    y_zero_point: Expr,
    *,
    axis: int = -1,
    opset: int,
) -> Expr:
    """Before opset 13, all axes from `axis` on form one row."""
    real = _real(ctx, x, x_scale, x_zero_point)
    if opset < 13:
        found = of_rows(ctx, real, axis, relay.nn.softmax)
    else:
        found = relay.nn.softmax(real, axis=axis)
    return quantized(ctx, found, y_scale, y_zero_point)


@MICROSOFT.imports("QLinearAveragePool")
def import_qlinear_average_pool(
    ctx: ImportContext,
    x: Expr,
    x_scale: Expr,
    x_zero_point: Expr | None,
    y_scale: Expr,
    y_zero_point: Expr | None = None,
    *,
    kernel_shape: tuple[int, ...],
    auto_pad: AutoPad = "NOTSET",
    ceil_mode: bool = False,
    channels_last: bool = False,
    count_include_pad: bool = False,
    pads: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Expr:
    """The zero point is added before rounding, unlike everywhere else."""
    real = _real(ctx, x, x_scale, x_zero_point)
    found = import_average_pool(
        ctx,
        channels_first(ctx, real) if channels_last else real,
        kernel_shape=kernel_shape,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        pads=pads,
        strides=strides,
    )
    found = channels_behind(ctx, found) if channels_last else found
    dtype = ctx.type(x).dtype
    level = relay.divide(found, y_scale)
    if y_zero_point is not None:
        level = relay.add(level, relay.cast(y_zero_point, "float32"))
    return _level(ctx, level, relay.const(np.float32(1)), None, dtype)


@MICROSOFT.imports("QLinearGlobalAveragePool")
def import_qlinear_global_average_pool(
    ctx: ImportContext,
    x: Expr,
    x_scale: Expr,
    x_zero_point: Expr,
    y_scale: Expr,
    y_zero_point: Expr,
    *,
    channels_last: bool = False,
) -> Expr:
    real = _real(ctx, x, x_scale, x_zero_point)
    rank = ctx.type(x).rank
    axes = tuple(range(1, rank - 1)) if channels_last else tuple(range(2, rank))
    found = relay.mean(real, axis=axes, keepdims=True)
    return quantized(ctx, found, y_scale, y_zero_point)
