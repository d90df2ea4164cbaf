"""Tensors quantised and restored, or rounded to quantised numbers but kept as floats."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any as AnyValue, Final

import numpy as np

import serde.relay as relay
from serde.core import dataclass
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, call
from serde.torch.ops.qnn.parameters import (
    Function,
    broadcast_shape,
    dequantize,
    integer_dtype,
    quantize,
)
from serde.torch.ops.table import OPS, Import
from serde.torch.quantization import Quantization


def _number(ctx: Import, x: Expr) -> float | int:
    found = ctx.as_number(x)
    if isinstance(found, (Expr, complex)):
        raise Unsupported("a scale or zero point that is computed when the model runs")
    return found


def _quantize_by(ctx: Import, x: Expr, scale: float, zero_point: int, dtype: str | int) -> Expr:
    kind = integer_dtype(dtype)
    found = Quantization(float(scale), int(zero_point))
    return quantize(ctx, x, found, kind, "before" if kind == "int32" else "fused")


@OPS.imports("aten::quantize_per_tensor")
def import_quantize_per_tensor(
    ctx: Import, self: Expr, *, scale: float, zero_point: int, dtype: str | int
) -> Expr:
    return _quantize_by(ctx, self, scale, zero_point, dtype)


@OPS.imports("aten::quantize_per_tensor.tensor_qparams")
def import_quantize_per_tensor_by_tensors(
    ctx: Import, self: Expr, scale: Expr, zero_point: Expr, *, dtype: str | int
) -> Expr:
    return _quantize_by(ctx, self, _number(ctx, scale), int(_number(ctx, zero_point)), dtype)


@OPS.imports("aten::quantize_per_channel")
def import_quantize_per_channel(
    ctx: Import, self: Expr, scales: Expr, zero_points: Expr, *, axis: int, dtype: str | int
) -> Expr:
    found = Quantization(scales, zero_points, ctx.axis(self, axis))
    return quantize(ctx, self, found, integer_dtype(dtype), "before")


@OPS.imports("quantized_tensor::dequantize.tensors")
def import_dequantize_all(ctx: Import, *tensors: Expr) -> list[Expr]:
    return [dequantize(ctx, each) for each in tensors]


@OPS.imports("quantized_tensor::dequantize", "aten::dequantize")
def import_dequantize(ctx: Import, self: Expr) -> Expr:
    """Of a tensor that is not quantised itself, in float32."""
    return dequantize(ctx, self) if ctx.is_quantized(self) else ctx.cast(self, "float32")


@OPS.imports("quantized_tensor::int_repr", "aten::int_repr")
def import_int_repr(ctx: Import, self: Expr) -> Expr:
    """A copy, for these integers stand for nothing else."""
    ctx.quantization(self)
    return relay.copy(self)


@OPS.imports("quantized_tensor::q_per_channel_scales")
def import_scales(ctx: Import, self: Expr) -> Expr:
    scale = ctx.quantization(self).scale
    return scale if isinstance(scale, Expr) else ctx.scalar(scale, "float64")


@OPS.imports("quantized_tensor::q_per_channel_zero_points")
def import_zero_points(ctx: Import, self: Expr) -> Expr:
    zero = ctx.quantization(self).zero_point
    return zero if isinstance(zero, Expr) else ctx.scalar(zero, "int64")


@OPS.imports("aten::_make_per_tensor_quantized_tensor")
def import_make_per_tensor(ctx: Import, self: Expr, *, scale: float, zero_point: int) -> Expr:
    return ctx.quantized(relay.copy(self), Quantization(scale, zero_point))


@OPS.imports("aten::_make_per_channel_quantized_tensor")
def import_make_per_channel(
    ctx: Import, self: Expr, scale: Expr, zero_point: Expr, *, axis: int
) -> Expr:
    return ctx.quantized(relay.copy(self), Quantization(scale, zero_point, ctx.axis(self, axis)))


@OPS.imports("serde::quantized")
def import_quantized_constant(
    ctx: Import,
    weight: Expr,
    *,
    scale: float | Expr,
    zero_point: int | Expr,
    axis: int | None = None,
) -> Expr:
    """A tensor of a TorchScript program that is quantised."""
    return ctx.quantized(weight, Quantization(scale, zero_point, axis))


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Between which integers data are quantised."""

    quant_min: int
    quant_max: int


def _simulate(
    ctx: Import, x: Expr, scale: Expr, inverse: Expr, zero_point: Expr, bounds: Bounds
) -> tuple[Expr, Expr]:
    """Return ``(clip(level) - zero_point) * scale`` of rounded levels, and which were inside."""
    wide = ctx.cast(x, "float32")
    level = relay.add(call("serde.round_even", relay.multiply(wide, inverse)), zero_point)
    clipped = relay.clip(level, float(bounds.quant_min), float(bounds.quant_max))
    found = relay.multiply(relay.subtract(clipped, zero_point), scale)
    return ctx.cast(found, ctx.dtype(x)), relay.equal(level, clipped)


def _by_number(
    ctx: Import, self: Expr, *, scale: float, zero_point: int, bounds: Bounds
) -> tuple[Expr, Expr]:
    factor = np.float32(scale)
    inverse = Constant(np.asarray(np.float32(1) / factor))
    zero = ctx.scalar(zero_point, "float32")
    return _simulate(ctx, self, Constant(np.asarray(factor)), inverse, zero, bounds)


def _by_tensor(
    ctx: Import, self: Expr, scale: Expr, zero_point: Expr, *, axis: int | None, bounds: Bounds
) -> tuple[Expr, Expr]:
    shape = broadcast_shape(ctx, self, None if axis is None else ctx.axis(self, axis))
    factor, zero = (relay.reshape(ctx.cast(each, "float32"), shape) for each in (scale, zero_point))
    inverse = relay.divide(ctx.scalar(1.0, "float32"), factor)
    return _simulate(ctx, self, factor, inverse, zero, bounds)


def _without_mask(function: Callable[..., tuple[Expr, Expr]]) -> Function:
    @functools.wraps(function)
    def run(*arguments: AnyValue, **attributes: AnyValue) -> Expr:
        return function(*arguments, **attributes)[0]

    return run


_TENSOR: Final = "aten::fake_quantize_per_tensor_affine"
_CHANNEL: Final = "aten::fake_quantize_per_channel_affine"
OPS.imports(f"{_TENSOR}_cachemask")(_by_number)
OPS.imports(_TENSOR)(_without_mask(_by_number))
OPS.imports(f"{_TENSOR}.tensor_qparams")(partial(_without_mask(_by_tensor), axis=None))
OPS.imports(f"{_CHANNEL}_cachemask")(_by_tensor)
OPS.imports(_CHANNEL)(_without_mask(_by_tensor))
