"""Convolutions of quantised tensors.

ONNX requantises in float32: ``y = saturate(round(sum * factor) + zero_point)``, half to even.
"""

from __future__ import annotations

import math
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.onnx.ops.conv.windows import (
    EXACT_DEPTH,
    ConvAttributes,
    compute_padding,
    per_axis,
    require_fixed,
    to_onnx_pads,
)
from serde.onnx.ops.elementwise.convert import cast, fill
from serde.onnx.ops.qnn.product import (
    byte_points,
    cast_scale,
    drop_zero,
    fits_qlinear,
    requantize,
    runs_in_runtime,
    to_scalar,
)
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, as_dtype, call, split_padding, tensor_type
from serde.relay.op.qnn.parameters import is_zero, narrow_zero_point, without_zero_point
from serde.walk.expansion.tensors import fixed_shape


@OPS.expands("qnn.conv2d")
def expand_conv2d(
    data: Expr, weight: Expr, *parameters: Expr, out_dtype: np.dtype[AnyValue], **conv: AnyValue
) -> Expr:
    """ConvInteger sums bytes; other integers are a product of windows with filters."""
    input_zero_point, weight_zero_point, _input_scale, _weight_scale = parameters
    dtype = out_dtype.name
    points = byte_points((data, input_zero_point), (weight, weight_zero_point))
    fits = dtype == "int32" or (dtype == "int64" and math.prod(fixed_shape(weight)) < EXACT_DEPTH)
    padding = tuple(to_onnx_pads(conv["padding"], 2))
    window = {name: conv[name] for name in ("strides", "dilation", "groups")}
    if points is not None and fits:
        sums: Expr = call("serde.conv_integer", data, weight, *points, padding=padding, **window)
    else:
        wide = "int64" if dtype == "int64" else "int32"
        levels = (
            without_zero_point(data, _scalar(input_zero_point), dtype=wide),
            without_zero_point(weight, weight_zero_point, 0, wide),
        )
        sums = _sum_windows(*levels, padding=padding, **window)
    return as_dtype(sums, dtype)


def _scalar(x: Expr) -> Expr:
    return relay.reshape(x, ()) if tensor_type(x).rank else x


def _sum_windows(
    x: Expr,
    w: Expr,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Expr:
    """Return a convolution of int32 or int64: windows of NCHW times filters of OIHW, by groups."""
    outputs, depth, *size = fixed_shape(w)
    widths = ((0, 0), (0, 0), *zip(padding[:2], padding[2:], strict=True))
    zero = relay.const(0, tensor_type(x).dtype)
    padded = relay.nn.pad(x, widths, zero) if any(padding) else x
    reach = [by * (length - 1) + 1 for by, length in zip(dilation, size, strict=True)]
    windows: Expr = call("sliding_window", padded, axis=2, window_shape=reach, strides=strides)
    if any(by > 1 for by in dilation):
        windows = relay.strided_slice(windows, [0, 0], reach, list(dilation), axes=[4, 5])
    batch, _, rows, columns = tensor_type(windows).shape[:4]
    parts = relay.reshape(windows, (batch, groups, depth, rows, columns, *size))
    parts = relay.transpose(parts, (0, 1, 3, 4, 2, 5, 6))
    taps = depth * math.prod(size)
    flat = relay.reshape(parts, (batch, groups, rows * columns, taps))
    table = relay.transpose(relay.reshape(w, (groups, outputs // groups, taps)), (0, 2, 1))
    total = relay.transpose(call("serde.matmul", flat, table), (0, 1, 3, 2))
    return relay.reshape(total, (batch, outputs, rows, columns))


@OPS.expands("qnn.conv2d_transpose")
def expand_conv2d_transpose(
    data: Expr, weight: Expr, *parameters: Expr, strides: tuple[int, ...],
    output_padding: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...],
    groups: int, out_dtype: np.dtype[AnyValue], **_conv: AnyValue,
) -> Expr:  # fmt: skip
    """A convolution of the flipped weight with data between which zero points are put."""
    input_zero_point, weight_zero_point, input_scale, weight_scale = parameters
    x, w = data, _flip_filters(weight, groups)
    zero = narrow_zero_point(input_zero_point, tensor_type(x).dtype)
    value, wide = 0.0, "int64" if out_dtype == np.int64 else "int32"
    if zero is None or tensor_type(x).dtype == "uint16":
        x = without_zero_point(x, _scalar(input_zero_point), dtype=wide)
        w = without_zero_point(w, weight_zero_point, 0, wide)
    else:
        value = float(zero.data)
    dilated: Expr = call("nn.dilate", x, strides=(1, 1, *strides), dilation_value=value)
    reach = [by * (n - 1) for by, n in zip(dilation, fixed_shape(w)[2:], strict=True)]
    widths = zip(reach * 2, [0, 0, *output_padding], to_onnx_pads(padding, 2), strict=True)
    around = [length + more - side for length, more, side in widths]
    if min(around) < 0:
        ends = [each if each < 0 else np.iinfo(np.int32).max for each in around[2:]]
        starts = [max(0, -each) for each in around[:2]]
        dilated = relay.strided_slice(dilated, starts, ends, axes=[2, 3])
    window: dict[str, AnyValue] = {
        "padding": tuple(max(0, each) for each in around), "dilation": dilation, "groups": groups
    }  # fmt: skip
    if tensor_type(x).dtype == wide:
        return as_dtype(_sum_windows(dilated, w, strides=(1, 1), **window), out_dtype.name)
    points = _scalar(input_zero_point), weight_zero_point
    scales = _scalar(input_scale), weight_scale
    return call("qnn.conv2d", dilated, w, *points, *scales, out_dtype=out_dtype, **window)


def _flip_filters(weight: Expr, groups: int) -> Expr:
    """Return a weight of IOHW half a turn round, as OIHW."""
    turned = relay.reverse(relay.reverse(weight, 2), 3)
    inputs, outputs, *size = fixed_shape(weight)
    parts = relay.reshape(turned, (groups, inputs // groups, outputs, *size))
    moved = relay.transpose(parts, (0, 2, 1, 3, 4))
    return relay.reshape(moved, (outputs * groups, inputs // groups, *size))


@OPS.exports("serde.conv_integer")
def export_conv_integer(
    ctx: Export, x: Value, w: Value, x_zero_point: Value | None, w_zero_point: Value | None,
    *, strides: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...], groups: int,
) -> Value:  # fmt: skip
    """ONNX Runtime has one zero point of the weight; of several, what they take off is summed."""
    shape = require_fixed(ctx.type(w).shape, "weight")
    attributes = {
        "kernel_shape": shape[2:],
        "strides": strides,
        "pads": padding,
        "dilations": dilation,
        "group": groups,
    }
    if w_zero_point is None or ctx.type(w_zero_point).rank == 0:
        return ctx.emit("ConvInteger", x, w, x_zero_point, w_zero_point, **attributes)
    total = ctx.emit("ConvInteger", x, w, x_zero_point, **attributes)
    ones = fill(ctx, ctx.ints(shape), 1, ctx.type(w).dtype)
    windows = ctx.emit("ConvInteger", x, ones, x_zero_point, **attributes)
    points = ctx.emit(
        "Reshape", cast(ctx, w_zero_point, np.int32), ctx.ints([-1, *[1] * (len(shape) - 2)])
    )
    return ctx.emit("Sub", total, ctx.emit("Mul", windows, points))


@OPS.imports("ConvInteger", since=10)
def import_conv_integer(
    ctx: Import,
    x: Expr,
    w: Expr,
    x_zero_point: Expr | None = None,
    w_zero_point: Expr | None = None,
    *,
    conv: ConvAttributes,
) -> Expr:
    window = _read_window(ctx, x, w, conv)
    return _build_integer_conv(ctx, x, w, x_zero_point, w_zero_point, window)


def _read_window(ctx: Import, x: Expr, w: Expr, conv: ConvAttributes) -> dict[str, AnyValue]:
    """Return strides, padding, dilation and groups of a convolution."""
    kernel = conv.kernel(ctx, w)
    strides = per_axis(conv.strides, len(kernel), "strides")
    dilations = per_axis(conv.dilations, len(kernel), "dilations")
    padding = compute_padding(ctx, x, kernel, strides, dilations, conv.pads, conv.auto_pad)
    return {"strides": strides, "padding": padding, "dilation": dilations, "groups": conv.group}


def _build_integer_conv(
    ctx: Import,
    x: Expr,
    w: Expr,
    x_zero_point: Expr | None,
    w_zero_point: Expr | None,
    window: dict[str, AnyValue],
) -> Expr:
    """Return a convolution of bytes, each less its zero point, in int32."""
    points = (drop_zero(ctx, each) for each in (x_zero_point, w_zero_point))
    return call("serde.conv_integer", x, w, *points, **window)


@OPS.imports("QLinearConv", since=10)
def import_qlinear_conv(
    ctx: Import, x: Expr, x_scale: Expr, x_zero_point: Expr, w: Expr, w_scale: Expr,
    w_zero_point: Expr, y_scale: Expr, y_zero_point: Expr, b: Expr | None = None,
    *, conv: ConvAttributes,
) -> Expr:  # fmt: skip
    window = _read_window(ctx, x, w, conv)
    dtype = ctx.type(y_zero_point).dtype
    parameters = (x_scale, x_zero_point, w_scale, w_zero_point, y_scale, y_zero_point)
    single = [to_scalar(ctx, each) for each in parameters]
    if ctx.type(w).rank == 4 and fits_qlinear(ctx, [x, w, *single], dtype):
        return call("serde.qlinear_conv2d", x, w, b, *single, **window, out_dtype=dtype)
    total = _build_integer_conv(ctx, x, w, x_zero_point, w_zero_point, window)
    if b is not None:
        total = relay.nn.bias_add(total, b, axis=1)
    scales = [cast_scale(ctx, to_scalar(ctx, each)) for each in (x_scale, w_scale, y_scale)]
    factor = relay.divide(relay.multiply(scales[0], scales[1]), scales[2])
    if ctx.type(factor).rank:
        factor = relay.expand_dims(factor, axis=1, num_newaxis=ctx.type(w).rank - 2)
    return requantize(ctx, total, factor, y_zero_point, dtype)


@OPS.exports("serde.qlinear_conv2d", when=runs_in_runtime)
def export_qlinear_conv2d(
    ctx: Export, data: Value, weight: Value, bias: Value | None, data_scale: Value,
    data_zero: Value, weight_scale: Value, weight_zero: Value, out_scale: Value, out_zero: Value,
    *, strides: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...], groups: int,
    out_dtype: np.dtype[AnyValue],
) -> Value:  # fmt: skip
    return ctx.emit(
        "QLinearConv", data, data_scale, data_zero, weight, weight_scale, weight_zero, out_scale,
        out_zero, bias, strides=list(strides), pads=to_onnx_pads(padding, 2),
        dilations=list(dilation), group=groups,
    )  # fmt: skip


@OPS.expands("serde.qlinear_conv2d")
def expand_qlinear_conv2d(
    data: Expr,
    weight: Expr,
    bias: Expr | None,
    *parameters: Expr,
    out_dtype: np.dtype[AnyValue],
    **window: AnyValue,
) -> Expr:
    """The sums stay integers where ONNX Runtime has no operator for the whole."""
    data_scale, data_zero, weight_scale, weight_zero, out_scale, out_zero = parameters
    padding = split_padding(window["padding"], 2)
    window["padding"] = (*padding[0], *padding[1])
    zeros = (None if is_zero(each) else each for each in (data_zero, weight_zero))
    total: Expr = call("serde.conv_integer", data, weight, *zeros, **window)
    if bias is not None:
        total = relay.nn.bias_add(total, bias, axis=1)
    joint = relay.multiply(data_scale, weight_scale)
    real = call("serde.dequantize_linear", total, joint, None, axis=1)
    return call("serde.quantize_linear", real, out_scale, out_zero, axis=1, out_dtype=out_dtype)
