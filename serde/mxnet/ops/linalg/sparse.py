"""Operators on sparse storage, of which a dense tensor holds the same values."""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.shape.create import axis_indices
from serde.mxnet.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import layout_axes
from serde.relay.op.linalg.sparse import starts_of_columns
from serde.weights import Array


def _to_dense(
    ctx: ExportContext, data: Value, indices: Value, indptr: Value, columns: int
) -> Value:
    """Return a matrix in rows (CSR) or in blocks of them (BSR) with all its elements."""
    pointers, at = ctx.constant(indptr), ctx.constant(indices)
    type_ = ctx.type(data)
    height, width = ctx.static_shape(data)[1:] or (1, 1)
    counts = np.diff(pointers)
    rows = allocation.repeat(allocation.arange(len(counts)), counts)
    allocation.allow((len(rows), height, width), np.int64)
    tops = rows[:, None, None] * height + allocation.arange(height)[:, None]
    sides = at[: len(rows), None, None] * width + allocation.arange(width)
    positions: Array = (tops * columns + sides).reshape(-1).astype(np.int64)
    size = len(counts) * height * columns

    def build(x: Expr) -> Expr:
        stored = relay.reshape(x, (-1,))
        if len(positions) < ctx.static_shape(data)[0] * height * width:
            stored = relay.strided_slice(stored, [0], [len(positions)], [1])
        blank = relay.zeros((size,), type_.dtype)
        if len(positions):
            blank = relay.scatter_nd(blank, relay.Constant(positions[None]), stored, mode="add")
        return relay.reshape(blank, (len(counts) * height, columns))

    return ctx.spell(build, data)


@OPS.exports("nn.sparse_dense")
def export_sparse_dense(
    ctx: ExportContext,
    dense_data: Value,
    sparse_data: Value,
    sparse_indices: Value,
    sparse_indptr: Value,
    *,
    sparse_lhs: bool,
) -> Value:
    (columns,) = ctx.static_lengths(dense_data, [1])
    matrix = _to_dense(ctx, sparse_data, sparse_indices, sparse_indptr, columns)
    left, right = (matrix, dense_data) if sparse_lhs else (dense_data, matrix)
    return ctx.spell(lambda a, b: relay.nn.dense(a, b, None), left, right)


@OPS.exports("nn.sparse_add")
def export_sparse_add(
    ctx: ExportContext,
    dense_data: Value,
    sparse_data: Value,
    sparse_indices: Value,
    sparse_indptr: Value,
) -> Value:
    (columns,) = ctx.static_lengths(dense_data, [1])
    matrix = _to_dense(ctx, sparse_data, sparse_indices, sparse_indptr, columns)
    return ctx.spell(relay.add, dense_data, matrix)


@OPS.exports("nn.sparse_transpose")
def export_sparse_transpose(
    ctx: ExportContext, sparse_data: Value, sparse_indices: Value, sparse_indptr: Value
) -> tuple[Value, Value, Value]:
    pointers, at = ctx.constant(sparse_indptr), ctx.constant(sparse_indices)
    count = len(pointers) - 1
    rows = allocation.repeat(allocation.arange(count), np.diff(pointers))
    order = np.argsort(at, kind="stable")
    starts = starts_of_columns(at, count)
    values = ctx.spell(
        lambda x: relay.take(x, relay.Constant(order), axis=0, mode="clip"), sparse_data
    )
    return values, ctx.const(rows[order].astype(at.dtype)), ctx.const(starts.astype(pointers.dtype))


@OPS.exports("nn.sparse_conv2d")
def export_sparse_conv2d(
    ctx: ExportContext,
    dense_data: Value,
    sparse_data: Value,
    sparse_indices: Value,
    sparse_indptr: Value,
    *,
    layout: Literal["NHWC", "NCHW"],
    kernel_size: tuple[Dim, ...],
) -> Value:
    """The columns of the matrix run over the window and the channels, in the order of `layout`."""
    size = kernel_size[0]
    if not isinstance(size, int):
        raise Unsupported(f"a window of length {size}")
    channels = ctx.static_lengths(dense_data, [layout.index("C")])[0]
    matrix = _to_dense(ctx, sparse_data, sparse_indices, sparse_indptr, size * size * channels)

    def build(x: Expr, rows: Expr) -> Expr:
        if layout == "NHWC":
            weight = relay.transpose(relay.reshape(rows, (-1, size, size, channels)), [0, 3, 1, 2])
        else:
            weight = relay.reshape(rows, (-1, channels, size, size))
        data = relay.transpose(x, list(layout_axes(layout, "NCHW")))
        result = relay.nn.conv2d(data, weight, padding=(size // 2, size // 2))
        return relay.transpose(result, list(layout_axes("NCHW", layout)))

    return ctx.spell(build, dense_data, matrix)


@OPS.exports("sparse_fill_empty_rows")
def export_sparse_fill_empty_rows(
    ctx: ExportContext,
    sparse_indices: Value,
    sparse_values: Value,
    dense_shape: Value,
    default_value: Value,
) -> tuple[Value, Value, Value]:
    """Which rows are empty must be known, as it tells how many there are."""
    at, shape = ctx.constant(sparse_indices), ctx.constant(dense_shape)
    empty = allocation.bincount(at[:, 0], minlength=int(shape[0])) == 0
    added = allocation.zeros((int(empty.sum()), at.shape[1]), at.dtype)
    added[:, 0] = np.flatnonzero(empty)
    indices = np.concatenate([at, added])
    order = np.argsort(indices[:, 0], kind="stable")

    def build(values: Expr, default: Expr) -> Expr:
        parts = [values] * (len(at) > 0)
        if len(added):
            parts.append(relay.broadcast_to(relay.reshape(default, (1,)), (len(added),)))
        joined = relay.concatenate(parts, 0)
        return relay.take(joined, relay.Constant(order), axis=0, mode="clip")

    values = ctx.spell(build, sparse_values, default_value)
    return ctx.const(indices[order]), values, ctx.const(empty)


OPS.refuses(
    "_contrib_getnnz",
    "_contrib_edge_id",
    reason="a dense tensor does not tell a stored zero from none",
)


OPS.refuses(
    "_contrib_dgl_adjacency",
    "_contrib_dgl_csr_neighbor_non_uniform_sample",
    "_contrib_dgl_csr_neighbor_uniform_sample",
    "_contrib_dgl_graph_compact",
    "_contrib_dgl_subgraph",
    reason="what it takes is a graph in csr storage, not a tensor",
    hint="sample the graph before the model, and make the features inputs",
)


@OPS.imports("cast_storage", ignored=("stype",))
def import_cast_storage(ctx: ImportContext, data: Expr) -> Expr:
    return data


@OPS.imports("_sparse_retain")
def import_sparse_retain(ctx: ImportContext, data: Expr, indices: Expr) -> Expr:
    """The rows that are named stay, the others are zero."""
    rows = relay.expand_dims(axis_indices(ctx, data, 0), 1)
    named = relay.equal(rows, relay.cast(indices, "int32"))
    kept = relay.any(named, axis=(1,))
    rank = ctx.type(data).rank
    if rank > 1:
        kept = relay.expand_dims(kept, 1, rank - 1)
    return relay.where(kept, data, scalar_like(ctx, data, 0))
