"""Sparse matrices as dense ones, and coordinates counted in row-major order."""

from __future__ import annotations

import math

import numpy as np

import serde.core.allocation as allocation
from serde.errors import Unsupported
from serde.relay.ir import Array, Constant, Dim, Expr, Tuple, as_dtype, call, const, tensor_type
from serde.relay.ir.shapes import layout_axes
from serde.relay.lowering.lengths import positions

__all__ = [
    "decompose_dyn_sparse_to_dense", "decompose_sparse_add", "decompose_sparse_conv2d",
    "decompose_sparse_dense", "decompose_sparse_fill_empty_rows", "decompose_sparse_reshape",
    "decompose_sparse_to_dense", "decompose_sparse_transpose", "require_columns",
    "rows_of_elements",
]  # fmt: skip


def rows_of_elements(indptr: Array, stored: int) -> Array:
    """Return the row, of elements or of blocks, that each of those stored lies in."""
    counts = np.diff(indptr)
    if counts.size and (counts.min() < 0 or sum(counts.tolist()) > stored):
        raise Unsupported(f"rows end at {indptr[-1]} of {stored} elements")
    return np.repeat(np.arange(len(counts)), counts)


def _find_rows(indices: Expr, indptr: Expr) -> Expr:
    """Return the row of each element; those that no row has get the number after the last."""
    places = positions(indices, 0)
    past = call("searchsorted", as_dtype(indptr, "int64"), places, right=True, dtype="int64")
    return call("subtract", past, const(1, "int64"))


def require_columns(columns: Array, count: Dim) -> None:
    """Refuse columns that a matrix does not have."""
    if isinstance(count, int) and columns.size and not 0 <= columns.min() <= columns.max() < count:
        raise Unsupported(f"columns {columns.min()} to {columns.max()} of {count}")


def _place(zeros_shape: tuple[Dim, ...], data: Expr, indices: Expr, indptr: Expr) -> Expr:
    """Return elements or blocks put where they belong; what a row names twice is added."""
    dtype = tensor_type(data).dtype
    if isinstance(indices, Constant) and isinstance(indptr, Constant):
        rows = rows_of_elements(indptr.data, len(indices.data))
        require_columns(indices.data[: len(rows)], zeros_shape[1])
        known = np.stack([rows, indices.data[: len(rows)]]).astype(np.int64)
        distinct = len(np.unique(known, axis=1).T) == len(rows)
        if len(rows) < len(indices.data):
            data = call(
                "strided_slice", data, begin=(0,), end=(len(rows),), strides=(1,), axes=(0,)
            )
        zeros = call("zeros", shape=zeros_shape, dtype=dtype)
        mode = "update" if distinct else "add"
        return call("scatter_nd", zeros, Constant(known), data, mode=mode) if len(rows) else zeros
    found = [_find_rows(indices, indptr), as_dtype(indices, "int64")]
    first, *others = zeros_shape
    zeros = call("zeros", shape=(first + 1, *others), dtype=dtype)
    total = call("scatter_nd", zeros, call("stack", found, axis=0), data, mode="add")
    return call("strided_slice", total, begin=(0,), end=(-1,), strides=(1,), axes=(0,))


def _dense(data: Expr, indices: Expr, indptr: Expr, columns: Dim) -> Expr:
    """Return the matrix with all its elements."""
    block = tensor_type(data).shape[1:]
    height, width = block or (1, 1)
    count = tensor_type(indptr).shape[0] - 1
    found = _place((count, columns // width, *block), data, indices, indptr)
    if not block:
        return found
    moved = call("transpose", found, axes=(0, 2, 1, 3))
    return call("reshape", moved, newshape=(count * height, columns))


def decompose_sparse_dense(
    dense_data: Expr,
    sparse_data: Expr,
    sparse_indices: Expr,
    sparse_indptr: Expr,
    *,
    sparse_lhs: bool,
) -> Expr:
    columns = tensor_type(dense_data).shape[1]
    matrix = _dense(sparse_data, sparse_indices, sparse_indptr, columns)
    left, right = (matrix, dense_data) if sparse_lhs else (dense_data, matrix)
    return call("nn.dense", left, right, units=None)


def decompose_sparse_add(
    dense_data: Expr, sparse_data: Expr, sparse_indices: Expr, sparse_indptr: Expr
) -> Expr:
    columns = tensor_type(dense_data).shape[1]
    return call("add", dense_data, _dense(sparse_data, sparse_indices, sparse_indptr, columns))


def decompose_sparse_conv2d(
    dense_data: Expr,
    sparse_data: Expr,
    sparse_indices: Expr,
    sparse_indptr: Expr,
    *,
    layout: str,
    kernel_size: tuple[Dim, ...],
) -> Expr:
    """A convolution whose weight is the matrix, its columns in the order of `layout`."""
    size = 3 if tuple(kernel_size) == (3, 3) else 1
    channels = tensor_type(dense_data).shape[layout.index("C")]
    matrix = _dense(sparse_data, sparse_indices, sparse_indptr, channels * size * size)
    window = layout.replace("N", "O").replace("C", "I")
    lengths = {"O": -1, "I": channels, "H": size, "W": size}
    weight = call("reshape", matrix, newshape=tuple(lengths[letter] for letter in window))
    if layout != "NCHW":
        weight = call("transpose", weight, axes=layout_axes(window, "OIHW"))
        dense_data = call("transpose", dense_data, axes=layout_axes(layout, "NCHW"))
    found = call("nn.conv2d", dense_data, weight, padding=(size // 2,) * 4)
    if layout == "NCHW":
        return found
    return call("transpose", found, axes=layout_axes("NCHW", layout))


def decompose_sparse_transpose(
    sparse_data: Expr, sparse_indices: Expr, sparse_indptr: Expr
) -> Expr:
    """Elements are sorted by their columns, among which each new row is looked up."""
    if isinstance(sparse_indices, Constant):
        require_columns(sparse_indices.data, tensor_type(sparse_indptr).shape[0] - 1)
    order = call("argsort", sparse_indices, axis=0, dtype="int32")
    rows = as_dtype(_find_rows(sparse_indices, sparse_indptr), tensor_type(sparse_indices).dtype)
    ordered = call("take", sparse_indices, order, axis=0, mode="fast")
    starts = call(
        "searchsorted",
        as_dtype(ordered, "int64"),
        positions(sparse_indptr, 0),
        right=False,
        dtype="int64",
    )
    return Tuple(
        [
            call("take", sparse_data, order, axis=0, mode="fast"),
            call("take", rows, order, axis=0, mode="fast"),
            as_dtype(starts, tensor_type(sparse_indptr).dtype),
        ]
    )


def _row_major_strides(shape: Expr) -> Expr:
    return call("serde.cumprod", shape, axis=0, exclusive=True, reverse=True)


def decompose_sparse_reshape(sparse_indices: Expr, prev_shape: Expr, new_shape: Expr) -> Expr:
    """``index[k] = flat // stride[k] % shape[k]`` of the flat index in row-major order."""
    dtype = tensor_type(sparse_indices).dtype
    few = isinstance(prev_shape, Constant) and math.prod(prev_shape.data.tolist()) < 2**31
    work = dtype if few else "int64"
    before, after = (as_dtype(each, work) for each in (prev_shape, new_shape))
    one = const(1, work)
    open_ = call("less", after, const(0, work))
    known = call("prod", call("where", open_, one, after), axis=(0,), keepdims=True)
    whole = call("prod", before, axis=(0,), keepdims=True)
    rest = call("floor_divide", whole, call("maximum", known, one))
    after = call("where", open_, rest, after)
    scaled = call("multiply", as_dtype(sparse_indices, work), _row_major_strides(before))
    flat = call("sum", scaled, axis=(1,), keepdims=True)
    moved = call("floor_mod", call("floor_divide", flat, _row_major_strides(after)), after)
    return Tuple([as_dtype(moved, dtype), as_dtype(after, tensor_type(new_shape).dtype)])


def _find_empty_rows(indices: Expr, shape: Expr) -> tuple[Expr, Expr]:
    """Return which rows have no entry, as truth values and as a column of their numbers."""
    dtype = tensor_type(indices).dtype
    if isinstance(indices, Constant) and isinstance(shape, Constant):
        count = int(shape.data[0])
        allocation.allow((count,), np.int64)
        known = np.bincount(indices.data[:, 0], minlength=count) == 0
        return Constant(known), const(np.flatnonzero(known)[:, None], dtype)
    rows = call("take", indices, const(0, "int32"), axis=1, mode="fast")
    count_of = call("strided_slice", shape, begin=(0,), end=(1,), strides=(1,), axes=(0,))
    blank = call("dyn.zeros", count_of, dtype="int32")
    marks = call("cast", call("ones_like", rows), dtype="int32")
    marked = call("scatter_elements", blank, rows, marks, axis=0, reduction="update")
    empty = call("equal", marked, const(0, "int32"))
    return empty, call("cast", call("argwhere", empty), dtype=dtype)


def decompose_sparse_fill_empty_rows(
    sparse_indices: Expr, sparse_values: Expr, dense_shape: Expr, default_value: Expr
) -> Expr:
    """A stable sort puts what is added where it belongs."""
    type_ = tensor_type(sparse_indices)
    rank = type_.shape[1]
    if not isinstance(rank, int):
        raise Unsupported("coordinates of unknown rank")
    empty, added = _find_empty_rows(sparse_indices, dense_shape)
    if rank > 1:
        widths = ((0, 0), (0, rank - 1))
        added = call("nn.pad", added, const(0, type_.dtype), pad_width=widths)
    every = call("concatenate", [sparse_indices, added], axis=0)
    column = const(0, "int32")
    like = call("take", added, column, axis=1, mode="fast")
    filler = call("broadcast_to_like", call("reshape", default_value, newshape=(1,)), like)
    keys = call("take", every, column, axis=1, mode="fast")
    order = call("argsort", keys, axis=0, dtype="int32")
    values = call("concatenate", [sparse_values, filler], axis=0)
    return Tuple(
        [
            call("take", every, order, axis=0, mode="fast"),
            call("take", values, order, axis=0, mode="fast"),
            empty,
        ]
    )


def _scattered(indices: Expr, values: Expr, target: Expr) -> Expr:
    """Return `target` with the values at the indices, one index a row."""
    rank = tensor_type(target).rank
    rows = call("reshape", indices, newshape=(-1, rank))
    if not tensor_type(values).rank:
        like = call(
            "squeeze", call("take", rows, const([0], "int32"), axis=1, mode="fast"), axis=(1,)
        )
        values = call("broadcast_to_like", values, like)
    return call("scatter_nd", target, call("transpose", rows, axes=(1, 0)), values, mode="update")


def decompose_sparse_to_dense(
    sparse_indices: Expr, sparse_values: Expr, default_value: Expr, *, output_shape: tuple[Dim, ...]
) -> Expr:
    dtype = tensor_type(sparse_values).dtype
    target = call("full", default_value, shape=output_shape, dtype=dtype)
    return _scattered(sparse_indices, sparse_values, target)


def decompose_dyn_sparse_to_dense(
    sparse_indices: Expr, sparse_values: Expr, default_value: Expr, output_shape: Expr
) -> Expr:
    target = call("dyn.full", default_value, output_shape, dtype=tensor_type(sparse_values).dtype)
    return _scattered(sparse_indices, sparse_values, target)
