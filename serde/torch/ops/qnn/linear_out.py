"""Quantised operators as they are written: integers, exact in float64 where they are convolved."""

from __future__ import annotations

from dataclasses import replace

from serde.errors import Unsupported
from serde.relay.ir.dims import Dim
from serde.relay.ir.types import TensorType
from serde.relay.op.qnn.conv import channel_zero_point
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.conv.direct_out import (
    Convolution,
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
    conv: Convolution,
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
    conv: Convolution,
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
