"""Quantised tensors, spelled out in integers and in floats that hold them exactly.

Products and convolutions run in float64: as long as the sum of the greatest products of levels
stays below 2**53, none is rounded. The levels are bounded by dtypes and constant zero points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.exporter import ExportContext as Out
from serde.mxnet.ops.table import OPS
from serde.relay.expr import Expr
from serde.relay.op.qnn.conv import channel_zero_point
from serde.relay.op.qnn.parameters import along_axis, fixed_point
from serde.weights import Array, dtype_name

MANTISSA = 2**53
"""Up to here float64 counts every integer."""


def _along(ctx: Out, values: Value, like: Value, axis: int) -> Value:
    """Return a scale or zero point in a shape that broadcasts with `like`."""
    rank = ctx.type(like).rank
    if values.data is not None:
        return ctx.const(along_axis(values.data, rank, axis))
    if ctx.type(values).rank == 0 or not rank:
        return ctx.reshape(values, ())
    shape = [1] * rank
    (shape[axis],) = ctx.static_shape(values)
    return ctx.reshape(values, shape)


def _saturated(data: Expr, source: str, dtype: str) -> Expr:
    """Return whole numbers of the dtype `source` in an integer dtype, cut to its range."""
    if source == dtype:
        return data
    wide = "float64" if source.startswith("float") else "int64"
    info = np.iinfo(dtype)
    low, high = (relay.const(limit, wide) for limit in (info.min, info.max))
    return relay.cast(relay.minimum(relay.maximum(relay.cast(data, wide), low), high), dtype)


@OPS.exports("qnn.quantize")
def export_quantize(
    ctx: Out,
    data: Value,
    output_scale: Value,
    output_zero_point: Value,
    *,
    out_dtype: AnyValue,
    axis: int,
) -> Value:
    def spelled(x: Expr, scale: Expr, zero: Expr) -> Expr:
        whole = relay.add(relay.round(relay.divide(x, scale)), relay.cast(zero, "float32"))
        whole = relay.where(relay.isnan(whole), relay.const(0.0), whole)
        return _saturated(whole, "float32", dtype_name(out_dtype))

    scale, zero = (_along(ctx, x, data, axis) for x in (output_scale, output_zero_point))
    return ctx.spell(spelled, data, scale, zero)


@OPS.exports("qnn.dequantize")
def export_dequantize(
    ctx: Out,
    data: Value,
    input_scale: Value,
    input_zero_point: Value,
    *,
    out_dtype: AnyValue,
    axis: int,
) -> Value:
    result = dtype_name(out_dtype)

    def spelled(x: Expr, scale: Expr, zero: Expr) -> Expr:
        level = relay.subtract(relay.cast(x, "int32"), zero)
        real = relay.multiply(relay.cast(level, "float32"), scale)
        if result == "float32":
            return real
        limit = float(np.finfo(result).max)
        return relay.cast(relay.clip(real, -limit, limit), result)

    scale, zero = (_along(ctx, x, data, axis) for x in (input_scale, input_zero_point))
    return ctx.spell(spelled, data, scale, zero)


def rescaled(level: Expr, ratio: Array, away: bool) -> Expr:
    """Return int32 times a ratio of scales in fixed point; see ``qnn.requantize``."""
    mantissa, exponent = fixed_point(ratio)
    with np.errstate(over="ignore"):
        factor = mantissa << np.maximum(exponent, 0)
    right = 31 + np.maximum(-exponent, 0)
    half = np.int64(1) << (right - 1)
    product = relay.multiply(relay.cast(level, "int64"), relay.const(factor))
    if away:
        below = relay.cast(relay.less(product, relay.const(0, "int64")), "int64")
        rounded = relay.add(product, relay.subtract(relay.const(half), below))
    else:
        rounded = relay.add(product, relay.const(half))
    return relay.cast(relay.right_shift(rounded, relay.const(right)), "int32")


@OPS.exports("qnn.requantize")
def export_requantize(
    ctx: Out,
    data: Value,
    input_scale: Value,
    input_zero_point: Value,
    output_scale: Value,
    output_zero_point: Value,
    *,
    axis: int,
    rounding: str,
    compute_dtype: str,
    out_dtype: AnyValue,
) -> Value:
    """The scales must be constant, as the multiplier is made of them."""
    scale = along_axis(ctx.constant(input_scale), ctx.type(data).rank, axis).astype(np.float64)
    ratio = np.asarray(scale / np.float64(ctx.constant(output_scale)))
    away, target = rounding == "TONEAREST", ctx.result_type().dtype

    def spelled(x: Expr, zero: Expr, shift: Expr) -> Expr:
        level = relay.cast(x, "int32")
        if compute_dtype not in ("float32", "float64"):
            whole = rescaled(relay.subtract(level, zero), ratio, away)
            return _saturated(relay.add(whole, shift), "int32", target)
        distance = relay.subtract(relay.cast(level, compute_dtype), relay.cast(zero, compute_dtype))
        real = relay.multiply(distance, relay.const(ratio.astype(compute_dtype)))
        real = relay.add(real, relay.cast(shift, compute_dtype))
        half = relay.const(0.5, compute_dtype)
        whole = relay.round(real) if away else relay.floor(relay.add(real, half))
        return _saturated(relay.cast(whole, "int32"), "int32", target)

    return ctx.spell(spelled, data, _along(ctx, input_zero_point, data, axis), output_zero_point)


def _reach(ctx: Out, data: Value, zero_point: Value) -> int:
    """Return the greatest magnitude of a level."""
    dtype = ctx.type(data).dtype
    if dtype not in ("int8", "uint8"):
        raise Unsupported(f"levels of {dtype}: MXNet computes no 16 bits, and wider ones round")
    info, zero = np.iinfo(dtype), ctx.constant(zero_point).astype(np.int64)
    return int(max(info.max - zero.min(), zero.max() - info.min))


def _product(
    ctx: Out,
    operands: tuple[Value, Value],
    zeros: tuple[Value, Value],
    depth: int,
    multiply: Callable[[Expr, Expr], Expr],
) -> Value:
    """Return a product of levels; `zeros` broadcast against the operands.

    Raises:
        Unsupported: A sum could be rounded.
    """
    reach = _reach(ctx, operands[0], zeros[0]) * _reach(ctx, operands[1], zeros[1]) * depth
    if reach >= MANTISSA:
        raise Unsupported(f"sums up to {reach}, which float64 rounds")
    result = ctx.result_type().dtype

    def spelled(x: Expr, y: Expr, x_zero: Expr, y_zero: Expr) -> Expr:
        left, right = (
            relay.subtract(relay.cast(a, "float64"), relay.cast(zero, "float64"))
            for a, zero in ((x, x_zero), (y, y_zero))
        )
        total = multiply(left, right)
        return relay.cast(relay.cast(total, "int64"), result)

    return ctx.spell(spelled, *operands, *zeros)


@OPS.exports("qnn.dense")
def export_dense(
    ctx: Out,
    data: Value,
    weight: Value,
    input_zero_point: Value,
    weight_zero_point: Value,
    input_scale: Value,
    weight_scale: Value,
    *,
    units: AnyValue,
    out_dtype: AnyValue,
) -> Value:
    zero = ctx.const(ctx.constant(weight_zero_point).reshape(-1, 1))
    depth = ctx.static_lengths(weight, [1])[0]
    return _product(
        ctx,
        (data, weight),
        (ctx.const(ctx.constant(input_zero_point).reshape(())), zero),
        depth,
        lambda a, b: relay.nn.dense(a, b, None),
    )


@OPS.exports("qnn.batch_matmul")
def export_batch_matmul(
    ctx: Out,
    x: Value,
    y: Value,
    x_zero_point: Value,
    y_zero_point: Value,
    x_scale: Value,
    y_scale: Value,
    *,
    out_dtype: AnyValue,
    transpose_a: bool,
    transpose_b: bool,
) -> Value:
    depth = ctx.static_lengths(y, [2 if transpose_b else 1])[0]
    return _product(
        ctx,
        (x, y),
        (x_zero_point, y_zero_point),
        depth,
        lambda a, b: relay.nn.batch_matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b),
    )


def _convolved(
    ctx: Out,
    operands: tuple[Value, Value],
    zeros: tuple[Value, Value],
    kernel_layout: str,
    first: str,
    convolve: Callable[[Expr, Expr], Expr],
) -> Value:
    """Return a convolution of levels; no sum has more terms than the weight has elements."""
    data, weight = operands
    blank = np.broadcast_to(np.int8(0), ctx.static_shape(weight))
    at = channel_zero_point(ctx.constant(zeros[1]), blank, kernel_layout, first)
    points = ctx.const(ctx.constant(zeros[0]).reshape(())), ctx.const(at)
    return _product(ctx, (data, weight), points, blank.size, convolve)


@OPS.exports("qnn.conv2d")
def export_conv2d(
    ctx: Out,
    data: Value,
    weight: Value,
    input_zero_point: Value,
    weight_zero_point: Value,
    input_scale: Value,
    weight_scale: Value,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    channels: AnyValue,
    kernel_size: AnyValue,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    out_dtype: AnyValue,
) -> Value:
    """Padding is the zero point, which is level 0."""

    def convolve(x: Expr, kernel: Expr) -> Expr:
        return relay.nn.conv2d(
            x,
            kernel,
            strides=strides,
            padding=padding,
            dilation=dilation,
            groups=groups,
            channels=channels,
            kernel_size=kernel_size,
            data_layout=data_layout,
            kernel_layout=kernel_layout,
            out_layout=out_layout,
        )

    zeros = input_zero_point, weight_zero_point
    return _convolved(ctx, (data, weight), zeros, kernel_layout, "O", convolve)


@OPS.exports("qnn.conv2d_transpose")
def export_conv2d_transpose(
    ctx: Out,
    data: Value,
    weight: Value,
    input_zero_point: Value,
    weight_zero_point: Value,
    input_scale: Value,
    weight_scale: Value,
    *,
    channels: AnyValue,
    kernel_size: AnyValue,
    strides: tuple[int, ...],
    output_padding: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    out_dtype: AnyValue,
) -> Value:
    def convolve(x: Expr, kernel: Expr) -> Expr:
        return relay.nn.conv2d_transpose(
            x,
            kernel,
            channels=channels,
            kernel_size=kernel_size,
            strides=strides,
            output_padding=output_padding,
            padding=padding,
            dilation=dilation,
            groups=groups,
            data_layout=data_layout,
            kernel_layout=kernel_layout,
            out_layout=out_layout,
        )

    zeros = input_zero_point, weight_zero_point
    return _convolved(ctx, (data, weight), zeros, kernel_layout, "I", convolve)
