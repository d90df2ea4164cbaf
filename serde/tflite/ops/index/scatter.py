"""Elements put into places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue, Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr
from serde.tflite.ops.index.gather import index_rows, slice_grid
from serde.tflite.ops.table import OPS, Export, Import, Value


@OPS.imports("SCATTER_ND")
def import_scatter_nd(ctx: Import, indices: Expr, updates: Expr, shape: Expr) -> Expr:
    """Updates of one place are added."""
    dims = ctx.dims(shape)
    rank = ctx.rank(indices)
    zeros = relay.zeros(shape if dims is None else dims, ctx.type(updates).dtype)
    moved = relay.transpose(indices, (rank - 1, *range(rank - 1)))
    return relay.scatter_nd(zeros, moved, updates, mode="add")


@OPS.imports("SEGMENT_SUM")
def import_segment_sum(ctx: Import, x: Expr, ids: Expr) -> Expr:
    if not ctx.is_constant(ids):
        raise Unsupported("segments that are known at run time alone decide the shape")
    return relay.segment_sum(x, ids, int(max(ctx.ints(ids), default=-1)) + 1)


def _unsorted_segment(
    ctx: Import,
    x: Expr,
    ids: Expr,
    count: Expr,
    mode: Literal["add", "mul", "max", "min"],
    start: float,
) -> Expr:
    """Segments without an element hold what the reduction begins with."""
    type_ = ctx.type(x)
    rank = ctx.rank(ids)
    shape = (int(ctx.item(count)), *type_.shape[rank:])
    first = relay.full(ctx.const(start, type_.dtype), shape, type_.dtype)
    return relay.scatter_nd(first, relay.expand_dims(ids, axis=0), x, mode=mode)


def _limit(dtype: str, lowest: bool) -> float:
    limits = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    return float(limits.min if lowest else limits.max)


def _segment_reader(
    mode: Literal["add", "mul", "max", "min"], start: Callable[[str], float]
) -> Callable[..., Expr]:
    def read(ctx: Import, x: Expr, ids: Expr, count: Expr) -> Expr:
        return _unsorted_segment(ctx, x, ids, count, mode, start(ctx.type(x).dtype))

    return read


OPS.imports("UNSORTED_SEGMENT_SUM")(_segment_reader("add", lambda _: 0))


OPS.imports("UNSORTED_SEGMENT_PROD")(_segment_reader("mul", lambda _: 1))


OPS.imports("UNSORTED_SEGMENT_MAX")(_segment_reader("max", lambda dtype: _limit(dtype, True)))


OPS.imports("UNSORTED_SEGMENT_MIN")(_segment_reader("min", lambda dtype: _limit(dtype, False)))


@OPS.imports("SPARSE_TO_DENSE")
def import_sparse_to_dense(
    ctx: Import,
    indices: Expr,
    shape: Expr,
    values: Expr,
    default: Expr,
    *,
    validate_indices: bool = False,
) -> Expr:
    dims = ctx.dims(shape)
    return relay.sparse_to_dense(indices, shape if dims is None else dims, values, default)


@OPS.exports("scatter_nd", when=lambda node: node.attrs["mode"] == "add", ignored=("mode",))
def export_scatter_nd(ctx: Export, data: Value, indices: Value, updates: Value) -> Value:
    """Updates are added into zeros, and these to the data."""
    type_ = ctx.type(data)
    rank = ctx.type(indices).rank
    moved = ctx.spell(
        lambda i: relay.cast(relay.transpose(i, (*range(1, rank), 0)), "int32"), indices
    )
    shape = ctx.ints(ctx.static_shape(data))
    found = ctx.emit_as(type_, "SCATTER_ND", moved, updates, shape)
    if data.data is not None and not data.data.any():
        return found
    return ctx.spell(relay.add, data, found)


_MODES: dict[str, Literal["update", "add", "mul", "min", "max"]] = {
    "": "update", "add": "add", "maximum": "max", "minimum": "min", "multiply": "mul",
}  # fmt: skip


@OPS.imports("STABLEHLO_SCATTER", ignored=("indices_are_sorted", "unique_indices"))
def import_stablehlo_scatter(
    ctx: Import, x: Expr, starts: Expr, updates: Expr,
    *, update_window_dims: AnyValue = None, inserted_window_dims: AnyValue = None,
    scatter_dims_to_operand_dims: AnyValue = None, index_vector_dim: int = 0,
    update_computation_subgraph_index: int = 0,
) -> Expr:  # fmt: skip
    """Slices are combined with what is there; what lies outside of the tensor is left out.

    So each element has a place in the row of all elements, and one behind it is cut off again.
    """
    shape, given = ctx.static_shape(x), ctx.static_shape(updates)
    rank, dtype = len(shape), ctx.type(starts).dtype
    mode = _MODES.get(ctx.combination(update_computation_subgraph_index, ctx.type(x).dtype))
    if mode is None:
        raise Unsupported("updates that are combined by what is not one operator of two values")
    targets = ctx.axes(scatter_dims_to_operand_dims, rank)
    rows, batch = index_rows(ctx, starts, index_vector_dim, targets, rank)
    inserted = ctx.axes(inserted_window_dims, rank)
    window = ctx.axes(update_window_dims, len(given))
    lengths = iter([given[axis] for axis in window])
    if len(window) != rank - len(inserted):
        raise Unsupported(f"slices of {len(window)} axes beside {inserted} of {rank}")
    sizes = [1 if axis in inserted else next(lengths) for axis in range(rank)]
    others = [axis for axis in range(len(given)) if axis not in window]
    if [given[axis] for axis in others] != batch:
        raise Unsupported(f"updates {list(given)} of indices {batch}")
    grid = slice_grid(ctx, sizes, dtype)
    places = relay.add(relay.reshape(rows, (*batch, *[1] * rank, rank)), grid)
    inside = relay.logical_and(
        relay.greater_equal(places, ctx.const(0, dtype)),
        relay.less(places, ctx.const(shape, dtype)),
    )
    steps = [int(np.prod(shape[i + 1 :])) for i in range(rank)]
    flat = relay.sum(relay.multiply(places, ctx.const(steps, dtype)), axis=[-1])
    size = int(np.prod(shape))
    flat = relay.where(relay.all(inside, axis=[-1]), flat, ctx.const(size, dtype))
    moved = relay.reshape(relay.transpose(updates, (*others, *window)), (-1,))
    row = relay.concatenate([relay.reshape(x, (-1,)), relay.zeros((1,), ctx.type(x).dtype)], axis=0)
    found = relay.scatter_nd(row, relay.reshape(flat, (1, -1)), moved, mode=mode)
    return relay.reshape(relay.strided_slice(found, [0], [size]), shape)
