"""Weights that a program keeps compressed: operators on them, so that they stay where they are.

Of two kinds there are two forms: before iOS18 indices and masks are packed into bytes, which are
a weight of one axis; from then on they are tensors of elements narrower than a byte, and what one
operator gives may be what another takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import serde.relay as relay
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.coreml.value import Held
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, TensorType, Tuple, as_dtype, get, is_float, normalize_axis
from serde.relay.ir.visit import post_order
from serde.relay.transform.purity import unpacks
from serde.walk.expansion.tensors import along
from serde.walk.pairs import reads


@OPS.imports("constexpr_cast", since=(16, 18))
def import_constexpr_cast(
    ctx: Import, source_val: Expr, *, output_dtype: Literal["fp16", "fp32"]
) -> Expr:
    return relay.cast(source_val, {"fp16": "float16", "fp32": "float32"}[output_dtype])


@OPS.imports("constexpr_affine_dequantize", since=16)
def import_constexpr_affine_dequantize(
    ctx: Import, quantized_data: Expr, zero_point: Expr, scale: Expr, *, axis: int
) -> Expr:
    """Scale and zero point are each one number, or one for each entry of an axis."""
    return dequantize(ctx, quantized_data, scale, zero_point, axis)


def dequantize(ctx: Import, data: Expr, scale: Expr, zero: Expr | None, axis: int) -> Expr:
    """Return numbers less the zero point, times the scale, in the dtype of the scale."""
    type_, factor = ctx.type(data), ctx.type(scale)
    offset = None if zero is None else ctx.type(zero)
    like_factor = offset is None or (offset.dtype, offset.rank) == (type_.dtype, factor.rank)
    if like_factor and not is_float(type_.dtype):
        return relay.serde.dequantize_linear(data, scale, zero, axis=axis)
    axis = normalize_axis(axis, type_.rank)
    result = as_dtype(data, factor.dtype)
    if zero is not None and offset is not None:
        lower = as_dtype(zero, factor.dtype)
        result = relay.subtract(result, along(lower, type_.rank, axis) if offset.rank else lower)
    return relay.multiply(result, along(scale, type_.rank, axis) if factor.rank else scale)


def _lengths(ctx: Import, shape: Expr) -> tuple[int, ...]:
    return tuple(int(length) for length in ctx.constant(shape).reshape(-1))


@OPS.imports("constexpr_lut_to_dense", since=16)
def import_constexpr_lut_to_dense_v16(ctx: Import, indices: Expr, lut: Expr, shape: Expr) -> Expr:
    """As many bits a place as the table has entries for."""
    (entries,) = ctx.static_shape(lut, 1)
    bits = entries.bit_length() - 1
    if entries != 1 << bits or bits not in (1, 2, 3, 4, 6, 8):
        raise Unsupported(f"a table of {entries} entries")
    lengths = _lengths(ctx, shape)
    places = ctx.unpacked(indices, lengths, bits)
    return relay.serde.lut_to_dense(places, relay.reshape(lut, [1] * len(lengths) + [-1, 1]))


OPS.pairs(
    reads(
        "constexpr_lut_to_dense", "serde.lut_to_dense", since=18, operands="indices lut",
        vector_axis=None,
    ),
    reads(
        "constexpr_sparse_to_dense", "serde.sparse_to_dense", since=18,
        operands="nonzero_data mask",
    ),
)  # fmt: skip


@OPS.imports("constexpr_sparse_to_dense", since=16)
def import_constexpr_sparse_to_dense_v16(
    ctx: Import, nonzero_data: Expr, mask: Expr, shape: Expr
) -> Expr:
    """One bit a place."""
    marks = ctx.unpacked(mask, _lengths(ctx, shape), 1)
    return relay.serde.sparse_to_dense(nonzero_data, marks)


@OPS.imports("constexpr_lut_to_sparse", since=18)
def import_constexpr_lut_to_sparse(
    ctx: Import,
    indices_mask: Expr,
    indices_nonzero_data: Expr,
    lut: Expr,
    *,
    vector_axis: int | None = None,
) -> list[Expr]:
    """An entry of several numbers takes as many places of the mask that comes out."""
    width = ctx.static_shape(lut)[-1]
    values = relay.serde.lut_to_sparse(
        indices_mask, indices_nonzero_data, lut, vector_axis=vector_axis
    )
    if width > 1 and vector_axis is not None:
        return [relay.repeat(indices_mask, width, axis=vector_axis), values]
    return [indices_mask, values]


@OPS.imports("constexpr_blockwise_shift_scale", since=18)
def import_constexpr_blockwise_shift_scale(
    ctx: Import, data: Expr, scale: Expr, offset: Expr | None = None
) -> Expr:
    """Blocks along one axis are ONNX's."""
    type_ = ctx.type(data)
    shape, blocks = ctx.static_shape(data), ctx.static_shape(scale)
    if len(shape) != len(blocks) or any(n % b for n, b in zip(shape, blocks, strict=True)):
        raise Unsupported(f"scales {list(blocks)} of {list(shape)}")
    found = _granularity(shape, blocks)
    alike = offset is None or ctx.type(offset).dtype == type_.dtype
    if found is None or not alike or is_float(type_.dtype):
        return relay.serde.dequantize_blocks(data, scale, offset)
    axis, size, rank = found
    vectors = [scale, *([] if offset is None else [offset])]
    if rank < len(shape):
        vectors = [relay.reshape(each, [-1] * rank) for each in vectors]
    zero = vectors[1] if offset is not None else None
    return relay.serde.dequantize_linear(data, vectors[0], zero, axis=axis, block_size=size)


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


@OPS.imports("constexpr_sparse_blockwise_shift_scale", since=18)
def import_constexpr_sparse_blockwise_shift_scale(
    ctx: Import, data_mask: Expr, nonzero_data: Expr, scale: Expr, offset: Expr | None = None
) -> list[Expr]:
    values = relay.serde.dequantize_sparse(data_mask, nonzero_data, scale, offset)
    return [data_mask, values]


_WIDTHS = {2: 1, 4: 2, 8: 3, 16: 4, 64: 6, 256: 8}
"""Bits of an index by the number of entries of its table."""

_CODES = ("int4", "int8", "uint4", "uint8")
_FLOATS = ("float16", "float32")


def _types(node: Call) -> list[TensorType]:
    """Return the types of the operands that are there, all of fixed shape; none if one is not."""
    types = [each.type for each in node.args if not isinstance(each, Tuple)]
    found = [each for each in types if isinstance(each, TensorType) and each.concrete_shape]
    return found if len(found) == len(types) else []


def _has_tables(node: Call) -> bool:
    """Whether indices are as narrow as the entries of their tables tell."""
    types = _types(node)
    return (
        bool(types)
        and types[-1].dtype in (*_CODES, *_FLOATS)
        and types[-1].shape[-2] in _WIDTHS
        and types[-2].dtype in ("uint2", "uint4", "uint8")
    )


def _has_one_table(node: Call) -> bool:
    """Whether there is one table of single numbers, at hand, for indices not of 3 bits."""
    types = _types(node)
    return (
        _has_tables(node)
        and not _is_unpacked(node.args[1])
        and types[1].size == types[1].shape[-2]
        and types[1].size != 8
        and types[1].dtype in _FLOATS
    )


def _is_unpacked(x: Expr) -> bool:
    """Whether a weight is made by such an operator, which before iOS18 none can take."""
    return any(unpacks(node) for node in post_order(x))


def _is_at_hand(node: Call) -> bool:
    return bool(_types(node)) and not any(map(_is_unpacked, node.args))


def _has_codes(node: Call) -> bool:
    """Whether scales are floats of integers of a program, with offsets that are such as well."""
    types = _types(node)
    given = types[1:] if node.op == get("serde.dequantize_sparse") else types
    if len(given) < 2 or given[0].dtype not in _CODES or given[1].dtype not in _FLOATS:
        return False
    return all(each.dtype in (given[0].dtype, given[1].dtype) for each in given[2:])


def _bits(ctx: Export, table: Value) -> int:
    return _WIDTHS[ctx.static_shape(table)[-2]]


def _vector_axis(ctx: Export, vector_axis: int | None) -> Value | None:
    return None if vector_axis is None else ctx.const(vector_axis, "int32")


@OPS.exports("serde.lut_to_dense", since=18, when=_has_tables)
def export_lut_to_dense(
    ctx: Export, indices: Value, table: Value, *, vector_axis: int | None
) -> Value:
    return ctx.constexpr(
        "constexpr_lut_to_dense",
        [(ctx.result_type(), None)],
        indices=Held(indices, _bits(ctx, table)),
        lut=Held(table),
        vector_axis=_as_held(_vector_axis(ctx, vector_axis)),
    )[0]


@OPS.exports("serde.lut_to_dense", since=16, when=_has_one_table)
def export_lut_to_dense_v16(
    ctx: Export, indices: Value, table: Value, *, vector_axis: int | None
) -> Value:
    return ctx.constexpr(
        "constexpr_lut_to_dense",
        [(ctx.result_type(), None)],
        indices=Held(indices, _bits(ctx, table), in_bytes=True),
        lut=Held(ctx.spell(lambda x: relay.reshape(x, [-1]), table)),
        shape=Held(ctx.const(ctx.static_shape(indices), "uint32")),
    )[0]


def _as_held(x: Value | None) -> Held | None:
    return None if x is None else Held(x)


@OPS.exports("serde.sparse_to_dense", since=18, when=lambda node: bool(_types(node)))
def export_sparse_to_dense(ctx: Export, values: Value, mask: Value) -> Value:
    return ctx.constexpr(
        "constexpr_sparse_to_dense",
        [(ctx.result_type(), None)],
        nonzero_data=Held(values),
        mask=Held(mask, 1),
    )[0]


@OPS.exports("serde.sparse_to_dense", since=16, when=_is_at_hand)
def export_sparse_to_dense_v16(ctx: Export, values: Value, mask: Value) -> Value:
    return ctx.constexpr(
        "constexpr_sparse_to_dense",
        [(ctx.result_type(), None)],
        nonzero_data=Held(values),
        mask=Held(mask, 1, in_bytes=True),
        shape=Held(ctx.const(ctx.static_shape(mask), "uint32")),
    )[0]


@OPS.exports("serde.lut_to_sparse", since=18, when=_has_tables)
def export_lut_to_sparse(
    ctx: Export, mask: Value, indices: Value, table: Value, *, vector_axis: int | None
) -> Value:
    """The mask comes out, too, wider where entries are of several numbers."""
    shape, width = list(ctx.static_shape(mask)), ctx.static_shape(table)[-1]
    if vector_axis is not None:
        shape[vector_axis] *= width
    return ctx.constexpr(
        "constexpr_lut_to_sparse",
        [(TensorType(shape, "uint8"), 1), (ctx.result_type(), None)],
        indices_mask=Held(mask, 1),
        indices_nonzero_data=Held(indices, _bits(ctx, table)),
        lut=Held(table),
        vector_axis=_as_held(_vector_axis(ctx, vector_axis)),
    )[1]


@OPS.exports("serde.dequantize_blocks", since=18, when=_has_codes)
def export_dequantize_blocks(
    ctx: Export, data: Value, scale: Value, offset: Value | None = None
) -> Value:
    return ctx.constexpr(
        "constexpr_blockwise_shift_scale",
        [(ctx.result_type(), None)],
        data=Held(data),
        scale=Held(scale),
        offset=_as_held(offset),
    )[0]


@OPS.exports("serde.dequantize_sparse", since=18, when=_has_codes)
def export_dequantize_sparse(
    ctx: Export, mask: Value, values: Value, scale: Value, offset: Value | None = None
) -> Value:
    return ctx.constexpr(
        "constexpr_sparse_blockwise_shift_scale",
        [(TensorType(ctx.type(mask).shape, "uint8"), 1), (ctx.result_type(), None)],
        data_mask=Held(mask, 1),
        nonzero_data=Held(values),
        scale=Held(scale),
        offset=_as_held(offset),
    )[1]
