"""Weights that are kept compressed: indices into tables, zeros left out, scales of blocks.

A block is part of a tensor that one table or scale serves: of `n` entries along an axis of tables,
each serves an `n`-th of that axis. A mask holds 1 where a value is kept and 0 elsewhere; values
stand in row-major order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Decompresses, Dim, Expr, Values, const, normalize_axis, tensor_type
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.traits import Quantized
from serde.relay.ir.types import TensorType
from serde.relay.op.index.gather import require_integers


def _shape_of(x: Expr) -> tuple[int, ...]:
    shape = tensor_type(x).concrete_shape
    if shape is None:
        raise TypeInferenceError(f"{x!r} needs a fixed shape to be spelled out")
    return shape


def _require_blocks(shape: Sequence[Dim], blocks: Sequence[Dim], what: str) -> None:
    if len(shape) != len(blocks):
        raise TypeInferenceError(f"{what} {list(blocks)} of {list(shape)}: expected as many axes")
    for length, count in zip(shape, blocks, strict=True):
        if isinstance(length, int) and isinstance(count, int) and (not count or length % count):
            raise TypeInferenceError(f"{what} {list(blocks)} do not divide {list(shape)}")


def _wide_shape(shape: Sequence[Dim], width: Dim, vector_axis: int | None) -> tuple[Dim, ...]:
    """Return a shape whose elements became vectors along an axis."""
    if vector_axis is None:
        if isinstance(width, int) and width != 1:
            raise TypeInferenceError(f"entries of {width} numbers without an axis to lie along")
        return tuple(shape)
    axis = normalize_axis(vector_axis, len(shape))
    return tuple(n * width if each == axis else n for each, n in enumerate(shape))


def _require_lookup(
    shape: Sequence[Dim], table: TensorType, vector_axis: int | None
) -> tuple[Dim, ...]:
    if table.rank < 2:
        raise TypeInferenceError(f"expected tables of entries of numbers, found {table!r}")
    _require_blocks(shape, table.shape[:-2], "tables")
    return _wide_shape(shape, table.shape[-1], vector_axis)


def _lookup_type(indices: TensorType, table: TensorType, *, vector_axis: int | None) -> TensorType:
    require_integers(indices)
    return TensorType(_require_lookup(indices.shape, table, vector_axis), table.dtype)


def _spell_lookup(indices: Expr, table: Expr, *, vector_axis: int | None) -> Expr:
    shape = _shape_of(indices)
    *blocks, entries, width = _shape_of(table)
    places = call("cast", indices, dtype="int32")
    first = entries
    for axis in reversed(range(len(shape))):
        if blocks[axis] > 1:
            line = np.arange(shape[axis]) // (shape[axis] // blocks[axis]) * first
            where = [-1 if each == axis else 1 for each in range(len(shape))]
            places = call("add", places, const(line.astype(np.int32).reshape(where)))
        first *= blocks[axis]
    if width == 1:
        flat = call("reshape", table, newshape=(-1,))
        return call("take", flat, places, axis=0, mode="clip")
    axis = normalize_axis(vector_axis or 0, len(shape))
    rows = call("reshape", table, newshape=(-1, width))
    found = call("take", rows, places, axis=0, mode="clip")
    order = (*range(axis + 1), len(shape), *range(axis + 1, len(shape)))
    longer = tuple(n * width if each == axis else n for each, n in enumerate(shape))
    return call("reshape", call("transpose", found, axes=order), newshape=longer)


_PLACES = tensor((4, 6), "uint8", low=0, high=3)
_TABLE = np.array([-1.0, 0.5, 2.0, 8.0], np.float32)


@relay_op(
    "serde.lut_to_dense",
    traits=(Decompresses,),
    infer=_lookup_type,
    decompose=_spell_lookup,
    samples=[
        sample(_PLACES, _TABLE.reshape(1, 1, 4, 1)),
        sample(tensor((4, 6), "uint8", low=0, high=15), (2, 3, 16, 1)),
        sample(_PLACES, (1, 2, 4, 3), vector_axis=0),
        sample(_PLACES, tensor((2, 1, 4, 2), "float16"), vector_axis=-1),
    ],
)
def lut_to_dense(indices: Array, table: Array, *, vector_axis: int | None = None) -> Array:
    """Entries of tables at `indices`, each table for a block of them.

    Tables are (blocks..., entries, width); entries of several numbers lie along `vector_axis`.
    """
    *blocks, entries, width = table.shape
    grid = np.indices(indices.shape, sparse=True)
    whole = zip(grid, indices.shape, blocks, strict=True)
    block = tuple(line // (length // count) for line, length, count in whole)
    found = table[(*block, np.minimum(indices.astype(np.int64), entries - 1))]
    if width == 1:
        return np.ascontiguousarray(found[..., 0])
    axis = normalize_axis(vector_axis or 0, indices.ndim)
    shape = [n * width if each == axis else n for each, n in enumerate(indices.shape)]
    return np.moveaxis(found, -1, axis + 1).reshape(shape)


def _require_values(values: TensorType, mask: TensorType) -> None:
    require_integers(mask)
    if values.rank != 1:
        raise TypeInferenceError(f"expected values along one axis, found {values!r}")


def _scatter_type(values: TensorType, mask: TensorType) -> TensorType:
    _require_values(values, mask)
    return TensorType(mask.shape, values.dtype)


def _spell_scatter(values: Expr, mask: Expr) -> Expr:
    shape, dtype = _shape_of(mask), tensor_type(values).dtype
    zero = const(0, dtype)
    if _shape_of(values) == (0,):
        return call("full", zero, shape=shape)
    marks = call("reshape", call("cast", mask, dtype="int32"), newshape=(-1,))
    before = call("subtract", call("cumsum", marks, axis=0), marks)
    found = call("take", values, before, axis=0, mode="clip")
    chosen = call("where", call("equal", marks, const(1, "int32")), found, zero)
    return call("reshape", chosen, newshape=shape)


_MASK = np.array([[1, 0, 0, 1], [0, 1, 1, 0]], np.uint8)


@relay_op(
    "serde.sparse_to_dense",
    traits=(Values(0), Decompresses),
    infer=_scatter_type,
    decompose=_spell_scatter,
    samples=[sample((4,), _MASK), sample(tensor((4,), "int8", low=-9, high=9), _MASK)],
)
def sparse_to_dense(values: Array, mask: Array) -> Array:
    """`values` in order at the places that a mask marks, zeros elsewhere."""
    result = np.zeros(mask.shape, values.dtype)
    marks = mask == 1
    if np.count_nonzero(marks) != len(values):
        raise ValueError(f"{len(values)} values for {np.count_nonzero(marks)} marks")
    result[marks] = values
    return result


def _select_marked(data: Expr, mask: Expr, count: int) -> Expr:
    """Return the elements of a tensor at the places that a mask marks."""
    marks = call("reshape", call("cast", mask, dtype="int32"), newshape=(-1,))
    before = call("subtract", call("cumsum", marks, axis=0), marks)
    # What is not marked goes behind the end.
    places = call("where", call("equal", marks, const(1, "int32")), before, const(count, "int32"))
    room = call("full", const(0, tensor_type(data).dtype), shape=(count + 1,))
    flat = call("reshape", data, newshape=(-1,))
    found = call("scatter_elements", room, places, flat, axis=0, reduction="update")
    return call("strided_slice", found, begin=(0,), end=(count,), strides=(1,), axes=None)


def _sparse_lookup_type(
    mask: TensorType, indices: TensorType, table: TensorType, *, vector_axis: int | None
) -> TensorType:
    _require_values(indices, mask)
    _require_lookup(mask.shape, table, vector_axis)
    return TensorType((indices.shape[0] * table.shape[-1],), table.dtype)


def _wide_mask(mask: Expr, width: int, vector_axis: int | None) -> Expr:
    if width == 1 or vector_axis is None:
        return mask
    axis = normalize_axis(vector_axis, tensor_type(mask).rank)
    return call("repeat", mask, repeats=width, axis=axis)


def _spell_sparse_lookup(
    mask: Expr, indices: Expr, table: Expr, *, vector_axis: int | None
) -> Expr:
    (count,), width = _shape_of(indices), _shape_of(table)[-1]
    dense = _spell_lookup(_spell_scatter(indices, mask), table, vector_axis=vector_axis)
    return _select_marked(dense, _wide_mask(mask, width, vector_axis), count * width)


@relay_op(
    "serde.lut_to_sparse",
    traits=(Decompresses,),
    infer=_sparse_lookup_type,
    decompose=_spell_sparse_lookup,
    samples=[
        sample(_MASK, tensor((4,), "uint8", low=0, high=3), (2, 1, 4, 1)),
        sample(_MASK, tensor((4,), "uint8", low=0, high=3), (1, 2, 4, 3), vector_axis=1),
    ],
)
def lut_to_sparse(
    mask: Array, indices: Array, table: Array, *, vector_axis: int | None = None
) -> Array:
    """What :func:`lut_to_dense` gives at the places that a mask marks, whose indices are known."""
    dense = lut_to_dense(sparse_to_dense(indices, mask), table, vector_axis=vector_axis)
    width = table.shape[-1]
    wide = mask
    if width > 1 and vector_axis is not None:
        wide = np.repeat(mask, width, normalize_axis(vector_axis, mask.ndim))
    return dense[wide == 1]


def _blocks_type(data: TensorType, scale: TensorType, offset: TensorType | None) -> TensorType:
    for each in (scale, *([] if offset is None else [offset])):
        _require_blocks(data.shape, each.shape, "scales")
    return TensorType(data.shape, scale.dtype)


def _repeat_blocks(x: Expr, shape: Sequence[int]) -> Expr:
    """Return a tensor with each entry as often as it serves a block, unless it broadcasts."""
    for axis, (length, count) in enumerate(zip(shape, _shape_of(x), strict=True)):
        if 1 < count < length:
            x = call("repeat", x, repeats=length // count, axis=axis)
    return x


def _spell_blocks(data: Expr, scale: Expr, offset: Expr | None) -> Expr:
    shape, dtype = _shape_of(data), tensor_type(scale).dtype
    result = call("cast", data, dtype=dtype)
    if offset is not None:
        lower = call("cast", offset, dtype=dtype)
        result = call("subtract", result, _repeat_blocks(lower, shape))
    return call("multiply", result, _repeat_blocks(scale, shape))


def _along(x: Array, shape: Sequence[int]) -> Array:
    for axis, (length, count) in enumerate(zip(shape, x.shape, strict=True)):
        x = np.repeat(x, length // count, axis)
    return x


_CODES = tensor((4, 6), "int8", low=-9, high=9)


@relay_op(
    "serde.dequantize_blocks", traits=(Decompresses, Quantized),
    infer=_blocks_type,
    decompose=_spell_blocks,
    samples=[
        sample(_CODES, (2, 3)),
        sample(_CODES, tensor((2, 1), "float16"), tensor((2, 1), "int8", low=-9, high=9)),
        sample(tensor((4, 6), "uint8", low=0, high=15), (4, 2),
               tensor((4, 2), "uint8", low=0, high=15)),
    ],
)  # fmt: skip
def dequantize_blocks(data: Array, scale: Array, offset: Array | None = None) -> Array:
    """``y = scale * (data - offset)`` in the dtype of `scale`; each serves a block."""
    result = data.astype(scale.dtype)
    if offset is not None:
        result = result - _along(offset.astype(scale.dtype), data.shape)
    return np.asarray(result * _along(scale, data.shape))


def _sparse_blocks_type(
    mask: TensorType, values: TensorType, scale: TensorType, offset: TensorType | None
) -> TensorType:
    _require_values(values, mask)
    _blocks_type(TensorType(mask.shape, values.dtype), scale, offset)
    return TensorType(values.shape, scale.dtype)


def _spell_sparse_blocks(mask: Expr, values: Expr, scale: Expr, offset: Expr | None) -> Expr:
    (count,) = _shape_of(values)
    dense = _spell_blocks(_spell_scatter(values, mask), scale, offset)
    return _select_marked(dense, mask, count)


@relay_op(
    "serde.dequantize_sparse", traits=(Decompresses, Quantized),
    infer=_sparse_blocks_type,
    decompose=_spell_sparse_blocks,
    samples=[
        sample(_MASK, tensor((4,), "int8", low=-9, high=9), (2, 2)),
        sample(_MASK, tensor((4,), "uint8", low=0, high=9), (2, 1),
               tensor((2, 1), "uint8", low=0, high=9)),
    ],
)  # fmt: skip
def dequantize_sparse(
    mask: Array, values: Array, scale: Array, offset: Array | None = None
) -> Array:
    """What :func:`dequantize_blocks` gives at the places that a mask marks."""
    return dequantize_blocks(sparse_to_dense(values, mask), scale, offset)[mask == 1]
