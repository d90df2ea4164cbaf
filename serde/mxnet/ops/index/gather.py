"""Elements looked up by indices."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any as AnyValue, Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.shape.arrange import axes_last
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, as_dtype, is_float, normalize_axes, normalize_axis, tensor_type
from serde.relay.ir.types import TensorType
from serde.relay.lowering.index import from_start, shares_no_axis, take_from_one_axis

FLOAT32 = np.dtype("float32")


def as_index(ctx: Import, indices: Expr) -> Expr:
    """Return indices as integers."""
    if is_float(ctx.type(indices).dtype):
        return relay.cast(indices, "int32")
    return indices


@OPS.imports("take")
def import_take(
    ctx: Import,
    a: Expr,
    indices: Expr,
    *,
    axis: int = 0,
    mode: Literal["clip", "raise", "wrap"] = "clip",
) -> Expr:
    """``raise`` differs from ``clip`` only where MXNet would stop with an error."""
    return relay.take(
        a, as_index(ctx, indices), axis=axis, mode="wrap" if mode == "wrap" else "clip"
    )


OPS.expands("take")(take_from_one_axis)


@OPS.exports("take", when=shares_no_axis, ignored=("batch_dims",))
def export_take(
    ctx: Export,
    data: Value,
    indices: Value,
    *,
    axis: int | None,
    mode: Literal["clip", "wrap", "fast"],
) -> Value:
    if axis is None:
        data, axis = ctx.reshape(data, (ctx.type(data).size,)), 0
    along = axis % ctx.type(data).rank
    mode = "wrap" if mode == "wrap" else "clip"
    result = ctx.emit_bytes("take", data, indices, axis=along, mode=mode)
    if ctx.type(indices).rank or ctx.np_shape:
        return result
    left = ctx.result_type()
    picked = TensorType((*left.shape[:along], 1, *left.shape[along:]), left.dtype)
    return ctx.reshape(replace(result, type=picked), left.shape)


@OPS.imports("Embedding", "_contrib_SparseEmbedding", ignored=("sparse_grad",))
def import_embedding(
    ctx: Import,
    data: Expr,
    weight: Expr,
    *,
    input_dim: int,
    output_dim: int,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    return relay.take(weight, as_index(ctx, data), axis=0, mode="clip")


@OPS.imports("gather_nd")
def import_gather_nd(ctx: Import, data: Expr, indices: Expr) -> Expr:
    return relay.gather_nd(data, as_index(ctx, indices))


@OPS.exports("gather_nd", ignored=("index_rank",))
def export_gather_nd(ctx: Export, data: Value, indices: Value, *, batch_dims: int) -> Value:
    """MXNet wants indices of rank 2 at least; those of batch axes are written out."""
    type_ = ctx.type(indices)
    if type_.rank == 1:
        shape = ctx.result_type().shape
        return ctx.spell(
            lambda x, i: relay.reshape(relay.gather_nd(x, relay.expand_dims(i, 1)), shape),
            data,
            indices,
        )
    if batch_dims:
        shape = ctx.static_shape(indices)[1:]
        grids = [grid.astype(type_.dtype) for grid in allocation.indices(shape)[:batch_dims]]
        rows = ctx.const(np.stack(grids))
        return ctx.spell(
            lambda x, i, batch: relay.gather_nd(x, relay.concatenate([batch, i], 0)),
            data,
            indices,
            rows,
        )
    return ctx.emit_bytes("gather_nd", data, indices)


@OPS.exports("gather")
def export_gather(ctx: Export, data: Value, indices: Value, *, axis: int | None) -> Value:
    """MXNet picks along one axis with an index for each element: a gather of tuples of indices."""
    along = (axis or 0) % ctx.type(data).rank
    shape = ctx.static_shape(indices)
    length = ctx.static_lengths(data, [along])[0]
    dtype = ctx.type(indices).dtype
    wrapped = ctx.spell(lambda x: wrap_indices(x, length), indices)
    grids = allocation.indices(shape)
    tuples = [
        wrapped if index == along else ctx.const(grid.astype(dtype))
        for index, grid in enumerate(grids)
    ]
    stacked = ctx.emit("stack", *tuples, axis=0, num_args=len(tuples))
    return ctx.emit_bytes("gather_nd", data, replace(stacked, type=ctx.type(indices)))


def wrap_indices(indices: Expr, length: int) -> Expr:
    """Return `indices` counted from the start of an axis."""
    return from_start(indices, relay.const(length, tensor_type(indices).dtype))


@OPS.imports("_ravel_multi_index")
def import_ravel_multi_index(ctx: Import, data: Expr, *, shape: tuple[int, ...]) -> Expr:
    """The length of the first axis does not count, and no index is too large."""
    steps = np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1]
    parts = relay.multiply(as_dtype(data, "int64"), relay.Constant(steps[:, None].copy()))
    return as_dtype(relay.sum(parts, axis=(0,)), ctx.type(data).dtype)


@OPS.imports("_unravel_index")
def import_unravel_index(ctx: Import, data: Expr, *, shape: tuple[int, ...]) -> Expr:
    """The first coordinate grows without end; quotients are rounded towards zero."""
    if ctx.type(data).rank != 1:
        raise Unsupported(f"places {ctx.type(data)!r}: MXNet writes those of a vector alone")
    indices = as_dtype(data, "int64")
    rows = []
    for axis, length in enumerate(shape):
        step = prod(shape[axis + 1 :])
        row = relay.divide(indices, relay.const(step, "int64")) if step != 1 else indices
        rows.append(relay.trunc_mod(row, relay.const(length, "int64")) if axis else row)
    return as_dtype(relay.stack(rows, 0), ctx.type(data).dtype)


@OPS.imports("_contrib_index_array")
def import_index_array(
    ctx: Import, data: Expr, *, axes: tuple[int, ...] | int | None = None
) -> Expr:
    """Ones are summed up along each axis, so that lengths may be open."""
    shape = ctx.type(data).shape
    named = (axes,) if isinstance(axes, int) else axes
    over = range(len(shape)) if named is None else normalize_axes(named, len(shape))
    if not over:
        return relay.zeros([*shape, 0], "int64")
    ones = relay.ones_like(as_dtype(data, "int64"))
    return relay.stack([relay.cumsum(ones, axis=axis, exclusive=True) for axis in over], -1)


@OPS.imports("pick")
def import_pick(
    ctx: Import,
    data: Expr,
    index: Expr,
    *,
    axis: int | None = -1,
    keepdims: bool = False,
    mode: Literal["clip", "wrap"] = "clip",
) -> Expr:
    """The index may have the axis with length 1, or not. A vector gives one element, no scalar."""
    if axis is None:
        raise Unsupported("axis=None, which MXNet has no meaning for")
    rank = ctx.type(data).rank
    along = normalize_axis(axis, rank)
    indices = as_index(ctx, index)
    if ctx.type(index).rank == rank:
        indices = relay.squeeze(indices, (along,))
    rows = axes_last(ctx, data, along)
    picked = relay.take(rows, indices, axis=rank - 1, batch_dims=rank - 1, mode=mode)
    return relay.expand_dims(picked, along) if keepdims or rank == 1 else picked


@OPS.imports("batch_take")
def import_batch_take(ctx: Import, a: Expr, indices: Expr) -> Expr:
    """The indices may have any shape of as many elements as the matrix has rows."""
    if ctx.type(a).rank != 2:
        raise Unsupported(f"of {ctx.type(a)!r}, which is no matrix, MXNet reads past the end")
    positions = indices if ctx.type(indices).rank == 1 else relay.reshape(indices, (-1,))
    picked = relay.take(a, positions, axis=1, batch_dims=1, mode="clip")
    return picked if positions is indices else relay.reshape_like(picked, indices)


@OPS.imports("one_hot")
def import_one_hot(
    ctx: Import,
    indices: Expr,
    *,
    depth: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    if depth == 0:
        return relay.zeros([*ctx.type(indices).shape, 0], dtype)
    limits = np.iinfo(dtype) if dtype.kind in "iu" else None
    for value in (on_value, off_value):
        if limits is not None and not limits.min <= value <= limits.max:
            raise Unsupported(f"{value} does not fit {dtype}")
    on, off = (relay.Constant(np.array(value, dtype=dtype)) for value in (on_value, off_value))
    return relay.one_hot(as_index(ctx, indices), on, off, depth, -1, dtype)


@OPS.exports("one_hot")
def export_one_hot(
    ctx: Export, indices: Value, on_value: Value, off_value: Value,
    *, depth: int, axis: int, dtype: np.dtype[AnyValue],
) -> Value:  # fmt: skip
    """Values that are no constants, and axes but the last, are chosen and moved behind."""
    rank = ctx.type(indices).rank
    on, off = ctx.scalar(on_value), ctx.scalar(off_value)
    fixed = on is not None and off is not None
    result = ctx.emit(
        "one_hot", indices, depth=depth, on_value=on if fixed else 1.0,
        off_value=off if fixed else 0.0, dtype=dtype,
    )  # fmt: skip
    if not fixed:
        shape = (*ctx.type(indices).shape, depth)
        chosen = ctx.cast(replace(result, type=TensorType(shape, dtype)), "bool")
        one, other = (ctx.cast(value, np.dtype(dtype).name) for value in (on_value, off_value))
        result = ctx.where(chosen, one, other, shape)
    at = axis % (rank + 1)
    if not rank and not ctx.np_shape:
        both = TensorType((1, depth), ctx.result_type().dtype)
        return ctx.reshape(replace(result, type=both), (depth,))
    if at == rank:
        return result
    order = [*range(at), rank, *range(at, rank)]
    return ctx.emit("transpose", result, axes=order)
