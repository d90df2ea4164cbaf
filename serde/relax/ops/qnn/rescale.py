"""Into quantised numbers, out of them, and from one scale to another: as the kernels of Relay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue
from typing import TypeAlias

import numpy as np

from serde.relax.export_context import ExportContext, Value
from serde.relax.framework import Framework
from serde.relax.ops.table import OPS
from serde.relay.op.qnn.parameters import LARGEST_EXPONENT, SMALLEST_EXPONENT, fixed_point

__all__: list[str] = []

DType: TypeAlias = np.dtype[AnyValue]
Expr: TypeAlias = AnyValue
"""An expression of TIR, or a tensor of ``tvm.te``."""


def _reader(ctx: ExportContext, data: Value, values: Value, axis: int) -> Callable[..., Expr]:
    """Return what reads a scale or a zero point: for the whole tensor, or an index of an axis."""
    rank, type_ = ctx.type(data).rank, ctx.type(values)

    def read(tensor: Expr, indices: Sequence[Expr]) -> Expr:
        if not type_.rank:
            return tensor[()]
        return tensor[0] if type_.shape == (1,) or not rank else tensor[indices[axis]]

    return read


def _round_away(framework: Framework, value: Expr, dtype: str) -> Expr:
    """Return the nearest whole number, halves away from zero; `dtype` is that of the value."""
    tir = framework.tir
    whole, one = tir.trunc(value), tir.const(1.0, dtype)
    sign = tir.Select(value < tir.const(0.0, dtype), -one, one)
    return tir.Select(tir.abs(value - whole) >= tir.const(0.5, dtype), whole + sign, whole)


def _saturate(framework: Framework, value: Expr, wide: str, dtype: str) -> Expr:
    """Return a number in an integer dtype; beyond its range, the end of that."""
    tir, info = framework.tir, np.iinfo(dtype)
    ends = [
        tir.const(float(n) if wide == "float64" else int(n), wide) for n in (info.min, info.max)
    ]
    return tir.max(tir.min(value.astype(wide), ends[1]), ends[0]).astype(dtype)


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
    """What is not a number becomes zero."""
    framework, dtype = ctx.framework, out_dtype.name
    read_scale = _reader(ctx, data, output_scale, axis)
    read_zero = _reader(ctx, data, output_zero_point, axis)

    def quantize(x: Expr, scale: Expr, zero: Expr) -> Expr:
        def element(*indices: Expr) -> Expr:
            quotient = x[indices] / read_scale(scale, indices)
            rounded = _round_away(framework, quotient, "float32")
            level = rounded + read_zero(zero, indices).astype("float32")
            found = _saturate(framework, level, "float64", dtype)
            return framework.tir.Select(framework.tir.isnan(level), _zero(framework, dtype), found)

        return framework.te.compute(x.shape, element, "quantize")

    return ctx.emit_te(quantize, data, output_scale, output_zero_point)


def _zero(framework: Framework, dtype: str) -> Expr:
    return framework.tir.const(0, dtype)


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
    """Numbers of float16 saturate at the largest."""
    framework, dtype = ctx.framework, out_dtype.name
    read_scale = _reader(ctx, data, input_scale, axis)
    read_zero = _reader(ctx, data, input_zero_point, axis)

    def dequantize(x: Expr, scale: Expr, zero: Expr) -> Expr:
        def element(*indices: Expr) -> Expr:
            level = x[indices].astype("int32") - read_zero(zero, indices)
            real = level.astype("float32") * read_scale(scale, indices)
            if dtype == "float32":
                return real
            tir = framework.tir
            limit = tir.const(float(np.finfo(dtype).max), "float32")
            return tir.max(tir.min(real, limit), -limit).astype(dtype)

        return framework.te.compute(x.shape, element, "dequantize")

    return ctx.emit_te(dequantize, data, input_scale, input_zero_point)


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
    """The ratio of constant scales is put into fixed point here, another when the model runs."""
    framework, dtype, away = ctx.framework, ctx.result_type().dtype, rounding == "TONEAREST"
    read_ratio = _reader(ctx, data, input_scale, axis)
    read_zero = _reader(ctx, data, input_zero_point, axis)
    if compute_dtype in ("float32", "float64"):
        parts = [_ratio(ctx, input_scale, output_scale, compute_dtype)]
        rescale = _rescale_floating(framework, compute_dtype, away=away)
    else:
        parts = _fixed_ratio(ctx, input_scale, output_scale)
        rescale = _rescale_fixed(framework, away=away)

    def requantize(x: Expr, zero: Expr, out_zero: Expr, *ratio: Expr) -> Expr:
        def element(*indices: Expr) -> Expr:
            factors = [read_ratio(each, indices) for each in ratio]
            found = rescale(x[indices], read_zero(zero, indices), out_zero[()], *factors)
            return found if dtype == "int32" else _saturate(framework, found, "int64", dtype)

        return framework.te.compute(x.shape, element, "requantize")

    return ctx.emit_te(requantize, data, input_zero_point, output_zero_point, *parts)


def _rescale_floating(framework: Framework, wide: str, *, away: bool) -> Callable[..., Expr]:
    """Return what rescales an element in a floating-point type."""
    tir = framework.tir

    def rescale(x: Expr, zero: Expr, out_zero: Expr, ratio: Expr) -> Expr:
        shifted = x.astype("int32").astype(wide) - zero.astype(wide)
        real = shifted * ratio + out_zero.astype(wide)
        if away:
            whole = _round_away(framework, real, wide)
        else:
            whole = tir.floor(real + tir.const(0.5, wide))
        return _saturate(framework, whole, "float64", "int32")

    return rescale


def _rescale_fixed(framework: Framework, *, away: bool) -> Callable[..., Expr]:
    """Return what rescales an element by a mantissa of 31 bits and a power of two."""
    tir = framework.tir

    def number(value: int) -> Expr:
        return tir.const(value, "int64")

    def rescale(x: Expr, zero: Expr, out_zero: Expr, mantissa: Expr, exponent: Expr) -> Expr:
        level = (x.astype("int32") - zero).astype("int64")
        product = tir.shift_left(level, tir.max(exponent, number(0))) * mantissa
        right = number(31) + tir.max(-exponent, number(0))
        half = tir.shift_left(number(1), right - number(1))
        if away:
            half = tir.Select(product < number(0), half - number(1), half)
        return tir.shift_right(product + half, right).astype("int32") + out_zero

    return rescale


def _ratio(ctx: ExportContext, scale: Value, other: Value, dtype: str) -> Value:
    """Return the quotient of two scales, taken in float64."""
    if scale.data is not None and other.data is not None:
        return ctx.const(scale.data.astype(np.float64) / np.float64(other.data), dtype)
    te = ctx.framework.te

    def ratio(x: Expr, y: Expr) -> Expr:
        def element(*indices: Expr) -> Expr:
            return (x[indices].astype("float64") / y[()].astype("float64")).astype(dtype)

        return te.compute(x.shape, element, "ratio")

    return ctx.emit_te(ratio, scale, other)


def _fixed_ratio(ctx: ExportContext, scale: Value, other: Value) -> list[Value]:
    """Return mantissas and exponents of the quotient of two scales, in int64."""
    if scale.data is not None and other.data is not None:
        parts = fixed_point(scale.data.astype(np.float64) / np.float64(other.data))
        return [ctx.const(each, "int64") for each in parts]
    ratio = _ratio(ctx, scale, other, "float64")
    framework = ctx.framework

    def fixed_ratio(x: Expr) -> list[Expr]:
        def compute(part: int) -> Expr:
            return framework.te.compute(
                x.shape, lambda *at: _fixed(framework, x[at])[part], "fixed"
            )

        return [compute(0), compute(1)]

    return list(ctx.emit_te_tuple(fixed_ratio, ratio, outputs=2))


def _fixed(framework: Framework, ratio: Expr) -> tuple[Expr, Expr]:
    """Return a positive number of float64 as ``fixed_point`` does, read from its bits."""
    tir = framework.tir

    def number(value: int) -> Expr:
        return tir.const(value, "int64")

    bits = tir.reinterpret("int64", ratio)
    stored = tir.shift_right(bits, number(52))
    digits = tir.bitwise_or(tir.bitwise_and(bits, number(2**52 - 1)), number(2**52))
    rounded = tir.shift_right(digits + number(2**21), number(22))
    carried = rounded == number(2**31)
    mantissa = tir.Select(carried, number(2**30), rounded)
    exponent = stored - number(1022) + tir.Select(carried, number(1), number(0))
    small = exponent < number(SMALLEST_EXPONENT)
    least, most = number(SMALLEST_EXPONENT), number(LARGEST_EXPONENT)
    return (
        tir.Select(tir.any(small, stored == number(0)), number(0), mantissa),
        tir.max(tir.min(exponent, most), least),
    )
