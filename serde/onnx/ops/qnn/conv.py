"""Convolutions of quantised tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any as AnyValue

import numpy as np

from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.conv.windows import filters, fixed, kernel_shape, pads, require_bytes
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.qnn.product import zero_point_like
from serde.onnx.ops.qnn.rescale import is_scalar_within
from serde.onnx.ops.shape.layout import arranged
from serde.onnx.ops.shape.window import Windows
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Dim
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
    strides: Sequence[Dim],
    padding: Sequence[Dim],
    dilation: Sequence[Dim],
    groups: int,
    channels: Dim | None,
    kernel_size: Sequence[Dim] | None,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    """ConvInteger pads with the zero point, too; the scales do not enter the sums.

    Of bytes with one zero point each; other integers are a product of windows with filters.
    """
    if not _has_integer_form(ctx, x, weight, input_zero_point, weight_zero_point):
        sides = (
            _shifted(ctx, x, input_zero_point),
            _shifted(ctx, weight, weight_zero_point, kernel_layout),
        )
        found = _window_product(
            ctx,
            (x, weight),
            sides,
            (data_layout, kernel_layout),
            strides,
            padding,
            dilation,
            groups,
        )
        return arranged(ctx, found, "NCHW", out_layout or data_layout)
    inputs = ctx.type(x).shape[data_layout.index("C")]
    result = ctx.emit(
        "ConvInteger",
        arranged(ctx, x, data_layout, "NCHW"),
        filters(ctx, weight, kernel_layout, "OIHW", groups, inputs),
        zero_point_like(ctx, input_zero_point, x),
        zero_point_like(ctx, weight_zero_point, weight),
        kernel_shape=kernel_shape(ctx, weight, kernel_layout, "HW"),
        strides=fixed(strides, "strides"),
        pads=pads(padding, 2),
        dilations=fixed(dilation, "dilation"),
        group=groups,
    )
    if ctx.result_type().dtype == "int64":
        result = cast(ctx, result, np.int64)
    return arranged(ctx, result, "NCHW", out_layout or data_layout)


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


def _shifted(ctx: ExportContext, x: Value, zero_point: Value, layout: str | None = None) -> Value:
    """Return integers less their zero point, as wide as the sums that they enter."""
    wide = "int64" if ctx.result_type().dtype == "int64" else "int32"
    if layout is not None and ctx.type(zero_point).size != 1:
        lengths = ctx.static_shape(x)
        points = channel_zero_point(ctx.constant(zero_point), np.empty(lengths, np.bool_), layout)
        point = ctx.const(points, wide)
    else:
        point = ctx.emit("Reshape", cast(ctx, zero_point, wide), ctx.ints([1]))
    return ctx.emit("Sub", cast(ctx, x, wide), point)


def _window_product(
    ctx: ExportContext,
    given: tuple[Value, Value],
    sides: tuple[Value, Value],
    layouts: tuple[str, str],
    strides: Sequence[Dim],
    padding: Sequence[Dim],
    dilation: Sequence[Dim],
    groups: int,
) -> Value:
    """Return a convolution of int32 or int64 as NCHW: its windows times its filters, by groups."""
    x_type, w_type = (ctx.type(each) for each in given)
    shape = [x_type.shape[layouts[0].index(letter)] for letter in "NCHW"]
    dtype = "int64" if ctx.result_type().dtype == "int64" else "int32"
    weight = replace(sides[1], type=TensorType(w_type.shape, dtype))
    kernel = filters(ctx, weight, layouts[1], "OIHW", groups, shape[1])
    size = kernel_shape(ctx, given[1], layouts[1], "HW")
    windows = Windows.of(
        ctx,
        shape,
        [2, 3],
        size,
        strides=fixed(strides, "strides"),
        dilations=fixed(dilation, "dilation"),
        pads=pads(padding, 2),
    )
    data = windows.padded(ctx, arranged(ctx, sides[0], layouts[0], "NCHW"), 4, ctx.const(0, dtype))
    batch, channels, (rows, columns) = shape[0], fixed([shape[1]], "channels")[0], windows.counts
    depth = channels // groups
    cut = ctx.shape([batch, groups, depth, rows, size[0], columns, size[1]])
    parts = ctx.emit("Reshape", windows.taken(ctx, data), cut)
    turned = ctx.emit("Transpose", parts, perm=[0, 1, 3, 5, 2, 4, 6])
    taps = depth * size[0] * size[1]
    flat = ctx.emit("Reshape", turned, ctx.shape([batch, groups, rows * columns, taps]))
    table = ctx.emit("Reshape", kernel, ctx.ints([groups, -1, taps]))
    found = ctx.emit("MatMul", flat, ctx.emit("Transpose", table, perm=[0, 2, 1]))
    total = ctx.emit("Transpose", found, perm=[0, 1, 3, 2])
    (out,) = fixed([w_type.size // taps], "channels")
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
    channels: Dim | None,
    kernel_size: Sequence[Dim] | None,
    strides: tuple[int, ...],
    output_padding: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    """A convolution of the turned weight with data between which zero points are put."""
    window = kernel_shape(ctx, weight, kernel_layout, "HW")
    around = _turned_borders(window, strides, pads(padding, 2), dilation, output_padding)
    has_form = _has_integer_form(ctx, x, weight, input_zero_point, weight_zero_point)
    wide = "int64" if ctx.result_type().dtype == "int64" else "int32"
    zero = zero_point_like(ctx, input_zero_point, x) if has_form else ctx.const(0, wide)
    left = x if has_form else _shifted(ctx, x, input_zero_point)
    right = weight if has_form else _shifted(ctx, weight, weight_zero_point, kernel_layout)
    shape = [ctx.type(x).shape[data_layout.index(letter)] for letter in "NCHW"]
    image = _stuffed(ctx, arranged(ctx, left, data_layout, "NCHW"), shape, strides, zero)
    image, space = _cropped(ctx, image, shape, strides, around)
    lengths = [ctx.type(weight).shape[kernel_layout.index(letter)] for letter in "IOHW"]
    turned = _turned(ctx, arranged(ctx, right, kernel_layout, "IOHW"), lengths, groups)
    borders = [max(0, each) for each in around]
    if has_form:
        point = zero_point_like(ctx, weight_zero_point, weight)
        result = ctx.emit(
            "ConvInteger", image, turned, zero, point,
            kernel_shape=window, pads=borders, dilations=list(dilation), group=groups,
        )  # fmt: skip
        result = cast(ctx, result, np.int64) if wide == "int64" else result
    else:
        numbers = [lengths[1] * groups, lengths[0] // groups, *window]
        given = (
            replace(image, type=TensorType([*shape[:2], *space], ctx.type(x).dtype)),
            replace(turned, type=TensorType(numbers, ctx.type(weight).dtype)),
        )
        layouts = ("NCHW", "OIHW")
        result = _window_product(ctx, given, given, layouts, (1, 1), borders, dilation, groups)
    return arranged(ctx, result, "NCHW", out_layout or data_layout)


def _turned_borders(
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


def _cropped(
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
    ends = ctx.ints(each if each < 0 else np.iinfo(np.int64).max for each in around[2:])
    return ctx.emit("Slice", x, starts, ends, ctx.ints([2, 3])), space


def _stuffed(
    ctx: ExportContext, x: Value, shape: Sequence[Dim], strides: Sequence[int], value: Value
) -> Value:
    """Return images with a stride less one of `value` behind each pixel."""
    if all(stride == 1 for stride in strides):
        return x
    batch, channels, height, width = shape
    apart = ctx.emit("Reshape", x, ctx.shape([batch, channels, height, 1, width, 1]))
    widths = [0] * 9 + [strides[0] - 1, 0, strides[1] - 1]
    wide = ctx.emit("Pad", apart, ctx.ints(widths), value)
    return ctx.emit(
        "Reshape", wide, ctx.shape([batch, channels, height * strides[0], width * strides[1]])
    )


def _turned(ctx: ExportContext, weight: Value, shape: Sequence[Dim], groups: int) -> Value:
    """Return a weight ``(in, out of a group, ...)`` half a turn round, as ``(out, in, ...)``."""
    last, first = ctx.ints([-1, -1]), ctx.ints([np.iinfo(np.int64).min] * 2)
    turned = ctx.emit("Slice", weight, last, first, ctx.ints([2, 3]), last)
    if groups == 1:
        return ctx.emit("Transpose", turned, perm=[1, 0, 2, 3])
    inputs, outputs, *window = shape
    parts = ctx.shape([groups, inputs // groups, outputs, *window])
    moved = ctx.emit("Transpose", ctx.emit("Reshape", turned, parts), perm=[0, 2, 1, 3, 4])
    return ctx.emit("Reshape", moved, ctx.shape([outputs * groups, inputs // groups, *window]))
