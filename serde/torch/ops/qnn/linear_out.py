"""Quantised operators as they are written: integers, exact in float64 where they are convolved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from serde.errors import Unsupported
from serde.relay.ir.dims import Dim
from serde.relay.ir.types import TensorType
from serde.relay.op.qnn.conv import channel_zero_point
from serde.relay.op.qnn.parameters import fixed_point
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.conv.direct_out import (
    RelayConv,
    export_convolution,
    export_transposed_convolution,
    from_compute_dtype,
)
from serde.torch.ops.table import OPS
from serde.torch.ops.written import DType, cast


def _along_axis(ctx: ExportContext, x: Value, rank: int, axis: int) -> Value:
    """Return a scale or a zero point in a shape that broadcasts with data of `rank`."""
    type_ = ctx.type(x)
    if type_.rank == 0:
        return x
    if x.data is not None:
        shape = [1] * rank
        if x.data.size > 1:
            shape[axis] = -1
        return ctx.const(x.data.reshape(() if x.data.size == 1 else shape))
    behind = rank - axis % rank - 1 if rank else 0
    if type_.shape == (1,) or not rank:
        return ctx.method(x, "reshape", ())
    return ctx.method(x, "reshape", -1, *[1] * behind) if behind else x


def _limits(dtype: str) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


@OPS.exports("qnn.quantize")
def export_quantize(
    ctx: ExportContext,
    data: Value,
    output_scale: Value,
    output_zero_point: Value,
    *,
    out_dtype: DType,
    axis: int,
) -> Value:
    rank = ctx.type(data).rank
    scale = _along_axis(ctx, output_scale, rank, axis)
    zero = _along_axis(ctx, output_zero_point, rank, axis)
    name = out_dtype.name
    found = ctx.call(ctx.helper("quantize"), data, scale, zero, *_limits(name))
    return ctx.method(found, "to", ctx.dtype(name))


@OPS.exports("qnn.dequantize")
def export_dequantize(
    ctx: ExportContext,
    data: Value,
    input_scale: Value,
    input_zero_point: Value,
    *,
    out_dtype: DType,
    axis: int,
) -> Value:
    rank = ctx.type(data).rank
    scale = _along_axis(ctx, input_scale, rank, axis)
    zero = _along_axis(ctx, input_zero_point, rank, axis)
    level = cast(ctx, data, "int32")
    if ctx.scalar(zero) != 0:
        level = ctx.infix("-", level, zero)
    real = ctx.infix("*", ctx.method(level, "float"), scale)
    if out_dtype.name == "float32":
        return real
    limit = float(np.finfo(out_dtype).max)
    return ctx.method(ctx.call("torch.clamp", real, -limit, limit), "to", ctx.dtype(out_dtype.name))


@OPS.exports("qnn.requantize")
def export_requantize(
    ctx: ExportContext,
    data: Value,
    input_scale: Value,
    input_zero_point: Value,
    output_scale: Value,
    output_zero_point: Value,
    *,
    axis: int,
    rounding: str,
    compute_dtype: str,
    out_dtype: DType | None,
) -> Value:
    rank = ctx.type(data).rank
    scale = _along_axis(ctx, input_scale, rank, axis)
    zero = _along_axis(ctx, input_zero_point, rank, axis)
    wanted = ctx.result_type().dtype
    given = [data, scale, zero, output_scale, output_zero_point, rounding == "TONEAREST"]
    known = scale.data is not None and output_scale.data is not None
    if known and compute_dtype not in ("float32", "float64"):
        found = _rescale(ctx, data, scale, zero, output_scale, away=rounding == "TONEAREST")
        if ctx.scalar(output_zero_point) != 0:
            found = ctx.infix("+", found, output_zero_point)
    elif compute_dtype in ("float32", "float64"):
        given.append(compute_dtype == "float64")
        found = ctx.call(ctx.helper("rescale_floating"), *given)
    else:
        found = ctx.call(ctx.helper("rescale"), *given)
    if wanted == "int32":
        return found
    return ctx.method(ctx.call("torch.clamp", found, *_limits(wanted)), "to", ctx.dtype(wanted))


def _rescale(
    ctx: ExportContext, data: Value, scale: Value, zero: Value, out_scale: Value, *, away: bool
) -> Value:
    """Return levels times the ratio of constant scales: a mantissa and a power of two."""
    ratio = ctx.constant(scale).astype(np.float64) / np.float64(ctx.constant(out_scale))
    mantissa, exponent = fixed_point(ratio)
    level = cast(ctx, data, "int32")
    if ctx.scalar(zero) != 0:
        level = ctx.infix("-", level, zero)
    parts = mantissa, np.maximum(exponent, 0), np.maximum(-exponent, 0)
    given = [ctx.const(np.asarray(each, np.int64)) for each in parts]
    name = "multiply_fixed_point_away" if away else "multiply_fixed_point"
    return ctx.call(ctx.helper(name), level, *given)


def _shifted(ctx: ExportContext, x: Value, zero: Value, dtype: str) -> Value:
    """Return integers without their zero point, in a wider dtype."""
    type_ = ctx.type(x)
    wide = cast(ctx, x, dtype)
    if ctx.scalar(zero) != 0:
        wide = ctx.infix("-", wide, zero)
    return ctx.typed(wide, TensorType(type_.shape, dtype))


def _filter_zero(ctx: ExportContext, zero: Value, weight: Value, layout: str, first: str) -> Value:
    """Return the zero point of each output channel in a shape that broadcasts with the weight."""
    if ctx.type(zero).rank == 0:
        return zero
    if zero.data is None:
        raise Unsupported("zero points of channels that are computed")
    return ctx.const(channel_zero_point(zero.data, ctx.static_shape(weight), layout, first))


@OPS.exports("qnn.conv2d")
def export_qnn_conv2d(
    ctx: ExportContext,
    data: Value,
    weight: Value,
    input_zero_point: Value,
    weight_zero_point: Value,
    input_scale: Value,
    weight_scale: Value,
    *,
    conv: RelayConv,
) -> Value:
    """Sums of products of such narrow integers are exact in float64."""
    x = _shifted(ctx, data, _scalar(ctx, input_zero_point), "float64")
    zero = _filter_zero(ctx, weight_zero_point, weight, conv.kernel_layout, "O")
    w = _shifted(ctx, weight, zero, "float64")
    found = export_convolution(ctx, x, w, None, replace(conv, out_dtype=None), 2)
    return from_compute_dtype(ctx, found, "float64")


@OPS.exports("qnn.conv2d_transpose")
def export_qnn_conv2d_transpose(
    ctx: ExportContext,
    data: Value,
    weight: Value,
    input_zero_point: Value,
    weight_zero_point: Value,
    input_scale: Value,
    weight_scale: Value,
    *,
    conv: RelayConv,
    output_padding: tuple[int, ...],
) -> Value:
    x = _shifted(ctx, data, _scalar(ctx, input_zero_point), "float64")
    zero = _filter_zero(ctx, weight_zero_point, weight, conv.kernel_layout, "I")
    w = _shifted(ctx, weight, zero, "float64")
    plain = replace(conv, out_dtype=None)
    found = export_transposed_convolution(ctx, x, w, None, plain, output_padding, 2)
    return from_compute_dtype(ctx, found, "float64")


def _scalar(ctx: ExportContext, zero: Value) -> Value:
    return zero if ctx.type(zero).rank == 0 else ctx.method(zero, "reshape", ())


def _sum_dtype(ctx: ExportContext) -> str:
    return "int64" if ctx.result_type().dtype == "int64" else "int32"


@OPS.exports("qnn.dense")
def export_qnn_dense(
    ctx: ExportContext,
    data: Value,
    weight: Value,
    input_zero_point: Value,
    weight_zero_point: Value,
    input_scale: Value,
    weight_scale: Value,
    *,
    units: Dim | None,
    out_dtype: DType | None,
) -> Value:
    work = _sum_dtype(ctx)
    zero = _along_axis(ctx, weight_zero_point, 2, 0)
    x = _shifted(ctx, data, _scalar(ctx, input_zero_point), work)
    w = _shifted(ctx, weight, zero, work)
    found = ctx.infix("@", x, ctx.method(w, "t"))
    return cast(ctx, found, ctx.result_type().dtype, work)


@OPS.exports("qnn.batch_matmul")
def export_qnn_batch_matmul(
    ctx: ExportContext,
    x: Value,
    y: Value,
    x_zero_point: Value,
    y_zero_point: Value,
    x_scale: Value,
    y_scale: Value,
    *,
    out_dtype: DType | None,
    transpose_a: bool,
    transpose_b: bool,
) -> Value:
    work = _sum_dtype(ctx)
    a = _shifted(ctx, x, _scalar(ctx, x_zero_point), work)
    b = _shifted(ctx, y, _scalar(ctx, y_zero_point), work)
    if transpose_a:
        a = ctx.method(a, "transpose", 1, 2)
    if transpose_b:
        b = ctx.method(b, "transpose", 1, 2)
    return cast(ctx, ctx.infix("@", a, b), ctx.result_type().dtype, work)
