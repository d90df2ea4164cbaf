"""Elements looked up by index, by conditions, and as one-hot vectors."""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.coreml.mlprogram.operators import (
    GATHER_DTYPES,
    NUMBERS_OR_BOOL,
    cast_to,
    compute_dtype,
    emit_in,
)
from serde.coreml.mlprogram.ops.shape.create import positions
from serde.coreml.mlprogram.ops.shape.reshape import expand_dims, reshape, squeeze, transpose
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Any, Dim, Expr, TensorType, call, is_float, normalize_axis, tensor_type
from serde.relay.lowering import index
from serde.relay.lowering.index import take_from_one_axis
from serde.walk import Takes, reads

WITHOUT_NEGATIVE = 17
"""Version of iOS from which on an index counts from the start alone."""


def _length_as(ctx: Export, length: Dim, indices: Value) -> Value:
    """Return a length as int32 that broadcasts against indices of any rank or of none."""
    if isinstance(length, int):
        return ctx.const(length, "int32")
    found = ctx.length(length)
    return found if ctx.type(indices).rank else squeeze(ctx, found, [0])


def from_start(ctx: Export, indices: Value, length: Dim) -> Value:
    """Return indices as int32, negative ones counted from the start."""
    count = _length_as(ctx, length, indices)
    return ctx.spell(index.from_start, cast_to(ctx, indices, "int32"), count)


@OPS.imports("gather", since=16)
def import_gather_v16(
    ctx: Import, x: Expr, indices: Expr, *, axis: int = 0, batch_dims: int = 0
) -> Expr:
    """Of indices that share axes with `x`, negative ones are taken from the start before."""
    if not batch_dims:
        return call("serde.take", x, indices, axis=axis)
    place = normalize_axis(axis, ctx.type(x).rank)
    indices = _wrap_negative(ctx, indices, ctx.type(x).shape[place])
    return relay.take(x, indices, axis=axis, batch_dims=batch_dims, mode="fast")


def _wrap_negative(ctx: Import, indices: Expr, length: Dim) -> Expr:
    """Return indices with negative ones counted from the start."""
    known = ctx.known(indices)
    if known is not None and (not known.size or known.min() >= 0):
        return indices
    if not isinstance(length, int):
        raise Unsupported("indices that may be negative along a length that is not fixed")
    dtype = ctx.type(indices).dtype
    zero, count = relay.const(0, dtype), relay.const(length, dtype)
    return relay.where(relay.less(indices, zero), relay.add(indices, count), indices)


@OPS.exports("take", takes=Takes(batch_dims=0))
@OPS.exports("take", since=16)
def export_take(
    ctx: Export,
    data: Value,
    indices: Value,
    *,
    batch_dims: int,
    axis: int | None,
    mode: Literal["clip", "wrap", "fast"],
) -> Value:
    type_ = ctx.type(data)
    x = reshape(ctx, data, [type_.size]) if axis is None else data
    place = 0 if axis is None else axis % type_.rank
    indices = cast_to(ctx, indices, "int32")
    if mode != "fast":
        count = _length_as(ctx, ctx.type(x).shape[place], indices)
        indices = ctx.spell(lambda i, n: index.within(i, n, mode), indices, count)
    shared = batch_dims + ctx.type(indices).rank if batch_dims < 0 else batch_dims
    if not shared:
        return _emit_gather(ctx, x, indices, place)
    return emit_in(
        ctx, GATHER_DTYPES, "gather", {"x": x}, indices=indices, axis=place, batch_dims=shared
    )


@OPS.expands("take")
def expand_take(data: Expr, indices: Expr, *, batch_dims: int, axis: int | None, mode: str) -> Expr:
    """Before iOS16, indices share no axes."""
    narrow = relay.cast(indices, "int32")
    return take_from_one_axis(data, narrow, batch_dims=batch_dims, axis=axis, mode=mode)


def _lengths(x: Expr) -> tuple[int, ...]:
    """Return a fixed shape."""
    shape = x.checked_type.concrete_shape if isinstance(x.checked_type, TensorType) else None
    if shape is None:
        hint = "use minimum_deployment_target='iOS16'"
        raise Unsupported(f"indices that share axes with {x.checked_type!r}", hint=hint)
    return shape


def _emit_gather(ctx: Export, x: Value, indices: Value, axis: int) -> Value:
    return emit_in(ctx, GATHER_DTYPES, "gather", {"x": x}, indices=indices, axis=axis)


@OPS.exports("serde.take")
def export_signed_take(ctx: Export, data: Value, indices: Value, *, axis: int) -> Value:
    """Before iOS17 a negative index counts from the end."""
    place = axis % ctx.type(data).rank
    if ctx.version < WITHOUT_NEGATIVE:
        return _emit_gather(ctx, data, cast_to(ctx, indices, "int32"), place)
    return _emit_gather(ctx, data, from_start(ctx, indices, ctx.type(data).shape[place]), place)


@OPS.exports("gather")
def export_gather(ctx: Export, data: Value, indices: Value, *, axis: int | None) -> Value:
    """MIL wants indices as long as the data along all other axes."""
    type_, wanted = ctx.type(data), ctx.type(indices).shape
    place = (axis or 0) % type_.rank
    if ctx.version < WITHOUT_NEGATIVE:
        indices = cast_to(ctx, indices, "int32")
    else:
        indices = from_start(ctx, indices, ctx.type(data).shape[place])
    dims = [*wanted[:place], type_.shape[place], *wanted[place + 1 :]]
    unknown = any(isinstance(dim, Any) for dim in (*wanted[:place], *wanted[place + 1 :]))
    if list(type_.shape) != dims or unknown:
        size = ctx.shape(dims)
        zeros = ctx.const(allocation.zeros(type_.rank), "int32")
        dtype = type_.dtype
        data = ctx.emit("slice_by_size", TensorType(dims, dtype), x=data, begin=zeros, size=size)
    return emit_in(
        ctx, GATHER_DTYPES, "gather_along_axis", {"x": data}, indices=indices, axis=place
    )


@OPS.imports("gather_nd", since=17, ignored=("validate_indices",))
def import_gather_nd(ctx: Import, x: Expr, indices: Expr, *, batch_dims: int = 0) -> Expr:
    """No index is negative, and none outside means anything."""
    rank = ctx.type(indices).rank
    moved = relay.transpose(indices, axes=[rank - 1, *range(rank - 1)]) if rank > 1 else indices
    return call("gather_nd", x, moved, batch_dims=batch_dims)


def _rows(ctx: Export, x: Value, rows: Value, batch_dims: int) -> Value:
    """Look up indices that lie along the last axis."""
    inputs = {"batch_dims": batch_dims} if batch_dims else {}
    return emit_in(ctx, GATHER_DTYPES, "gather_nd", {"x": x}, indices=rows, **inputs)


@OPS.expands("gather_nd")
def expand_gather_nd(data: Expr, indices: Expr, *, batch_dims: int, index_rank: int | None) -> Expr:
    """Before iOS16, the positions in the shared axes become part of each index."""
    grid = allocation.indices(_lengths(indices)[1:]).astype(np.int32)[:batch_dims]
    rows = relay.concatenate((relay.Constant(grid), relay.cast(indices, "int32")), axis=0)
    return call("gather_nd", data, rows, batch_dims=0)


@OPS.expands("serde.gather_nd")
def expand_signed_gather_nd(data: Expr, indices: Expr, *, batch_dims: int) -> Expr:
    """Before iOS16, the positions in the shared axes become part of each index."""
    grid = allocation.indices(_lengths(indices)[:-1]).astype(np.int32)[:batch_dims]
    front = relay.Constant(np.moveaxis(grid, 0, -1))
    rows = relay.concatenate((front, relay.cast(indices, "int32")), axis=-1)
    return call("serde.gather_nd", data, rows, batch_dims=0)


@OPS.exports("gather_nd", takes=Takes(batch_dims=0), ignored=("index_rank",))
@OPS.exports("gather_nd", since=16, ignored=("index_rank",))
def export_gather_nd(ctx: Export, data: Value, indices: Value, *, batch_dims: int) -> Value:
    """Relay keeps the tuple of an index in the first axis, MIL in the last."""
    rank = ctx.type(indices).rank
    rows = transpose(ctx, cast_to(ctx, indices, "int32"), [*range(1, rank), 0])
    if rank > 1:
        return _rows(ctx, data, rows, batch_dims)
    return _single(ctx, data, rows)


def _single(ctx: Export, data: Value, row: Value) -> Value:
    """Look one index up: MIL has none without an axis in front."""
    result = ctx.result_type()
    dtype = result.dtype
    made = TensorType((1, *result.shape), dtype)
    found = ctx.emit("gather_nd", made, x=data, indices=expand_dims(ctx, row, [0]))
    return squeeze(ctx, found, [0])


@OPS.exports("serde.gather_nd", takes=Takes(batch_dims=0))
@OPS.exports("serde.gather_nd", since=16)
def export_signed_gather_nd(ctx: Export, data: Value, indices: Value, *, batch_dims: int) -> Value:
    """Each place of an index is counted from the start of its own axis."""
    type_ = ctx.type(indices)
    (depth,) = ctx.static_lengths(indices, [-1])
    lengths = ctx.type(data).shape[batch_dims : batch_dims + depth]
    rows = cast_to(ctx, indices, "int32")
    counts = np.array([each for each in lengths if isinstance(each, int)], np.int32)
    if rows.data is not None and len(counts) == depth:
        rows = ctx.const(np.where(rows.data < 0, rows.data + counts, rows.data))
    else:
        wide = TensorType(type_.shape, "int32")
        truth = TensorType(type_.shape, "bool")
        below = ctx.emit("less", truth, x=rows, y=ctx.const(0, "int32"))
        other = ctx.emit("add", wide, x=rows, y=ctx.shape(lengths))
        rows = ctx.emit("select", wide, cond=below, a=other, b=rows)
    return _rows(ctx, data, rows, batch_dims) if type_.rank > 1 else _single(ctx, data, rows)


OPS.pairs(
    # From 17 on no index is negative, and none outside means anything.
    reads(
        "gather",
        "take",
        since=17,
        operands="x indices",
        fixed={"mode": "fast"},
        ignored="validate_indices",
        axis=0,
        batch_dims=0,
    ),
    reads(
        "gather_along_axis",
        "gather",
        since=17,
        operands="x indices",
        ignored="validate_indices",
        axis=0,
    ),
    reads("gather", "serde.take", operands="x indices", axis=0),
    reads("gather_along_axis", "gather", since=(1, 16), operands="x indices", axis=0),
    reads("gather_nd", "serde.gather_nd", operands="x indices"),
    reads("gather_nd", "serde.gather_nd", since=16, operands="x indices", batch_dims=0),
)


@OPS.exports("argwhere")
def export_argwhere(ctx: Export, condition: Value) -> Value:
    return _find_nonzero(ctx, condition, ctx.result_type().shape[0])


def _find_nonzero(ctx: Export, x: Value, count: Dim) -> Value:
    """Return the indices of what is not zero, one a row."""
    rank = ctx.type(x).rank
    if not rank:
        raise Unsupported("the places in a scalar")
    work = compute_dtype(ctx, ctx.type(x).dtype, NUMBERS_OR_BOOL)
    return ctx.emit("non_zero", TensorType((count, rank), "int32"), x=cast_to(ctx, x, work))


@OPS.exports("serde.nonzero")
def export_nonzero(ctx: Export, data: Value) -> Value:
    """MIL has a row for each place, this operator a column."""
    shape = ctx.result_type().shape
    rows = _find_nonzero(ctx, data, shape[1])
    turned = ctx.emit("transpose", TensorType(shape, "int32"), x=rows, perm=[1, 0])
    return cast_to(ctx, turned, ctx.result_type().dtype)


@OPS.imports("one_hot")
def import_one_hot(
    ctx: Import,
    indices: Expr,
    one_hot_vector_size: Expr,
    on_value: Expr | None = None,
    off_value: Expr | None = None,
    *,
    axis: int = -1,
) -> Expr:
    on = relay.const(np.int32(1)) if on_value is None else on_value
    off = relay.const(np.zeros(()), ctx.type(on).dtype) if off_value is None else off_value
    dtype = ctx.type(on).dtype
    if ctx.is_constant(one_hot_vector_size):
        return relay.one_hot(indices, on, off, ctx.ints(one_hot_vector_size)[0], axis, dtype)
    return call("dyn.one_hot", indices, on, off, one_hot_vector_size, axis=axis, dtype=dtype)


@OPS.expands("sequence_mask")
def expand_sequence_mask(data: Expr, valid_length: Expr, *, mask_value: float, axis: int) -> Expr:
    """As for all, with positions that networks before iOS14 can count."""
    type_, lengths = tensor_type(data), tensor_type(valid_length)
    dtype = lengths.dtype if is_float(lengths.dtype) else "int32"
    steps = positions(type_.shape[axis], data, axis, dtype)
    position_shape, length_shape = [1] * type_.rank, [1] * type_.rank
    position_shape[axis] = length_shape[1 - axis] = -1
    bounds = relay.reshape(relay.cast(valid_length, dtype), length_shape)
    inside = relay.less(relay.reshape(steps, position_shape), bounds)
    return relay.where(inside, data, relay.const(np.array(mask_value), type_.dtype))


OPS.pairs(reads("non_zero", "argwhere"))
