"""Weights that a program keeps compressed: expressions over them, so that they stay where they are.

Of two kinds there are two forms: before iOS18 indices and masks are packed into bytes, which are
a weight of one axis; from then on they are tensors of elements narrower than a byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.coreml.context import ImportContext as Ctx
from serde.coreml.ops.table import OPS
from serde.errors import Unsupported
from serde.relay.dims import Dim
from serde.relay.expansion.tensors import along, converted
from serde.relay.expr import Expr
from serde.relay.shapes import is_float, normalize_axis
from serde.weights import numpy_dtype


@OPS.imports("constexpr_cast", since=(16, 18))
def import_constexpr_cast(
    ctx: Ctx, source_val: Expr, *, output_dtype: Literal["fp16", "fp32"]
) -> Expr:
    return relay.cast(source_val, {"fp16": "float16", "fp32": "float32"}[output_dtype])


@OPS.imports("constexpr_affine_dequantize", since=16)
def import_constexpr_affine_dequantize(
    ctx: Ctx, quantized_data: Expr, zero_point: Expr, scale: Expr, *, axis: int
) -> Expr:
    """Scale and zero point are each one number, or one for each entry of an axis."""
    return dequantized(ctx, quantized_data, scale, zero_point, axis)


def dequantized(ctx: Ctx, data: Expr, scale: Expr, zero: Expr | None, axis: int) -> Expr:
    """Return numbers less the zero point, times the scale, in the dtype of the scale."""
    type_, factor = ctx.type(data), ctx.type(scale)
    offset = None if zero is None else ctx.type(zero)
    like_factor = offset is None or (offset.dtype, offset.rank) == (type_.dtype, factor.rank)
    if like_factor and not is_float(type_.dtype):
        return relay.serde.dequantize_linear(data, scale, zero, axis=axis)
    axis = normalize_axis(axis, type_.rank)
    result = converted(data, factor.dtype)
    if zero is not None and offset is not None:
        lower = converted(zero, factor.dtype)
        result = relay.subtract(result, along(lower, type_.rank, axis) if offset.rank else lower)
    return relay.multiply(result, along(scale, type_.rank, axis) if factor.rank else scale)


def _lengths(ctx: Ctx, shape: Expr) -> tuple[int, ...]:
    return tuple(int(length) for length in ctx.constant(shape).reshape(-1))


@OPS.imports("constexpr_lut_to_dense", since=16)
def import_constexpr_lut_to_dense_v16(ctx: Ctx, indices: Expr, lut: Expr, shape: Expr) -> Expr:
    """As many bits a place as the table has entries for."""
    (entries,) = ctx.static_shape(lut)
    bits = entries.bit_length() - 1
    if entries != 1 << bits or bits not in (1, 2, 3, 4, 6, 8):
        raise Unsupported(f"a table of {entries} entries")
    places = ctx.unpacked(indices, _lengths(ctx, shape), bits)
    return relay.take(lut, relay.cast(places, "int32"), axis=0, mode="clip")


@OPS.imports("constexpr_lut_to_dense", since=18)
def import_constexpr_lut_to_dense(
    ctx: Ctx, indices: Expr, lut: Expr, *, vector_axis: int | None = None
) -> Expr:
    return _looked_up(ctx, indices, lut, vector_axis)


def _looked_up(ctx: Ctx, indices: Expr, lut: Expr, vector_axis: int | None) -> Expr:
    """Return the entries of tables at indices; each table serves a block of the indices.

    An entry of several numbers lies along `vector_axis` in the result.
    """
    shape = ctx.static_shape(indices)
    *blocks, entries, width = ctx.static_shape(lut)
    if len(blocks) != len(shape) or any(n % b for n, b in zip(shape, blocks, strict=True)):
        raise Unsupported(f"tables {list(blocks)} of indices {list(shape)}")
    places = relay.cast(indices, "int32")
    first = entries
    for axis in reversed(range(len(shape))):
        if blocks[axis] > 1:
            line = np.arange(shape[axis]) // (shape[axis] // blocks[axis]) * first
            where = [-1 if each == axis else 1 for each in range(len(shape))]
            places = relay.add(places, relay.const(line.astype(np.int32).reshape(where)))
        first *= blocks[axis]
    if width == 1:
        return relay.take(relay.reshape(lut, [-1]), places, axis=0, mode="clip")
    if vector_axis is None:
        raise Unsupported(f"entries of {width} numbers without an axis to lie along")
    axis = normalize_axis(vector_axis, len(shape))
    found = relay.take(relay.reshape(lut, [-1, width]), places, axis=0, mode="clip")
    order = [*range(axis + 1), len(shape), *range(axis + 1, len(shape))]
    longer = [n * width if each == axis else n for each, n in enumerate(shape)]
    return relay.reshape(relay.transpose(found, order), longer)


@OPS.imports("constexpr_sparse_to_dense", since=16)
def import_constexpr_sparse_to_dense_v16(
    ctx: Ctx, nonzero_data: Expr, mask: Expr, shape: Expr
) -> Expr:
    """One bit a place."""
    return _dense(ctx, nonzero_data, ctx.unpacked(mask, _lengths(ctx, shape), 1))


@OPS.imports("constexpr_sparse_to_dense", since=18)
def import_constexpr_sparse_to_dense(ctx: Ctx, nonzero_data: Expr, mask: Expr) -> Expr:
    return _dense(ctx, nonzero_data, mask)


def _dense(ctx: Ctx, values: Expr, mask: Expr) -> Expr:
    """Return values in order at the places that a mask marks, zeros elsewhere."""
    type_, shape = ctx.type(values), ctx.type(mask).shape
    zero = relay.Constant(np.zeros((), numpy_dtype(type_.dtype)))
    if type_.size == 0:
        return relay.full(zero, shape, type_.dtype)
    marks = relay.reshape(relay.cast(mask, "int32"), [-1])
    before = relay.subtract(relay.cumsum(marks, axis=0), marks)
    found = relay.take(values, before, axis=0, mode="clip")
    one = relay.const(np.array(1, np.int32))
    return relay.reshape(relay.where(relay.equal(marks, one), found, zero), shape)


def _marked(ctx: Ctx, data: Expr, mask: Expr, count: Dim) -> Expr:
    """Return the elements of a tensor at the places that a mask marks."""
    if not isinstance(count, int):
        raise Unsupported(f"{count} marked elements")
    marks = relay.reshape(relay.cast(mask, "int32"), [-1])
    ends = relay.cumsum(marks, axis=0)
    numbers = relay.const(np.arange(1, count + 1, dtype=np.int32))
    places = relay.searchsorted(ends, numbers, right=False, dtype="int32")
    return relay.take(relay.reshape(data, [-1]), places, axis=0, mode="clip")


@OPS.imports("constexpr_lut_to_sparse", since=18)
def import_constexpr_lut_to_sparse(
    ctx: Ctx,
    indices_mask: Expr,
    indices_nonzero_data: Expr,
    lut: Expr,
    *,
    vector_axis: int | None = None,
) -> list[Expr]:
    """Which table a place has follows from where it is, so places are looked up densely."""
    width = ctx.static_shape(lut)[-1]
    (count,) = ctx.static_shape(indices_nonzero_data)
    dense = _looked_up(ctx, _dense(ctx, indices_nonzero_data, indices_mask), lut, vector_axis)
    mask = indices_mask
    if width > 1 and vector_axis is not None:
        mask = relay.repeat(mask, width, axis=vector_axis)
    return [mask, _marked(ctx, dense, mask, count * width)]


@OPS.imports("constexpr_blockwise_shift_scale", since=18)
def import_constexpr_blockwise_shift_scale(
    ctx: Ctx, data: Expr, scale: Expr, offset: Expr | None = None
) -> Expr:
    return _shifted_scaled(ctx, data, scale, offset)


def _shifted_scaled(ctx: Ctx, data: Expr, scale: Expr, offset: Expr | None) -> Expr:
    """Return a tensor less offsets, times scales, each of which serves a block of it."""
    type_, factor = ctx.type(data), ctx.type(scale)
    shape, blocks = ctx.static_shape(data), ctx.static_shape(scale)
    if len(shape) != len(blocks) or any(n % b for n, b in zip(shape, blocks, strict=True)):
        raise Unsupported(f"scales {list(blocks)} of {list(shape)}")
    whole = offset is None or ctx.type(offset).dtype == type_.dtype
    if whole and not is_float(type_.dtype):
        found = _granularity(shape, blocks)
        if found is not None:
            axis, size, rank = found
            vectors = [scale, *([] if offset is None else [offset])]
            if rank < len(shape):
                wanted = [-1] * rank
                vectors = [relay.reshape(each, wanted) for each in vectors]
            zero = vectors[1] if offset is not None else None
            return relay.serde.dequantize_linear(data, vectors[0], zero, axis=axis, block_size=size)
    result = converted(data, factor.dtype)
    if offset is not None:
        lower = converted(offset, factor.dtype)
        result = relay.subtract(result, _repeated(lower, shape, blocks))
    return relay.multiply(result, _repeated(scale, shape, blocks))


def _granularity(shape: Sequence[int], blocks: Sequence[int]) -> tuple[int, int, int] | None:
    """Return axis, length of blocks and axes of a scale as ONNX has it; None if it has none."""
    if all(count == 1 for count in blocks):
        return 0, 0, 0
    wide = [axis for axis, count in enumerate(blocks) if count > 1]
    if len(wide) == 1 and blocks[wide[0]] == shape[wide[0]]:
        return wide[0], 0, 1
    short = [axis for axis, (n, b) in enumerate(zip(shape, blocks, strict=True)) if n != b]
    if len(short) == 1:
        return short[0], shape[short[0]] // blocks[short[0]], len(shape)
    return None


def _repeated(x: Expr, shape: Sequence[int], blocks: Sequence[int]) -> Expr:
    """Return a tensor with each entry as often as it serves a block, unless it broadcasts."""
    for axis, (length, count) in enumerate(zip(shape, blocks, strict=True)):
        if 1 < count < length:
            x = relay.repeat(x, length // count, axis=axis)
    return x


@OPS.imports("constexpr_sparse_blockwise_shift_scale", since=18)
def import_constexpr_sparse_blockwise_shift_scale(
    ctx: Ctx, data_mask: Expr, nonzero_data: Expr, scale: Expr, offset: Expr | None = None
) -> list[Expr]:
    """Which scale a place has follows from where it is, so the tensor is made dense between."""
    (count,) = ctx.static_shape(nonzero_data)
    dense = _dense(ctx, nonzero_data, data_mask)
    scaled = _shifted_scaled(ctx, dense, scale, offset)
    return [data_mask, _marked(ctx, scaled, data_mask, count)]
