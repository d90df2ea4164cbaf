"""Tensors quantised and restored, or rounded to quantised numbers but kept as floats."""

from __future__ import annotations

from functools import partial

import serde.relay as relay
from serde.core import dataclass
from serde.relay.ir import Expr, call
from serde.torch.ops.qnn.parameters import (
    broadcast_shape,
    dequantize,
    fixed_number,
    integer_dtype,
    quantize,
)
from serde.torch.ops.table import OPS, Import
from serde.torch.quantization import Quantization


@OPS.imports("aten::quantize_per_tensor", "aten::quantize_per_tensor.tensor_qparams")
def import_quantize_per_tensor(
    ctx: Import, self: Expr, *, scale: float | Expr, zero_point: int | Expr, dtype: str | int
) -> Expr:
    kind = integer_dtype(dtype)
    found = Quantization(fixed_number(ctx, scale), int(fixed_number(ctx, zero_point)))
    return quantize(ctx, self, found, kind, "before" if kind == "int32" else "fused")


@OPS.imports("aten::quantize_per_channel")
def import_quantize_per_channel(
    ctx: Import, self: Expr, scales: Expr, zero_points: Expr, *, axis: int, dtype: str | int
) -> Expr:
    found = Quantization(scales, zero_points, ctx.axis(self, axis))
    return quantize(ctx, self, found, integer_dtype(dtype), "before")


@OPS.imports("quantized_tensor::dequantize", "aten::dequantize")
def import_dequantize(ctx: Import, self: Expr) -> Expr:
    """Of a tensor that is not quantised itself, in float32."""
    return dequantize(ctx, self) if ctx.is_quantized(self) else ctx.cast(self, "float32")


@OPS.imports("quantized_tensor::dequantize.tensors", "aten::dequantize.tensors")
def import_dequantize_all(ctx: Import, *tensors: Expr) -> list[Expr]:
    return [import_dequantize(ctx, each) for each in tensors]


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
    ctx: Import, self: Expr,
    *, scale: float | Expr, zero_point: int | Expr, axis: int | None, bounds: Bounds, masked: bool,
) -> Expr | tuple[Expr, Expr]:  # fmt: skip
    """``y = (clip(level) - zero_point) * scale`` of rounded levels, and which of them were inside.

    Scale and zero point are numbers or tensors of one, with an axis vectors.
    """
    shape = broadcast_shape(ctx, self, None if axis is None else ctx.axis(self, axis))
    factor, zero = (
        relay.reshape(ctx.scalar(each, "float32"), shape) for each in (scale, zero_point)
    )
    inverse = ctx.fold(relay.divide(ctx.scalar(1.0, "float32"), factor))
    wide = ctx.cast(self, "float32")
    level = relay.add(call("serde.round_even", relay.multiply(wide, inverse)), zero)
    clipped = relay.clip(level, float(bounds.quant_min), float(bounds.quant_max))
    found = relay.multiply(relay.subtract(clipped, zero), factor)
    result = ctx.cast(found, ctx.dtype(self))
    return (result, relay.equal(level, clipped)) if masked else result


for _suffix, _masked in (("", False), ("_cachemask", True)):
    _run = partial(_simulate, masked=_masked)
    OPS.imports(f"aten::fake_quantize_per_channel_affine{_suffix}")(_run)
    OPS.imports(f"aten::fake_quantize_per_tensor_affine{_suffix}")(partial(_run, axis=None))
OPS.imports("aten::fake_quantize_per_tensor_affine.tensor_qparams")(
    partial(_simulate, axis=None, masked=False)
)
