"""Elements by their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, call, tensor_type
from serde.relay.lowering.index import bring_inside, from_start
from serde.tflite.ops.table import OPS, Export, Import, Value
from serde.walk import reads

__all__ = ["index_rows", "slice_grid"]

OPS.pairs(reads("GATHER_ND", "serde.gather_nd"))


@OPS.imports("GATHER")
def import_gather(
    ctx: Import, x: Expr, indices: Expr, *, axis: int = 0, batch_dims: int = 0
) -> Expr:
    batch = batch_dims + ctx.rank(indices) if batch_dims < 0 else batch_dims
    return relay.take(x, indices, axis=ctx.axis(x, axis), batch_dims=batch)


@OPS.imports("ONE_HOT")
def import_one_hot(
    ctx: Import, indices: Expr, depth: Expr, on: Expr, off: Expr, *, axis: int = 0
) -> Expr:
    return relay.one_hot(indices, on, off, int(ctx.item(depth)), axis, ctx.type(on).dtype)


@OPS.imports("EMBEDDING_LOOKUP")
def import_embedding_lookup(ctx: Import, ids: Expr, table: Expr) -> Expr:
    """Indices come first."""
    return relay.take(table, ids, axis=0)


@OPS.exports("take", when=lambda node: node.attrs["axis"] is not None)
def export_take(
    ctx: Export, data: Value, indices: Value, *, batch_dims: int, axis: int, mode: str
) -> Value:
    """Indices outside the axis, which kernels refuse, are counted on or brought to its ends."""
    where = ctx.axis(data, axis)
    batch = batch_dims % ctx.type(indices).rank if batch_dims < 0 else batch_dims
    (length,) = ctx.static_lengths(data, [where])
    mode = "wrap" if mode == "wrap" and length else "clip"
    indices = ctx.spell(lambda i, x: bring_inside(i, x, where, mode), indices, data)
    return ctx.emit("GATHER", data, indices, axis=where, batch_dims=batch)


@OPS.expands("gather_nd")
def expand_gather_nd(data: Expr, indices: Expr, *, batch_dims: int, index_rank: int | None) -> Expr:
    """Indices lie along the last axis."""
    rank = tensor_type(indices).rank
    moved = relay.transpose(indices, (*range(1, rank), 0))
    return call("serde.gather_nd", data, moved, batch_dims=batch_dims)


@OPS.exports("serde.gather_nd", when=lambda node: node.attrs["batch_dims"] == 0)
def export_gather_nd(ctx: Export, data: Value, indices: Value, *, batch_dims: int) -> Value:
    depth = ctx.static_lengths(indices, [-1])[0]
    lengths = np.array(ctx.static_lengths(data, range(depth)), np.int32)
    known = indices.data
    if known is not None:
        indices = ctx.const(np.where(known < 0, known + lengths, known).astype(np.int32))
    else:
        indices = ctx.spell(from_start, indices, ctx.const(lengths, ctx.type(indices).dtype))
    return ctx.emit("GATHER_ND", data, indices)


@OPS.imports("STABLEHLO_GATHER", ignored=("indices_are_sorted",))
def import_stablehlo_gather(
    ctx: Import, x: Expr, starts: Expr,
    *, offset_dims: AnyValue = None, collapsed_slice_dims: AnyValue = None,
    start_index_map: AnyValue = None, index_vector_dim: int = 0, slice_sizes: AnyValue = None,
) -> Expr:  # fmt: skip
    """Slices whose starts are moved to where they lie in the tensor."""
    shape, rank = ctx.static_shape(x), len(ctx.static_shape(x))
    sizes, collapsed = ctx.numbers(slice_sizes, rank), ctx.axes(collapsed_slice_dims, rank)
    rows, batch = index_rows(ctx, starts, index_vector_dim, ctx.axes(start_index_map, rank), rank)
    room = np.subtract(shape, sizes)
    if min(room, default=0) < 0 or min(sizes, default=0) < 0:
        raise Unsupported(f"slices of {sizes} of {list(shape)}")
    dtype = ctx.type(rows).dtype
    first = relay.minimum(relay.maximum(rows, ctx.const(0, dtype)), ctx.const(room, dtype))
    grid = slice_grid(ctx, sizes, dtype)
    places = relay.add(relay.reshape(first, (*batch, *[1] * rank, rank)), grid)
    found = relay.serde.gather_nd(x, places)
    kept = [n for axis, n in enumerate(sizes) if axis not in collapsed]
    found = relay.reshape(found, (*batch, *kept))
    count = len(batch) + len(kept)
    behind = ctx.axes(offset_dims, count)
    if len(behind) != len(kept):
        raise Unsupported(f"{len(kept)} axes of slices at {behind}")
    order = iter(range(len(batch)))
    places_ = {axis: len(batch) + i for i, axis in enumerate(behind)}
    return relay.transpose(
        found, [places_[i] if i in places_ else next(order) for i in range(count)]
    )


def index_rows(
    ctx: Import, starts: Expr, vector_dim: int, axes: Sequence[int], rank: int
) -> tuple[Expr, list[int]]:
    """Return indices of all axes along the last one, 0 for those that are not told; and the rest.

    Args:
        ctx: The context.
        starts: The indices.
        vector_dim: Their axis along which an index lies; behind the last if each is one number.
        axes: Which axes of the tensor they are of.
        rank: How many it has.
    """
    shape = list(ctx.static_shape(starts))
    if vector_dim == len(shape):
        starts, shape = relay.expand_dims(starts, len(shape)), [*shape, 1]
    (along,) = ctx.axes([vector_dim], len(shape))
    if shape[along] != len(axes) or not rank:
        raise Unsupported(f"indices {shape} of {len(axes)} axes")
    order = [axis for axis in range(len(shape)) if axis != along]
    moved = relay.transpose(starts, (*order, along))
    batch, dtype = [shape[axis] for axis in order], ctx.type(starts).dtype
    blank = relay.zeros((*batch, 1), dtype)
    parts = relay.concatenate([moved, blank], axis=-1)
    columns = [axes.index(axis) if axis in axes else len(axes) for axis in range(rank)]
    return relay.take(parts, ctx.const(columns, "int32"), axis=-1), batch


def slice_grid(ctx: Import, sizes: Sequence[int], dtype: str) -> Expr:
    """Return the places within a slice, along a last axis."""
    parts = []
    for axis, size in enumerate(sizes):
        steps = relay.arange(ctx.const(size, dtype), dtype=dtype)
        lengths = [size if i == axis else 1 for i in range(len(sizes))]
        parts.append(relay.broadcast_to(relay.reshape(steps, lengths), tuple(sizes)))
    return relay.stack(parts, axis=-1)


@OPS.imports("EMBEDDING_LOOKUP_SPARSE")
def import_embedding_lookup_sparse(
    ctx: Import, ids: Expr, indices: Expr, dense_shape: Expr, weights: Expr, table: Expr,
    *, combiner: int = 0,
) -> Expr:  # fmt: skip
    """Rows of the table times their weights, added where indices but the last are the same.

    The sum is divided by that of the weights, or by the root of that of their squares.
    """
    *lead, _ = ctx.ints(dense_shape)
    _, depth = ctx.static_shape(indices, 2)
    if combiner not in (0, 1, 2) or depth != len(lead) + 1 or not lead or min(lead) < 0:
        raise Unsupported(f"a lookup by indices of {depth} for {lead}, combined by {combiner}")
    tail = ctx.static_shape(table)[1:]
    cells = relay.transpose(relay.strided_slice(indices, [0], [depth - 1], axes=[1]), (1, 0))

    def total(updates: Expr, shape: Sequence[int]) -> Expr:
        first = relay.zeros(tuple(shape), "float32")
        return relay.scatter_nd(first, cells, updates, mode="add")

    column = relay.expand_dims(weights, 1, len(tail)) if tail else weights
    found = total(relay.multiply(relay.take(table, ids, axis=0), column), (*lead, *tail))
    if combiner == 0:
        return found
    divisor = total(weights if combiner == 1 else relay.multiply(weights, weights), lead)
    divisor = divisor if combiner == 1 else relay.sqrt(divisor)
    filled = relay.greater(total(relay.ones_like(weights), lead), ctx.const(0, "float32"))
    divisor = relay.where(filled, divisor, ctx.const(1, "float32"))
    return relay.divide(
        found, relay.expand_dims(divisor, len(lead), len(tail)) if tail else divisor
    )
