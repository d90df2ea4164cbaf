"""Quantising, and back; what these mean is in the tensors."""

from __future__ import annotations

from typing import Final

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core import dtype_name
from serde.errors import Unsupported
from serde.relay.ir import Call, Constant, Expr, OpDef, TensorType, Tuple
from serde.relay.ir.leaves import known_dtype
from serde.tflite.model import Quantization
from serde.tflite.ops.table import OPS, Export, Import, Value

_CODES: Final = ("int8", "uint8", "int16")
"""Codes that LiteRT makes of numbers, and numbers of."""


@OPS.imports("DENSIFY")
def import_densify(ctx: Import, x: Expr) -> Expr:
    """Sparse values have been filled up where the tensor was read."""
    return x


@OPS.imports("DEQUANTIZE")
def import_dequantize(ctx: Import, x: Expr) -> Expr:
    """Codes have become numbers already; halves become floats."""
    return x if ctx.type(x).dtype == "float32" else relay.cast(x, "float32")


@OPS.imports("QUANTIZE")
def import_quantize(ctx: Import, x: Expr) -> Expr:
    """Numbers become codes where the tensor is stored."""
    return x


def _are_parameters(scale: Expr, zero: Expr, dtype: str, *, several: bool = False) -> bool:
    """Whether a tensor of codes can have a scale and a zero point, or several of an axis."""
    if dtype not in _CODES or not isinstance(scale, Constant) or not isinstance(zero, Constant):
        return False
    scales, zeros, kind = scale.data, zero.data, np.iinfo(dtype)
    known = np.isfinite(scales).all() and (scales >= np.finfo(np.float32).tiny).all()
    within = (zeros >= kind.min).all() and (zeros <= kind.max).all()
    fits = scales.size == zeros.size == 1 or (several and dtype == "int8")
    return bool(known and within and fits and (dtype != "int16" or not zeros.any()))


def _parameters(ctx: Export, scale: Value, zero: Value | None, axis: int) -> Quantization:
    scales = ctx.constant(scale).astype(np.float32).reshape(-1)
    points = allocation.zeros(scales.shape, np.int64)
    if zero is not None:
        points += ctx.constant(zero).reshape(-1)
    return Quantization(scales, points, axis if scales.size > 1 else 0)


def _is_quantized(node: Call) -> bool:
    _, scale, zero = node.args
    return _are_parameters(scale, zero, dtype_name(node.attrs["out_dtype"]))


@OPS.exports("qnn.quantize", when=_is_quantized, ignored=("axis", "out_dtype"))
def export_quantize(
    ctx: Export, data: Value, output_scale: Value, output_zero_point: Value
) -> Value:
    """Ties go away from zero by the reference kernel, and to even by XNNPACK."""
    return ctx.emit_codes(data, _parameters(ctx, output_scale, output_zero_point, 0))


def _is_dequantized(node: Call) -> bool:
    """Whether codes have a scale, or weights, which stay stored, one for each step of an axis."""
    data, scale, zero = node.args
    stored = isinstance(node.op, OpDef) and node.op.name == "serde.dequantize_linear"
    if node.attrs.get("block_size") or known_dtype(node) != "float32":
        return False
    several = stored and isinstance(data.type, TensorType) and data.type.concrete_shape is not None
    zero = Constant(np.zeros((), np.int32)) if isinstance(zero, Tuple) else zero
    return _are_parameters(scale, zero, known_dtype(data), several=several)


@OPS.exports("qnn.dequantize", when=_is_dequantized, ignored=("axis", "out_dtype"))
def export_dequantize(
    ctx: Export, data: Value, input_scale: Value, input_zero_point: Value
) -> Value:
    given = _parameters(ctx, input_scale, input_zero_point, 0)
    return ctx.emit("DEQUANTIZE", ctx.codes(data, given))


@OPS.exports("serde.dequantize_linear", when=_is_dequantized, ignored=("block_size", "out_dtype"))
def export_dequantize_linear(
    ctx: Export, data: Value, scale: Value, zero_point: Value | None, *, axis: int
) -> Value:
    place = axis % max(ctx.type(data).rank, 1)
    return ctx.emit("DEQUANTIZE", ctx.codes(data, _parameters(ctx, scale, zero_point, place)))


@OPS.imports("FAKE_QUANT")
def import_fake_quant(
    ctx: Import,
    x: Expr,
    *,
    min: float = 0.0,
    max: float = 0.0,
    num_bits: int = 0,
    narrow_range: bool = False,
) -> Expr:
    """Numbers are rounded to steps between the ends, moved so that 0 is one of them."""
    if not 2 <= num_bits <= 16 or not -np.inf < min < max < np.inf:
        raise Unsupported(f"{num_bits} bits from {min} to {max}")
    least, most = float(narrow_range), float(2**num_bits - 1)
    scale = np.float32((np.float32(max) - np.float32(min)) / np.float32(most - least))
    zero = np.clip(np.floor(least - np.float32(min) / scale + np.float32(0.5)), least, most)
    low, high = (np.float32(end - zero) * scale for end in (least, most))
    steps = relay.multiply(
        relay.subtract(relay.clip(x, float(low), float(high)), ctx.const(low, "float32")),
        ctx.const(np.float32(1) / scale, "float32"),
    )
    whole = relay.multiply(relay.round(steps), ctx.const(scale, "float32"))
    return relay.add(whole, ctx.const(low, "float32"))
