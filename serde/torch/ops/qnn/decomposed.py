"""Quantising and restoring as graphs of PyTorch 2 export have it: ``quantized_decomposed``.

Data are multiplied by the inverse of the scale, which is exact for a power of two alone; so the
quantising operator of Relay, which divides, gets the product and a scale of one.
"""

from __future__ import annotations

from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core import Array, dataclass, dtype_name
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, call, limits
from serde.torch.ops.qnn.parameters import broadcast_shape, round_levels
from serde.torch.ops.table import OPS, Import, SymInt
from serde.torch.promotion import category

DType = np.dtype[AnyValue]

_NARROW = ("int8", "uint8", "int16", "uint16")
_STORED = ("quant_min", "quant_max", "dtype")
"""Attributes of restored data, which say again what these are."""


def _constant(ctx: Import, value: Expr | float | None) -> Array | None:
    """Return a scale or zero point that is known, else None."""
    if not isinstance(value, Expr):
        return None if value is None else np.array(value)
    return ctx.constant(value) if ctx.is_constant(value) else None


@dataclass(frozen=True, kw_only=True)
class Integers:
    """The integers that data become: their bounds, which may leave out some of their dtype's."""

    quant_min: SymInt
    quant_max: SymInt
    dtype: DType


def _quantize(
    ctx: Import, x: Expr, inverse: Expr, zero_point: Expr | int, integers: Integers, *, late: bool
) -> Expr:
    """Return ``clip(round(x * inverse) + zero_point)``, or the sum rounded unless `late`."""
    name = dtype_name(integers.dtype)
    if category(name) != category("int8"):
        raise Unsupported(f"numbers quantised as {name}")
    low, high = ctx.fixed(integers.quant_min), ctx.fixed(integers.quant_max)
    level = relay.multiply(ctx.cast(x, ctx.dtype(inverse)), inverse)
    kind = ctx.dtype(level)
    known = _constant(ctx, zero_point)
    if late and kind == "float32" and name in _NARROW and known is not None and known.size == 1:
        found = round_levels(level, name, known.reshape(()))
        inside = low <= int(limits(name).min) and int(limits(name).max) <= high
        return found if inside else relay.clip(found, low, high)
    offset = ctx.scalar(zero_point, kind)
    if late:
        level = relay.add(call("serde.round_even", level), offset)
    else:
        level = call("serde.round_even", relay.add(level, offset))
    return relay.cast(relay.clip(level, float(low), float(high)), name)


def _inverse(ctx: Import, scale: Expr | float, shape: tuple[int, ...] = ()) -> Expr:
    """Return one over a scale: of a number in float32, of a tensor in its own dtype."""
    if not isinstance(scale, Expr):
        return ctx.scalar(1.0 / scale, "float32")
    known = _constant(ctx, scale)
    if known is not None:
        return Constant(np.asarray(known.dtype.type(1) / known).reshape(shape))
    one = ctx.scalar(1.0, ctx.dtype(scale))
    return relay.reshape(relay.divide(one, scale), shape)


def _scalar(ctx: Import, value: float | Expr, what: str) -> float | Expr:
    """Return a number, which may be told as a tensor: one of no axes where it is computed."""
    number = ctx.as_number(value) if isinstance(value, Expr) else value
    if isinstance(number, complex):
        raise Unsupported(f"a {what} that is complex")
    return relay.reshape(number, ()) if isinstance(number, Expr) else number


@OPS.imports("quantized_decomposed::quantize_per_tensor")
def import_quantize_per_tensor(
    ctx: Import, input: Expr, *, scale: float | Expr, zero_point: int | Expr, integers: Integers
) -> Expr:
    """A scale that is a tensor is used as a number, in float32."""
    number, point = _scalar(ctx, scale, "scale"), _scalar(ctx, zero_point, "zero point")
    if isinstance(number, Expr):
        wide = ctx.cast(number, "float64")
        inverse: Expr = relay.cast(relay.divide(ctx.scalar(1.0, "float64"), wide), "float32")
    else:
        inverse = _inverse(ctx, float(number))
    whole = point if isinstance(point, Expr) else int(point)
    return _quantize(ctx, input, inverse, whole, integers, late=True)


def _import_dequantize(
    ctx: Import,
    input: Expr,
    *,
    scale: float | Expr,
    zero_point: int | Expr | None = None,
    axis: int | None,
    out_dtype: DType | None = None,
) -> Expr:
    """``y = (x - zero_point) * scale`` by numbers or tensors of one, with an axis by vectors."""
    factor, zero = _constant(ctx, scale), _constant(ctx, 0 if zero_point is None else zero_point)
    dtype = ctx.dtype(input)
    own = None if axis is None else ctx.axis(input, axis)
    if factor is None or zero is None or (dtype not in _NARROW and zero.any()):
        shape = broadcast_shape(ctx, input, own)
        point = None if zero_point is None else relay.reshape(ctx.number(zero_point), shape)
        factors = relay.reshape(ctx.number(scale), shape)
        return _restore_plainly(ctx, input, factors, point, "float32", out_dtype)
    shape = () if own is None else factor.shape
    points = allocation.broadcast_to(zero, factor.shape).astype(dtype).reshape(shape)
    found = call(
        "serde.dequantize_linear",
        input,
        Constant(factor.astype(np.float32).reshape(shape)),
        Constant(points) if dtype in _NARROW else None,
        axis=own or 0,
    )
    return ctx.cast(found, "float32" if out_dtype is None else dtype_name(out_dtype))


def _restore_plainly(
    ctx: Import, x: Expr, scale: Expr, zero_point: Expr | None, kind: str, wanted: DType | None
) -> Expr:
    """Return the same with parameters that broadcast and may be computed, computed in a dtype."""
    found = relay.cast(x, kind)
    if zero_point is not None:
        found = relay.subtract(found, ctx.cast(zero_point, kind))
    product = relay.multiply(found, ctx.cast(scale, kind))
    return ctx.cast(product, kind if wanted is None else dtype_name(wanted))


OPS.imports("quantized_decomposed::dequantize_per_tensor", ignored=_STORED)(
    partial(_import_dequantize, axis=None)
)
OPS.imports(
    "quantized_decomposed::dequantize_per_channel",
    ignored=_STORED,
    renamed={"scales": "scale", "zero_points": "zero_point"},
)(_import_dequantize)


@OPS.imports("quantized_decomposed::quantize_per_channel")
def import_quantize_per_channel(
    ctx: Import, input: Expr, scales: Expr, zero_points: Expr, *, axis: int, integers: Integers
) -> Expr:
    shape = broadcast_shape(ctx, input, ctx.axis(input, axis))
    point = relay.reshape(zero_points, shape)
    return _quantize(ctx, input, _inverse(ctx, scales, shape), point, integers, late=True)


@OPS.imports("quantized_decomposed::quantize_per_token")
def import_quantize_per_token(
    ctx: Import, input: Expr, scales: Expr, zero_points: Expr, *, integers: Integers
) -> Expr:
    """Parameters have a last axis of length 1; the zero point is added before rounding."""
    inverse = relay.divide(ctx.scalar(1.0, ctx.dtype(scales)), scales)
    return _quantize(ctx, input, inverse, zero_points, integers, late=False)


@OPS.imports("quantized_decomposed::dequantize_per_token", ignored=_STORED)
def import_dequantize_per_token(
    ctx: Import, input: Expr, scales: Expr, zero_points: Expr, *, output_dtype: DType
) -> Expr:
    return _restore_plainly(ctx, input, scales, zero_points, ctx.dtype(scales), output_dtype)


@OPS.imports("quantized_decomposed::choose_qparams_per_token", ignored=("dtype",))
def import_choose_per_token(ctx: Import, input: Expr) -> tuple[Expr, Expr]:
    wide = ctx.cast(input, "float32") if ctx.dtype(input) == "float16" else input
    most = relay.max(relay.abs(wide), axis=-1, keepdims=True)
    dtype = ctx.dtype(most)
    least = relay.maximum(most, ctx.scalar(1e-5, dtype))
    scale = relay.divide(least, ctx.scalar(127, dtype))
    return scale, relay.zeros_like(scale)


@OPS.imports(
    "quantized_decomposed::choose_qparams_per_token_asymmetric",
    "quantized_decomposed::_choose_qparams_per_token_asymmetric_impl",
    ignored=("dtype",),
)
def import_choose_per_token_asymmetric(ctx: Import, input: Expr) -> tuple[Expr, Expr]:
    dtype = ctx.dtype(input)
    zero, low, high = (ctx.scalar(each, dtype) for each in (0, -128, 127))
    least = relay.minimum(relay.min(input, axis=-1, keepdims=True), zero)
    most = relay.maximum(relay.max(input, axis=-1, keepdims=True), zero)
    scale: Expr = relay.divide(relay.subtract(most, least), ctx.scalar(255, dtype))
    scale = relay.maximum(scale, ctx.scalar(float(np.finfo(np.float32).eps), dtype))
    below, above = relay.divide(least, scale), relay.divide(most, scale)
    total = relay.add(relay.add(low, below), relay.add(high, above))
    nearer = relay.greater(total, zero)
    point = relay.where(nearer, relay.subtract(low, below), relay.subtract(high, above))
    whole = call("serde.round_even", relay.clip(point, -128.0, 127.0))
    return relay.cast(scale, "float64"), relay.cast(whole, "int64")


def _choose(
    ctx: Import, x: Expr, bounds: tuple[int, int], eps: float, symmetric_zero: int | None
) -> tuple[Expr, Expr]:
    """Return scale and zero point of one element each, from least and greatest element."""
    dtype = ctx.dtype(x)
    zero = ctx.scalar(0, dtype)
    least = relay.minimum(relay.min(x), zero)
    most = relay.maximum(relay.max(x), zero)
    tiny = ctx.scalar(eps, "float32")
    steps = bounds[1] - bounds[0]
    if symmetric_zero is not None:
        most = relay.maximum(relay.negative(least), most)
        scale = relay.divide(most, ctx.scalar(steps / 2, dtype))
        scale = relay.maximum(*ctx.promote(relay.reshape(scale, (1,)), tiny))
        whole: Expr = relay.const([symmetric_zero], "int64")
        return relay.cast(scale, "float64"), whole
    scale = relay.divide(relay.subtract(most, least), ctx.scalar(steps, dtype))
    scale = relay.maximum(*ctx.promote(relay.reshape(scale, (1,)), tiny))
    point = call("serde.round_even", relay.divide(*ctx.promote(least, scale)))
    whole = relay.subtract(relay.const([bounds[0]], "int64"), relay.cast(point, "int64"))
    return relay.cast(scale, "float64"), relay.clip(whole, bounds[0], bounds[1])


@OPS.imports("quantized_decomposed::choose_qparams", ignored=("dtype",))
def import_choose_qparams(
    ctx: Import, input: Expr, *, quant_min: int, quant_max: int, eps: float
) -> tuple[Expr, Expr]:
    return _choose(ctx, input, (quant_min, quant_max), eps, None)


@OPS.imports("quantized_decomposed::choose_qparams_symmetric")
def import_choose_qparams_symmetric(
    ctx: Import, input: Expr, *, quant_min: int, quant_max: int, eps: float, dtype: DType
) -> tuple[Expr, Expr]:
    zero = 128 if dtype_name(dtype) == "uint8" else 0
    return _choose(ctx, input, (quant_min, quant_max), eps, zero)


@OPS.imports("quantized_decomposed::quantize_per_channel_group")
def import_quantize_per_group(
    ctx: Import,
    input: Expr,
    scales: Expr,
    zero_points: Expr,
    *,
    integers: Integers,
    group_size: int = 128,
) -> Expr:
    rows = _group(ctx, input, scales, group_size)
    columns = (relay.reshape(each, (-1, 1)) for each in (scales, zero_points))
    found = import_quantize_per_token(ctx, rows, *columns, integers=integers)
    return relay.reshape(found, ctx.static_shape(input))


@OPS.imports("quantized_decomposed::dequantize_per_channel_group", ignored=_STORED)
def import_dequantize_per_group(
    ctx: Import,
    input: Expr,
    scales: Expr,
    zero_points: Expr | None = None,
    *,
    group_size: int = 128,
    output_dtype: DType,
) -> Expr:
    rows = _group(ctx, input, scales, group_size)
    point = None if zero_points is None else relay.reshape(zero_points, (-1, 1))
    factor, kind = relay.reshape(scales, (-1, 1)), ctx.dtype(scales)
    found = _restore_plainly(ctx, rows, factor, point, kind, output_dtype)
    return relay.reshape(found, ctx.static_shape(input))


def _group(ctx: Import, x: Expr, scales: Expr, size: int) -> Expr:
    """Return a matrix with a group in each row."""
    ctx.require_rank(x, 2, 2)
    ctx.require_rank(scales, 1)
    _, width = ctx.static_shape(x)
    if size > width and ctx.type(scales).shape[-1] == 1:
        size = width
    return relay.reshape(x, (-1, size))


@OPS.imports("quantized_decomposed::convert_element_type")
def import_convert_element_type(ctx: Import, input: Expr, *, dtype: DType) -> Expr:
    return ctx.cast(input, dtype_name(dtype))
