"""Into quantised numbers, out of them, and from one scale to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.qnn.fused import Calibration
from serde.mxnet.ops.qnn.parameters import (
    LEVELS,
    ONE,
    WHOLE,
    known,
    levels_in,
    levels_within,
    magnitude,
    number,
    real_of,
    scalar,
    step,
    symmetric,
)
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.op.qnn.parameters import along_axis, fixed_point
from serde.weights import Array, dtype_name

OutType = Literal["auto", "int8", "uint8"]


@OPS.imports("_contrib_quantize")
def import_quantize(
    ctx: ImportContext,
    data: Expr,
    min_range: Expr,
    max_range: Expr,
    *,
    out_type: Literal["int8", "uint8"] = "uint8",
) -> Sequence[Expr]:
    """int8 has a range about zero, uint8 keeps the one given."""
    end = magnitude(min_range, max_range)
    result = levels_within(data, end, WHOLE[out_type], out_type)
    ends = symmetric(end) if out_type == "int8" else (min_range, max_range)
    return [result, *ends]


@OPS.imports("_contrib_quantize_v2")
def import_quantize_v2(
    ctx: ImportContext, data: Expr, *, out_type: OutType = "int8", calibration: Calibration
) -> Sequence[Expr]:
    """Without a calibrated range, that of the data counts. Quantised data pass."""
    calibrated = calibration.ends
    dtype = _choose_dtype(out_type, calibration)
    given = ctx.type(data).dtype
    if given in LEVELS:
        if given != dtype:
            raise Unsupported(f"quantisation of {given} to {dtype}: MXNet passes the bits on")
        levels = LEVELS[given]
        whole = (number(-levels if given == "int8" else 0), number(levels))
        return [data, *(calibrated or whole)]
    low, high = calibrated or (_single(relay.min(data)), _single(relay.max(data)))
    end = magnitude(low, high)
    result = levels_within(data, end, LEVELS[dtype], dtype)
    return [result, *(symmetric(end) if dtype == "int8" else (low, high))]


def _choose_dtype(out_type: OutType, calibration: Calibration) -> str:
    """Return the dtype; ``auto`` goes by the least number, if there is one."""
    if out_type != "auto":
        return out_type
    low = calibration.min_calib_range
    return "uint8" if calibration.ends and low is not None and low >= 0 else "int8"


def _single(x: Expr) -> Expr:
    return relay.reshape(x, (1,))


@OPS.imports("_contrib_quantize_asym")
def import_quantize_asym(
    ctx: ImportContext, data: Expr, *, calibration: Calibration
) -> Sequence[Expr]:
    """To uint8 with a level that is zero; factor and level are further results."""
    calibrated = calibration.ends
    low, high = calibrated or (_single(relay.min(data)), _single(relay.max(data)))
    most = scalar(WHOLE["uint8"])
    factor = known(relay.divide(most, known(relay.subtract(high, low))))
    shift = known(relay.subtract(most, known(relay.multiply(high, factor))))
    sides = (known(relay.squeeze(each, axis=[0])) for each in (factor, shift))
    real = relay.add(relay.multiply(data, next(sides)), next(sides))
    return [levels_in(real, ONE, "uint8"), factor, shift]


@OPS.imports("_contrib_dequantize")
def import_dequantize(
    ctx: ImportContext,
    data: Expr,
    min_range: Expr,
    max_range: Expr,
    *,
    out_type: Literal["float32"] = "float32",
) -> Expr:
    dtype = ctx.type(data).dtype
    if dtype not in LEVELS:
        raise Unsupported(f"{dtype} cannot be dequantised by MXNet")
    return real_of(data, step(magnitude(min_range, max_range), LEVELS[dtype]))


@OPS.imports("_contrib_requantize")
def import_requantize(
    ctx: ImportContext,
    data: Expr,
    min_range: Expr,
    max_range: Expr,
    *,
    out_type: OutType = "int8",
    calibration: Calibration,
) -> Sequence[Expr]:
    """Without a calibrated range, that of the data counts; uint8 has one from zero."""
    calibrated = calibration.ends
    dtype = _choose_dtype(out_type, calibration)
    real = real_of(data, step(magnitude(min_range, max_range), WHOLE["int32"]))
    ends = calibrated or (_single(relay.min(real)), _single(relay.max(real)))
    end = magnitude(*ends)
    result = levels_within(real, end, WHOLE[dtype], dtype)
    return [result, *(symmetric(end) if dtype == "int8" else (number(0), end))]


def _along(ctx: ExportContext, values: Value, like: Value, axis: int) -> Value:
    """Return a scale or zero point in a shape that broadcasts with `like`."""
    rank = ctx.type(like).rank
    if values.data is not None:
        return ctx.const(along_axis(values.data, rank, axis))
    if ctx.type(values).rank == 0 or not rank:
        return ctx.reshape(values, ())
    shape = [1] * rank
    (shape[axis],) = ctx.static_shape(values)
    return ctx.reshape(values, shape)


def _saturate(data: Expr, source: str, dtype: str) -> Expr:
    """Return whole numbers of the dtype `source` in an integer dtype, cut to its range."""
    if source == dtype:
        return data
    wide = "float64" if source.startswith("float") else "int64"
    info = np.iinfo(dtype)
    low, high = (relay.const(limit, wide) for limit in (info.min, info.max))
    return relay.cast(relay.minimum(relay.maximum(relay.cast(data, wide), low), high), dtype)


@OPS.exports("qnn.quantize")
def export_quantize(
    ctx: ExportContext,
    data: Value,
    output_scale: Value,
    output_zero_point: Value,
    *,
    out_dtype: AnyValue,
    axis: int,
) -> Value:
    def build(x: Expr, scale: Expr, zero: Expr) -> Expr:
        whole = relay.add(relay.round(relay.divide(x, scale)), relay.cast(zero, "float32"))
        whole = relay.where(relay.isnan(whole), relay.const(0.0), whole)
        return _saturate(whole, "float32", dtype_name(out_dtype))

    scale, zero = (_along(ctx, x, data, axis) for x in (output_scale, output_zero_point))
    return ctx.spell(build, data, scale, zero)


@OPS.exports("qnn.dequantize")
def export_dequantize(
    ctx: ExportContext,
    data: Value,
    input_scale: Value,
    input_zero_point: Value,
    *,
    out_dtype: AnyValue,
    axis: int,
) -> Value:
    result = dtype_name(out_dtype)

    def build(x: Expr, scale: Expr, zero: Expr) -> Expr:
        level = relay.subtract(relay.cast(x, "int32"), zero)
        real = relay.multiply(relay.cast(level, "float32"), scale)
        if result == "float32":
            return real
        limit = float(np.finfo(result).max)
        return relay.cast(relay.clip(real, -limit, limit), result)

    scale, zero = (_along(ctx, x, data, axis) for x in (input_scale, input_zero_point))
    return ctx.spell(build, data, scale, zero)


def rescale(level: Expr, ratio: Array, away: bool) -> Expr:
    """Return int32 times a ratio of scales in fixed point; see ``qnn.requantize``."""
    mantissa, exponent = fixed_point(ratio)
    with np.errstate(over="ignore"):
        factor = mantissa << np.maximum(exponent, 0)
    right = 31 + np.maximum(-exponent, 0)
    half = np.int64(1) << (right - 1)
    product = relay.multiply(relay.cast(level, "int64"), relay.Constant(factor))
    if away:
        below = relay.cast(relay.less(product, relay.const(0, "int64")), "int64")
        rounded = relay.add(product, relay.subtract(relay.Constant(half), below))
    else:
        rounded = relay.add(product, relay.Constant(half))
    return relay.cast(relay.right_shift(rounded, relay.Constant(right)), "int32")


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
    out_dtype: AnyValue,
) -> Value:
    """The scales must be constant, as the multiplier is made of them."""
    scale = along_axis(ctx.constant(input_scale), ctx.type(data).rank, axis).astype(np.float64)
    ratio = np.asarray(scale / np.float64(ctx.constant(output_scale)))
    away, target = rounding == "TONEAREST", ctx.result_type().dtype

    def build(x: Expr, zero: Expr, shift: Expr) -> Expr:
        level = relay.cast(x, "int32")
        if compute_dtype not in ("float32", "float64"):
            whole = rescale(relay.subtract(level, zero), ratio, away)
            return _saturate(relay.add(whole, shift), "int32", target)
        distance = relay.subtract(relay.cast(level, compute_dtype), relay.cast(zero, compute_dtype))
        real = relay.multiply(distance, relay.Constant(ratio.astype(compute_dtype)))
        real = relay.add(real, relay.cast(shift, compute_dtype))
        half = relay.const(0.5, compute_dtype)
        whole = relay.round(real) if away else relay.floor(relay.add(real, half))
        return _saturate(relay.cast(whole, "int32"), "int32", target)

    return ctx.spell(build, data, _along(ctx, input_zero_point, data, axis), output_zero_point)
