"""Quantisation, its inverse, and from one scale to another. Zero points of Relay are int32."""

from __future__ import annotations

from typing import Any as AnyValue
from typing import Literal

import numpy as np

from serde.allocation import broadcast_to
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.elementwise.convert import cast, retype
from serde.onnx.ops.elementwise.fixed_point import scale_fixed_point, to_ratio
from serde.onnx.ops.elementwise.unary import export_clip, export_round
from serde.onnx.ops.qnn.zero_point import is_scalar_within
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS
from serde.relay.op.qnn.parameters import along_axis, fixed_point


def align(ctx: ExportContext, values: Value, like: Value, axis: int) -> Value:
    """Return a scale or zero point in a shape that broadcasts with `like`."""
    rank = ctx.type(like).rank
    if ctx.type(values).rank == 0:
        return values
    if values.data is not None:
        return ctx.const(along_axis(values.data, rank, axis))
    following = rank - 1 - axis % max(1, rank)
    return unsqueeze(ctx, values, range(1, 1 + following)) if following else values


def _saturate(ctx: ExportContext, x: Value, like: Value, source: str, dtype: str) -> Value:
    """Return numbers of the dtype `source` in an integer dtype, cut to its range."""
    if dtype == source:
        return x
    info = np.iinfo(dtype)
    limits = {"a_min": float(info.min), "a_max": float(info.max)}
    return cast(ctx, export_clip(ctx, retype(ctx, x, like, source), **limits), dtype)


@OPS.exports("qnn.quantize")
def export_quantize(
    ctx: ExportContext,
    x: Value,
    scale: Value,
    zero_point: Value,
    *,
    out_dtype: np.dtype[AnyValue],
    axis: int,
) -> Value:
    """Relay rounds a half away from zero and ONNX to even, so the quotient is rounded first.

    QuantizeLinear then adds the zero point and saturates, where ONNX has the dtype; its scale
    is one.
    """
    quotient = ctx.emit("Div", x, align(ctx, scale, x, axis))
    whole = export_round(ctx, retype(ctx, quotient, x, "float32"))
    dtype = ctx.result_type().dtype
    if dtype in ("int8", "uint8") and is_scalar_within(zero_point, dtype):
        zero = ctx.const(ctx.constant(zero_point).reshape(()), dtype)
        return ctx.emit("QuantizeLinear", whole, ctx.const(1, np.float32), zero)
    shifted = ctx.emit("Add", whole, cast(ctx, align(ctx, zero_point, x, axis), np.float32))
    return _saturate(ctx, shifted, x, "float32", dtype)


@OPS.exports("qnn.dequantize")
def export_dequantize(
    ctx: ExportContext,
    x: Value,
    scale: Value,
    zero_point: Value,
    *,
    out_dtype: np.dtype[AnyValue],
    axis: int,
) -> Value:
    """DequantizeLinear knows axes from 13 on, 16 bits from 21 on, and int32 without zero point."""
    dtype = ctx.type(x).dtype
    if _has_linear_form(ctx, dtype, scale, zero_point):
        real = _emit_dequantize_linear(ctx, x, scale, zero_point, axis)
    else:
        wide = cast(ctx, x, np.int32) if dtype != "int32" else x
        shifted = ctx.emit("Sub", wide, align(ctx, zero_point, x, axis))
        real = ctx.emit("Mul", cast(ctx, shifted, np.float32), align(ctx, scale, x, axis))
    if out_dtype == np.float32:
        return real
    limit = float(np.finfo(out_dtype).max)
    return cast(
        ctx, export_clip(ctx, retype(ctx, real, x, "float32"), a_min=-limit, a_max=limit), out_dtype
    )


def _has_linear_form(ctx: ExportContext, dtype: str, scale: Value, zero_point: Value) -> bool:
    data = zero_point.data
    if data is None or (ctx.version < 13 and (data.size != 1 or ctx.type(scale).size != 1)):
        return False
    if dtype == "int32":
        return not data.any()
    if dtype not in ("int8", "uint8") and ctx.version < 21:
        return False
    return bool((data >= np.iinfo(dtype).min).all() and (data <= np.iinfo(dtype).max).all())


def _emit_dequantize_linear(
    ctx: ExportContext, x: Value, scale: Value, zero_point: Value, axis: int
) -> Value:
    """Emit DequantizeLinear, both parameters in the shape of the longer one."""
    lengths = [each.shape[0] for each in map(ctx.type, (scale, zero_point)) if each.rank]
    length = next((each for each in lengths if each != 1), None)
    zero = ctx.constant(zero_point).astype(ctx.type(x).dtype)
    if length is None:
        scale = ctx.view(scale, ())
        zero = zero.reshape(())
    elif not isinstance(length, int):
        raise Unsupported(f"needs the number of scales, found {length}")
    else:
        zero = broadcast_to(zero.reshape(-1), (length,))
        if scale.data is not None:
            scale = ctx.const(broadcast_to(scale.data.reshape(-1), (length,)))
        elif ctx.type(scale).size != length:
            scale = ctx.emit("Expand", scale, ctx.ints([length]))
    point = None if ctx.type(x).dtype == "int32" else ctx.const(zero)
    position = None if length is None else axis % ctx.type(x).rank
    return ctx.emit("DequantizeLinear", x, scale, point, axis=position)


@OPS.exports("qnn.requantize")
def export_requantize(
    ctx: ExportContext,
    x: Value,
    input_scale: Value,
    input_zero_point: Value,
    output_scale: Value,
    output_zero_point: Value,
    *,
    axis: int,
    rounding: Literal["None", "UPWARD", "TONEAREST"],
    compute_dtype: Literal["None", "int64", "float32", "float64"],
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    """The same arithmetic step by step: a pair of linear operators would round half to even."""
    rank = ctx.type(x).rank
    ratio = along_axis(ctx.constant(input_scale), rank, axis).astype(np.float64) / np.float64(
        ctx.constant(output_scale)
    )
    away = rounding == "TONEAREST"
    dtype = ctx.result_type().dtype
    zero = align(ctx, input_zero_point, x, axis)
    narrow = x if ctx.type(x).dtype == "int32" else cast(ctx, x, np.int32)
    if compute_dtype in ("float32", "float64"):
        wide = np.dtype(compute_dtype)
        shifted = ctx.emit("Sub", cast(ctx, narrow, wide), cast(ctx, zero, wide))
        product = ctx.emit("Mul", shifted, ctx.const(ratio, wide))
        real = ctx.emit("Add", product, cast(ctx, output_zero_point, wide))
        result = cast(ctx, _round(ctx, retype(ctx, real, x, wide.name), away), np.int32)
    else:
        shifted = cast(ctx, ctx.emit("Sub", narrow, zero), np.int64)
        numbers = to_ratio(ctx, *fixed_point(ratio))
        level = cast(ctx, scale_fixed_point(ctx, shifted, *numbers, away), np.int32)
        result = ctx.emit("Add", level, output_zero_point)
    return _saturate(ctx, result, x, "int32", dtype)


def _round(ctx: ExportContext, x: Value, away: bool) -> Value:
    if away:
        return export_round(ctx, x)
    return ctx.emit("Floor", ctx.emit("Add", x, ctx.scalar_like(x, 0.5)))
