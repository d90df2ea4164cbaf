"""Quantised tensors, products of bytes, and why integers are neither summed nor scaled."""

from __future__ import annotations

from math import prod
from typing import Any as AnyValue, Final

import numpy as np

import serde.relay as relay
from serde.core.lossy import QUANTISED_AS_FLOATS
from serde.core.weights import Array, numpy_dtype
from serde.errors import Unsupported
from serde.nnef.export_context import Quantized, is_spoken
from serde.nnef.model import Quantization
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.nnef.quantization import LinearCodes, MinMaxCodes, linear_axis
from serde.relay.ir import Constant, Expr, call, tensor_type
from serde.walk.expansion.tensors import fixed_shape
from serde.walk.takes import Takes, dtypes

_LONGEST: Final = 2**24 // 255**2
"""How many products of bytes have a sum that float32 holds, whatever they are."""


def _require_exact(count: int) -> None:
    """Refuse sums that are rounded."""
    if count > _LONGEST:
        raise Unsupported(
            f"sums of {count} products of integers, of which scalars hold those of {_LONGEST}"
        )


def _level(data: Expr, zero_point: Expr | None) -> Expr:
    """Return bytes less their zero point, as scalars."""
    level = relay.cast(data, "float32")
    if zero_point is None:
        return level
    return relay.subtract(level, relay.cast(zero_point, "float32"))


@OPS.expands("serde.matmul_integer")
def expand_matmul_integer(
    a: Expr, b: Expr, a_zero_point: Expr | None, b_zero_point: Expr | None
) -> Expr:
    _require_exact(fixed_shape(a)[-1])
    sides = _level(a, a_zero_point), _level(b, b_zero_point)
    if tensor_type(b).rank == 3:
        found = call("nn.batch_matmul", *sides, transpose_a=False, transpose_b=False)
    else:
        found = call("nn.matmul", *sides, units=None, transpose_a=False, transpose_b=False)
    return relay.cast(found, "int32")


@OPS.expands("serde.conv_integer")
def expand_conv_integer(
    data: Expr, weight: Expr, data_zero_point: Expr | None, weight_zero_point: Expr | None,
    *, strides: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...], groups: int,
) -> Expr:  # fmt: skip
    lengths = fixed_shape(weight)
    _require_exact(prod(lengths[1:]))
    point = weight_zero_point
    if point is not None and tensor_type(point).rank:
        point = relay.expand_dims(point, 1, len(lengths) - 1)
    found = call(
        f"nn.conv{len(lengths) - 2}d", _level(data, data_zero_point), _level(weight, point),
        strides=strides, padding=padding, dilation=dilation, groups=groups, channels=None,
        kernel_size=None,
    )  # fmt: skip
    return relay.cast(found, "int32")


@OPS.imports("zero_point_linear_quantize")
def import_zero_point_linear_quantize(
    ctx: Import, x: Expr, zero_point: Expr, scale: Expr, *, bits: int, signed: bool, symmetric: bool
) -> Expr:
    """``y = (clamp(round(x / scale) + zero_point, low, high) - zero_point) * scale``.

    A block of quantised integers where their type has the codes, else arithmetic of scalars.
    """
    codes = LinearCodes.of(bits, signed, symmetric)
    block = _quantized_block(ctx, x, zero_point, scale, codes)
    if block is not None:
        return block
    value, zero, step = ctx.align(x, relay.cast(zero_point, ctx.type(x).dtype), scale)
    dtype = ctx.type(x).dtype
    level = relay.add(relay.round(relay.divide(value, step)), zero)
    level = relay.maximum(level, ctx.const(codes.low, dtype))
    level = relay.minimum(level, ctx.const(codes.high, dtype))
    return relay.multiply(relay.subtract(level, zero), step)


def _quantized_block(
    ctx: Import, x: Expr, zero_point: Expr, scale: Expr, codes: LinearCodes
) -> Expr | None:
    """Return a quantisation and its inverse, or None where Relay has none of these codes."""
    dtype = codes.dtype()
    if dtype is None or ctx.type(x).dtype != "float32":
        return None
    if not ctx.is_constant(zero_point) or not ctx.is_constant(scale):
        return None
    zero, step = ctx.constant(zero_point).astype(np.int32), ctx.constant(scale)
    axis = linear_axis(zero, step)
    if axis is None or step.dtype != np.float32:
        return None
    steps, zeros = (Constant(each.reshape(() if each.size == 1 else -1)) for each in (step, zero))
    level = relay.qnn.op.quantize(x, steps, zeros, axis, dtype)
    if codes.low != np.iinfo(dtype).min:
        level = relay.clip(level, int(codes.low), int(codes.high))
    return relay.qnn.op.dequantize(level, steps, zeros, axis)


@OPS.imports("min_max_linear_quantize")
def import_min_max_linear_quantize(
    ctx: Import, x: Expr, min: Expr, max: Expr, *, bits: int, signed: bool, symmetric: bool
) -> Expr:
    """``y = round((clamp(x, min, max) - min) / (max - min) * r) / r * (max - min) + min``."""
    codes = MinMaxCodes.of(bits, signed, symmetric)
    dtype = ctx.type(x).dtype
    value, low, high = ctx.align(x, min, max)
    span, steps = relay.subtract(high, low), ctx.const(codes.steps, dtype)
    inside = relay.maximum(relay.minimum(value, high), low)
    level = relay.multiply(relay.divide(relay.subtract(inside, low), span), steps)
    level = relay.round(level)
    if codes.shift:
        shift = ctx.const(codes.shift, dtype)
        level = relay.add(relay.subtract(level, shift), shift)
    return relay.add(relay.multiply(relay.divide(level, steps), span), low)


@OPS.imports("linear_quantize")
def import_linear_quantize(ctx: Import, x: Expr, min: Expr, max: Expr, *, bits: int) -> Expr:
    return import_min_max_linear_quantize(
        ctx, x, min, max, bits=bits, signed=False, symmetric=False
    )


@OPS.imports("logarithmic_quantize")
def import_logarithmic_quantize(ctx: Import, x: Expr, max: Expr, *, bits: int) -> Expr:
    """``y = sign(x) * 2 ^ round(clamp(log2(abs(x)), m - r, m))`` where ``m = ceil(log2(max))``."""
    dtype = ctx.type(x).dtype
    value, most = ctx.align(x, max)
    high = relay.ceil(relay.log2(most))
    low = relay.subtract(high, ctx.const(float(2**bits - 1), dtype))
    exponent = relay.log2(relay.abs(value))
    exponent = relay.round(relay.maximum(relay.minimum(exponent, high), low))
    return relay.multiply(relay.sign(value), relay.power(ctx.const(2.0, dtype), exponent))


_SINGLE = dtypes("float32")


@OPS.exports("qnn.quantize")
def export_quantize(
    ctx: Export,
    data: Value,
    output_scale: Value,
    output_zero_point: Value,
    *,
    out_dtype: np.dtype[AnyValue],
    axis: int,
) -> Value:
    """The codes, step by step; a fragment has them together with their inverse alone."""
    info = np.iinfo(out_dtype)
    if out_dtype.itemsize > 2:
        raise Unsupported(f"scalars do not hold all codes of {out_dtype}")

    def quantize(x: Expr, scale: Expr, zero: Expr) -> Expr:
        level = relay.round(relay.divide(x, _along(scale, x, axis)))
        level = relay.add(level, relay.cast(_along(zero, x, axis), "float32"))
        return relay.cast(relay.clip(level, float(info.min), float(info.max)), str(out_dtype))

    codes = ctx.spell(quantize, data, output_scale, output_zero_point)
    if codes.name and output_scale.data is not None and output_zero_point.data is not None:
        parameters = _key(output_scale.data, output_zero_point.data, axis, ctx.type(data).rank)
        ctx.quantized[codes.name] = Quantized(data, parameters)
    return codes


def _key(scale: Array, zero: Array, axis: int, rank: int) -> tuple[AnyValue, ...]:
    """Return what tells parameters apart."""
    scales, zeros = np.broadcast_arrays(scale.reshape(-1), zero.reshape(-1).astype(np.int64))
    place = axis % max(rank, 1) if scales.size > 1 else 0
    return scales.tobytes(), zeros.tobytes(), place


def _along(values: Expr, x: Expr, axis: int) -> Expr:
    """Return a scale or zero point in a shape that broadcasts."""
    type_, rank = tensor_type(values), tensor_type(x).rank
    if type_.size == 1:
        return relay.reshape(values, ())
    return relay.expand_dims(values, 1, rank - 1 - axis % rank)


@OPS.exports("qnn.dequantize", takes=Takes(out_dtype=_SINGLE))
def export_dequantize(
    ctx: Export, data: Value, input_scale: Value, input_zero_point: Value, *, axis: int
) -> Value:
    """A fragment with the quantisation before it, an entry of graph.quant for what is stored."""
    return _dequantize(ctx, data, input_scale, input_zero_point, axis)


@OPS.exports("serde.dequantize_linear", takes=Takes(scale=_SINGLE, block_size=0, out_dtype=_SINGLE))
def export_dequantize_linear(
    ctx: Export, data: Value, scale: Value, zero_point: Value | None,
    *, axis: int, block_size: int, out_dtype: np.dtype[AnyValue] | None,
) -> Value:  # fmt: skip
    zero = ctx.const(np.zeros((), np.int32)) if zero_point is None else zero_point
    return _dequantize(ctx, data, scale, zero, axis)


def _dequantize(ctx: Export, data: Value, scale: Value, zero: Value, axis: int) -> Value:
    """Return ``(data - zero) * scale``."""
    dtype = ctx.type(data).dtype
    if scale.data is not None and zero.data is not None:
        rank = ctx.type(data).rank
        known = ctx.quantized.get(data.name)
        same = known and known.parameters == _key(scale.data, zero.data, axis, rank)
        description = _describe(dtype, known.limits if known else None)
        if known and same and description is not None:
            return _emit_block(ctx, known.data, scale.data, zero.data, axis, description)
        leading = max(scale.data.size, zero.data.size) == 1 or axis % max(rank, 1) == 0
        is_stored = data.data is not None or data.weight is not None
        if is_stored and leading and dtype in _STORED and is_spoken(scale.data):
            attributes = _spell_parameters(scale.data, zero.data)
            entry = Quantization(_FRAGMENT, attributes | (_describe(dtype) or {}))
            return ctx.stored(data, entry)
    if numpy_dtype(dtype).itemsize > 2 and (zero.data is None or zero.data.any()):
        raise Unsupported(f"scalars do not hold all differences of {dtype}")

    def dequantize(x: Expr, scale: Expr, zero: Expr) -> Expr:
        level = relay.cast(x, "float32")
        shifted = relay.subtract(level, relay.cast(_along(zero, x, axis), "float32"))
        return relay.multiply(shifted, _along(scale, x, axis))

    return ctx.spell(dequantize, data, scale, zero)


_FRAGMENT: Final = "zero_point_linear_quantize"
_STORED: Final = ("int8", "uint8", "int16", "uint16", "int32")


def _describe(dtype: str, limits: tuple[float, float] | None = None) -> dict[str, AnyValue] | None:
    """Return what a fragment says of codes; None where it cannot say their limits."""
    if dtype not in _STORED:
        return None
    info = np.iinfo(dtype)
    if limits not in (None, (info.min, info.max), (-info.max, info.max)):
        return None
    symmetric = info.min < 0 and limits == (-info.max, info.max)
    return {"bits": info.bits, "signed": info.min < 0, "symmetric": symmetric}


def _spell_parameters(scale: Array, zero: Array) -> dict[str, AnyValue]:
    """Return literals: numbers, or lists along the leading axis."""
    found = {"zero_point": zero, "scale": scale}
    return {
        name: each.item() if each.size == 1 else tuple(each.reshape(-1).tolist())
        for name, each in found.items()
    }


def _emit_block(
    ctx: Export, data: Value, scale: Array, zero: Array, axis: int, description: dict[str, AnyValue]
) -> Value:
    """Write a quantisation with its inverse."""
    rank = ctx.type(data).rank
    parameters = [
        ctx.const(each.reshape(() if each.size == 1 else [1] * (axis % rank) + [-1]), kind)
        for each, kind in ((zero, np.int32), (scale, np.float32))
    ]
    return ctx.emit(_FRAGMENT, data, *parameters, **description)


OPS.refuses_calls(
    "qnn.batch_matmul",
    "qnn.conv2d",
    "qnn.conv2d_transpose",
    "qnn.dense",
    "qnn.requantize",
    reason="NNEF has no arithmetic of integers, which a quantised layer is",
    hint=QUANTISED_AS_FLOATS.hint,
)
