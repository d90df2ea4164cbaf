"""Convolutions of quantised tensors.

ONNX requantises in float32: ``y = saturate(round(sum * factor) + zero_point)``, half to even.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.conv.windows import (
    ConvAttributes,
    RelayConv,
    arrange_filters,
    compute_padding,
    per_axis,
    require_bytes,
    require_fixed,
    require_kernel_shape,
    to_onnx_pads,
)
from serde.onnx.ops.elementwise.convert import cast, fill
from serde.onnx.ops.qnn.zero_point import (
    cast_scale,
    cast_zero_point,
    drop_zero,
    fits_qlinear,
    is_scalar_within,
    requantize,
    runs_in_runtime,
    to_scalar,
)
from serde.onnx.ops.shape.layout import to_layout
from serde.onnx.ops.shape.window import Windows
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Constant, Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import split_padding
from serde.relay.ir.types import TensorType
from serde.relay.op.qnn.conv import channel_zero_point


@OPS.exports("qnn.conv2d")
def export_conv2d(
    ctx: ExportContext,
    x: Value,
    weight: Value,
    input_zero_point: Value,
    weight_zero_point: Value,
    input_scale: Value,
    weight_scale: Value,
    *,
    conv: RelayConv,
) -> Value:
    """ConvInteger pads with the zero point, too; the scales do not enter the sums.

    Of bytes with one zero point each; other integers are a product of windows with filters.
    """
    if not _has_integer_form(ctx, x, weight, input_zero_point, weight_zero_point):
        sides = (
            _subtract_zero_point(ctx, x, input_zero_point),
            _subtract_zero_point(ctx, weight, weight_zero_point, conv.kernel_layout),
        )
        found = _conv_by_matmul(ctx, (x, weight), sides, conv)
        return to_layout(ctx, found, "NCHW", conv.result_layout)
    inputs = ctx.type(x).shape[conv.data_layout.index("C")]
    result = ctx.emit(
        "ConvInteger",
        to_layout(ctx, x, conv.data_layout, "NCHW"),
        arrange_filters(ctx, weight, conv.kernel_layout, "OIHW", conv.groups, inputs),
        cast_zero_point(ctx, input_zero_point, x),
        cast_zero_point(ctx, weight_zero_point, weight),
        **conv.to_onnx(ctx, weight, 2),
    )
    if ctx.result_type().dtype == "int64":
        result = cast(ctx, result, np.int64)
    return to_layout(ctx, result, "NCHW", conv.result_layout)


def _has_integer_form(
    ctx: ExportContext, x: Value, weight: Value, zero_point: Value, weight_zero_point: Value
) -> bool:
    """Whether ConvInteger, and ONNX Runtime's, says a convolution."""
    try:
        require_bytes(ctx, x, weight)
    except Unsupported:
        return False
    pairs = ((zero_point, x), (weight_zero_point, weight))
    return all(is_scalar_within(point, ctx.type(each).dtype) for point, each in pairs)


def _subtract_zero_point(
    ctx: ExportContext, x: Value, zero_point: Value, layout: str | None = None
) -> Value:
    """Return integers less their zero point, as wide as the sums that they enter."""
    wide = "int64" if ctx.result_type().dtype == "int64" else "int32"
    if layout is not None and ctx.type(zero_point).size != 1:
        points = channel_zero_point(ctx.constant(zero_point), ctx.static_shape(x), layout)
        point = ctx.const(points, wide)
    else:
        point = ctx.emit("Reshape", cast(ctx, zero_point, wide), ctx.ints([1]))
    return ctx.emit("Sub", cast(ctx, x, wide), point)


def _conv_by_matmul(
    ctx: ExportContext,
    given: tuple[Value, Value],
    sides: tuple[Value, Value],
    conv: RelayConv,
) -> Value:
    """Return a convolution of int32 or int64 as NCHW: its windows times its filters, by groups."""
    x_type, w_type = (ctx.type(each) for each in given)
    shape = [x_type.shape[conv.data_layout.index(letter)] for letter in "NCHW"]
    dtype = "int64" if ctx.result_type().dtype == "int64" else "int32"
    weight = replace(sides[1], type=TensorType(w_type.shape, dtype))
    kernel = arrange_filters(ctx, weight, conv.kernel_layout, "OIHW", conv.groups, shape[1])
    size = require_kernel_shape(ctx, given[1], conv.kernel_layout, "HW")
    windows = Windows.of(
        ctx,
        shape,
        [2, 3],
        size,
        strides=require_fixed(conv.strides, "strides"),
        dilations=require_fixed(conv.dilation, "dilation"),
        pads=to_onnx_pads(conv.padding, 2),
    )
    data = windows.pad(
        ctx, to_layout(ctx, sides[0], conv.data_layout, "NCHW"), 4, ctx.const(0, dtype)
    )
    batch, channels, (rows, columns) = (
        shape[0],
        require_fixed([shape[1]], "channels")[0],
        windows.counts,
    )
    depth = channels // conv.groups
    cut = ctx.shape([batch, conv.groups, depth, rows, size[0], columns, size[1]])
    parts = ctx.emit("Reshape", windows.gather(ctx, data), cut)
    transposed = ctx.emit("Transpose", parts, perm=[0, 1, 3, 5, 2, 4, 6])
    taps = depth * size[0] * size[1]
    flat = ctx.emit("Reshape", transposed, ctx.shape([batch, conv.groups, rows * columns, taps]))
    table = ctx.emit("Reshape", kernel, ctx.ints([conv.groups, -1, taps]))
    found = ctx.emit("MatMul", flat, ctx.emit("Transpose", table, perm=[0, 2, 1]))
    total = ctx.emit("Transpose", found, perm=[0, 1, 3, 2])
    (out,) = require_fixed([w_type.size // taps], "channels")
    result = ctx.emit("Reshape", total, ctx.shape([batch, out, rows, columns]))
    wanted = ctx.result_type().dtype
    return result if wanted == dtype else cast(ctx, result, wanted)


@OPS.exports("qnn.conv2d_transpose")
def export_conv2d_transpose(
    ctx: ExportContext,
    x: Value,
    weight: Value,
    input_zero_point: Value,
    weight_zero_point: Value,
    input_scale: Value,
    weight_scale: Value,
    *,
    conv: RelayConv,
    output_padding: tuple[int, ...],
) -> Value:
    """A convolution of the flipped weight with data between which zero points are put."""
    strides, dilation = (
        require_fixed(conv.strides, "strides"),
        require_fixed(conv.dilation, "dilation"),
    )
    window = require_kernel_shape(ctx, weight, conv.kernel_layout, "HW")
    pads = to_onnx_pads(conv.padding, 2)
    around = _transpose_padding(window, strides, pads, dilation, output_padding)
    has_form = _has_integer_form(ctx, x, weight, input_zero_point, weight_zero_point)
    wide = "int64" if ctx.result_type().dtype == "int64" else "int32"
    zero = cast_zero_point(ctx, input_zero_point, x) if has_form else ctx.const(0, wide)
    left, right = x, weight
    if not has_form:
        left = _subtract_zero_point(ctx, x, input_zero_point)
        right = _subtract_zero_point(ctx, weight, weight_zero_point, conv.kernel_layout)
    shape = [ctx.type(x).shape[conv.data_layout.index(letter)] for letter in "NCHW"]
    image = _dilate(ctx, to_layout(ctx, left, conv.data_layout, "NCHW"), shape, strides, zero)
    image, space = _crop(ctx, image, shape, strides, around)
    lengths = [ctx.type(weight).shape[conv.kernel_layout.index(letter)] for letter in "IOHW"]
    ordered = to_layout(ctx, right, conv.kernel_layout, "IOHW")
    flipped = _flip_weight(ctx, ordered, lengths, conv.groups)
    borders = [max(0, each) for each in around]
    if has_form:
        point = cast_zero_point(ctx, weight_zero_point, weight)
        result = ctx.emit(
            "ConvInteger", image, flipped, zero, point,
            kernel_shape=window, pads=borders, dilations=dilation, group=conv.groups,
        )  # fmt: skip
        result = cast(ctx, result, np.int64) if wide == "int64" else result
    else:
        numbers = [lengths[1] * conv.groups, lengths[0] // conv.groups, *window]
        given = (
            replace(image, type=TensorType([*shape[:2], *space], ctx.type(x).dtype)),
            replace(flipped, type=TensorType(numbers, ctx.type(weight).dtype)),
        )
        plain = replace(
            conv, strides=(1, 1), padding=tuple(borders), data_layout="NCHW", kernel_layout="OIHW"
        )
        result = _conv_by_matmul(ctx, given, given, plain)
    return to_layout(ctx, result, "NCHW", conv.result_layout)


def _transpose_padding(
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_padding: Sequence[int],
) -> list[int]:
    """Return how much is put around stuffed data, before all axes first; less is cut off."""
    reach = [by * (length - 1) for by, length in zip(dilation, window, strict=True)]
    extra = [more - (step - 1) for more, step in zip(output_padding, strides, strict=True)]
    sums = zip(reach * 2, [0, 0, *extra], padding, strict=True)
    return [length + more - side for length, more, side in sums]


def _crop(
    ctx: ExportContext,
    x: Value,
    shape: Sequence[Dim],
    strides: Sequence[int],
    around: Sequence[int],
) -> tuple[Value, list[Dim]]:
    """Return stuffed images without borders that are negative, and their height and width."""
    space = [
        length * stride + min(0, around[axis]) + min(0, around[2 + axis])
        for axis, (length, stride) in enumerate(zip(shape[2:], strides, strict=True))
    ]
    if min(around) >= 0:
        return x, space
    starts = ctx.ints(max(0, -each) for each in around[:2])
    stops = ctx.ints(each if each < 0 else np.iinfo(np.int64).max for each in around[2:])
    return ctx.emit("Slice", x, starts, stops, ctx.ints([2, 3])), space


def _dilate(
    ctx: ExportContext, x: Value, shape: Sequence[Dim], strides: Sequence[int], value: Value
) -> Value:
    """Return images with a stride less one of `value` behind each pixel."""
    if all(stride == 1 for stride in strides):
        return x
    batch, channels, height, width = shape
    expanded = ctx.emit("Reshape", x, ctx.shape([batch, channels, height, 1, width, 1]))
    widths = [0] * 9 + [strides[0] - 1, 0, strides[1] - 1]
    wide = ctx.emit("Pad", expanded, ctx.ints(widths), value)
    return ctx.emit(
        "Reshape", wide, ctx.shape([batch, channels, height * strides[0], width * strides[1]])
    )


def _flip_weight(ctx: ExportContext, weight: Value, shape: Sequence[Dim], groups: int) -> Value:
    """Return a weight ``(in, out of a group, ...)`` half a turn round, as ``(out, in, ...)``."""
    last, first = ctx.ints([-1, -1]), ctx.ints([np.iinfo(np.int64).min] * 2)
    transposed = ctx.emit("Slice", weight, last, first, ctx.ints([2, 3]), last)
    if groups == 1:
        return ctx.emit("Transpose", transposed, perm=[1, 0, 2, 3])
    inputs, outputs, *window = shape
    parts = ctx.shape([groups, inputs // groups, outputs, *window])
    moved = ctx.emit("Transpose", ctx.emit("Reshape", transposed, parts), perm=[0, 2, 1, 3, 4])
    return ctx.emit("Reshape", moved, ctx.shape([outputs * groups, inputs // groups, *window]))


@OPS.exports("serde.conv_integer")
def export_conv_integer(
    ctx: ExportContext,
    x: Value,
    w: Value,
    x_zero_point: Value | None,
    w_zero_point: Value | None,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Value:
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
    ctx: ImportContext,
    x: Expr,
    w: Expr,
    x_zero_point: Expr | None = None,
    w_zero_point: Expr | None = None,
    *,
    conv: ConvAttributes,
) -> Expr:
    window = _read_window(ctx, x, w, conv)
    return _build_integer_conv(ctx, x, w, x_zero_point, w_zero_point, window)


def _read_window(ctx: ImportContext, x: Expr, w: Expr, conv: ConvAttributes) -> dict[str, AnyValue]:
    """Return strides, padding, dilation and groups of a convolution."""
    kernel = conv.kernel(ctx, w)
    strides = per_axis(conv.strides, len(kernel), "strides")
    dilations = per_axis(conv.dilations, len(kernel), "dilations")
    padding = compute_padding(ctx, x, kernel, strides, dilations, conv.pads, conv.auto_pad)
    return {"strides": strides, "padding": padding, "dilation": dilations, "groups": conv.group}


def _build_integer_conv(
    ctx: ImportContext,
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
    ctx: ImportContext,
    x: Expr,
    x_scale: Expr,
    x_zero_point: Expr,
    w: Expr,
    w_scale: Expr,
    w_zero_point: Expr,
    y_scale: Expr,
    y_zero_point: Expr,
    b: Expr | None = None,
    *,
    conv: ConvAttributes,
) -> Expr:
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
    ctx: ExportContext,
    data: Value,
    weight: Value,
    bias: Value | None,
    data_scale: Value,
    data_zero: Value,
    weight_scale: Value,
    weight_zero: Value,
    out_scale: Value,
    out_zero: Value,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    out_dtype: np.dtype[AnyValue],
) -> Value:
    return ctx.emit(
        "QLinearConv",
        data,
        data_scale,
        data_zero,
        weight,
        weight_scale,
        weight_zero,
        out_scale,
        out_zero,
        bias,
        strides=list(strides),
        pads=to_onnx_pads(padding, 2),
        dilations=list(dilation),
        group=groups,
    )


def _is_zero(x: Expr) -> bool:
    return isinstance(x, Constant) and not x.data.any()


@OPS.expands("serde.qlinear_conv2d")
def expand_qlinear_conv2d(
    data: Expr,
    weight: Expr,
    bias: Expr | None,
    data_scale: Expr,
    data_zero: Expr,
    weight_scale: Expr,
    weight_zero: Expr,
    out_scale: Expr,
    out_zero: Expr,
    *,
    out_dtype: np.dtype[AnyValue],
    **window: AnyValue,
) -> Expr:
    """The sums stay integers where ONNX Runtime has no operator for the whole."""
    padding = split_padding(window["padding"], 2)
    window["padding"] = (*padding[0], *padding[1])
    zeros = (None if _is_zero(each) else each for each in (data_zero, weight_zero))
    total: Expr = call("serde.conv_integer", data, weight, *zeros, **window)
    if bias is not None:
        total = relay.nn.bias_add(total, bias, axis=1)
    joint = relay.multiply(data_scale, weight_scale)
    real = call("serde.dequantize_linear", total, joint, None, axis=1)
    return call("serde.quantize_linear", real, out_scale, out_zero, axis=1, out_dtype=out_dtype)
