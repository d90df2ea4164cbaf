"""Linear quantisation: numbers as integers with a scale and a zero point."""

from __future__ import annotations

from typing import Any as AnyValue, Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.lossy import QUANTISED_AS_FLOATS
from serde.core.weights import dtype_name, numpy_dtype
from serde.coreml.mlprogram.operators import HALVES
from serde.coreml.mlprogram.ops.qnn.compressed import dequantize
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import ConverterBug, Unsupported
from serde.relay.ir import Call, Expr, TensorType, as_dtype, get, normalize_axis, tensor_type
from serde.walk.expansion.tensors import along
from serde.walk.takes import AXES, Takes, dtypes, like

_BYTES = ("int8", "uint8")
_NARROW = ("int4", "uint4")


@OPS.imports("dequantize", since=17)
def import_dequantize(
    ctx: Import, input: Expr, scale: Expr, zero_point: Expr | None = None, *, axis: int = 0
) -> Expr:
    return dequantize(ctx, input, scale, zero_point, axis)


@OPS.imports("quantize", since=17)
def import_quantize(
    ctx: Import,
    input: Expr,
    scale: Expr,
    zero_point: Expr | None = None,
    *,
    output_dtype: Literal["int8", "uint8"],
    axis: int = 0,
) -> Expr:
    return relay.serde.quantize_linear(
        input, scale, zero_point, axis=axis, out_dtype=np.dtype(output_dtype)
    )


_OPEN = Takes(data=dtypes(*_BYTES, *_NARROW), scale=HALVES, out_dtype=like("scale"))
_QUANTIZED = Takes(
    data=(HALVES, AXES),
    scale=like("data"),
    block_size=0,
    out_dtype=dtypes(*_BYTES),
    saturate=True,
    precision=like("data"),
)
"""Floats become bytes, in their own precision."""


@OPS.exports("serde.quantize_linear", since=17, takes=_QUANTIZED)
def export_quantize_linear(
    ctx: Export,
    data: Value,
    scale: Value,
    zero_point: Value | None = None,
    *,
    axis: int,
    out_dtype: np.dtype[AnyValue],
) -> Value:
    """One scale for all has no axis and is a scalar in MIL."""
    given = [scale, *([] if zero_point is None else [zero_point])]
    if not all(each.is_constant for each in given):
        raise Unsupported("a scale that is computed")
    single = ctx.type(scale).size == 1
    plain = [_scalar(ctx, each) if single else each for each in given]
    return ctx.emit(
        "quantize",
        input=data,
        scale=plain[0],
        zero_point=plain[1] if zero_point is not None else None,
        axis=None if single else axis,
        output_dtype=dtype_name(out_dtype),
    )


def _scalar(ctx: Export, x: Value) -> Value:
    return x if not ctx.type(x).rank else ctx.spell(lambda v: relay.reshape(v, ()), x)


def stays_quantized(node: Call, version: int) -> bool:
    """Whether a weight that a call dequantises is written quantised for a version of iOS."""
    data = node.args[0].type
    if not isinstance(data, TensorType) or not data.rank or not _OPEN.holds(node):
        return False
    whole = data.dtype not in _NARROW and not node.attrs["block_size"]
    return version >= 18 or (version >= 16 and whole)


@OPS.exports("serde.dequantize_linear", takes=_OPEN)
def export_dequantize_linear(
    ctx: Export, data: Value, scale: Value, zero_point: Value | None = None,
    *, axis: int, block_size: int, out_dtype: AnyValue,
) -> Value:  # fmt: skip
    """A weight stays quantised from iOS16 on, in blocks and of 4 bits from iOS18 on."""
    type_ = ctx.type(data)
    given = [data, scale, *([] if zero_point is None else [zero_point])]
    known = all(each.is_known for each in given)
    narrow = type_.dtype in _NARROW
    if known and type_.rank and ctx.version >= 18:
        return _blockwise(ctx, data, scale, zero_point, axis, block_size)
    if known and type_.rank and ctx.quantises and not narrow and not block_size:
        return _affine(ctx, data, scale, zero_point, axis)
    constant = all(each.is_known for each in given[1:])
    if ctx.version >= 17 and constant and not narrow and not block_size and type_.rank:
        single = ctx.type(scale).size == 1
        plain = [_scalar(ctx, each) if single else each for each in given[1:]]
        return ctx.emit(
            "dequantize",
            input=data,
            scale=plain[0],
            zero_point=plain[1] if zero_point is not None else None,
            axis=None if single else axis,
        )
    attrs = {"axis": axis, "block_size": block_size, "out_dtype": out_dtype}
    return ctx.spell(_expand_dequantize(zero_point is not None, attrs), *given)


def _expand_dequantize(shifted: bool, attrs: AnyValue) -> AnyValue:
    """Return what makes a dequantisation of other operators."""

    def build(data: Expr, scale: Expr, *zero: Expr) -> Expr:
        made = get("serde.dequantize_linear").decompose
        if made is None:
            raise ConverterBug("serde.dequantize_linear has no decomposition")
        return made(data, scale, zero[0] if shifted else None, **attrs)

    return build


def _affine(ctx: Export, data: Value, scale: Value, zero: Value | None, axis: int) -> Value:
    """Write a weight with scales of its whole or of the entries of an axis."""
    single = ctx.type(scale).size == 1
    if zero is None:
        shape = () if single else ctx.static_shape(scale)
        zero = ctx.const(allocation.zeros(shape, numpy_dtype(ctx.type(data).dtype)))
    plain = [_scalar(ctx, each) if single else each for each in (scale, zero)]
    return ctx.compressed(
        "constexpr_affine_dequantize",
        quantized_data=data,
        zero_point=plain[1],
        scale=plain[0],
        axis=ctx.const(axis % ctx.type(data).rank, "int32"),
    )


def _blockwise(
    ctx: Export, data: Value, scale: Value, zero: Value | None, axis: int, block_size: int
) -> Value:
    """Write a weight with scales that have as many axes as itself."""
    type_ = ctx.type(data)
    place = axis % type_.rank
    (length,) = ctx.static_lengths(data, [place])
    if block_size and length % block_size:
        raise Unsupported(f"blocks of {block_size} that do not divide {length}")

    def spread(x: Expr) -> Expr:
        if block_size:
            return x
        shape = [1] * type_.rank
        if ctx.type(scale).size != 1:
            shape[place] = -1
        return relay.reshape(x, shape)

    return ctx.compressed(
        "constexpr_blockwise_shift_scale",
        data=data,
        scale=ctx.spell(spread, scale),
        offset=None if zero is None else ctx.spell(spread, zero),
    )


def _broadcast_parameter(x: Expr, rank: int, axis: int) -> Expr:
    """Return a scale or zero point that broadcasts with data of some rank."""
    type_ = tensor_type(x)
    single = not type_.rank or type_.size == 1
    return relay.reshape(x, ()) if single else along(x, rank, normalize_axis(axis, rank))


@OPS.expands("qnn.quantize")
def expand_qnn_quantize(
    data: Expr, output_scale: Expr, output_zero_point: Expr, *, out_dtype: AnyValue, axis: int
) -> Expr:
    """Halves are rounded away from zero, where MIL's own operator has them go to even."""
    rank, dtype = tensor_type(data).rank, dtype_name(out_dtype)
    limits = np.iinfo(numpy_dtype(dtype))
    if limits.bits > 16:
        raise Unsupported(f"numbers quantised to {dtype}, which float32 does not hold")
    zero = as_dtype(_broadcast_parameter(output_zero_point, rank, axis), "float32")
    scale = as_dtype(_broadcast_parameter(output_scale, rank, axis), "float32")
    steps = relay.round(relay.divide(as_dtype(data, "float32"), scale))
    result = relay.clip(relay.add(steps, zero), float(limits.min), float(limits.max))
    return relay.cast(result, dtype)


OPS.refuses_calls(
    "fixed_point_multiply", "fixed_point_multiply_per_axis", "qnn.batch_matmul", "qnn.conv2d",
    "qnn.conv2d_transpose", "qnn.dense", "qnn.requantize",
    reason="sums and rescaled integers take 64 bits, which Core ML has not",
    hint=QUANTISED_AS_FLOATS.hint,
)  # fmt: skip
