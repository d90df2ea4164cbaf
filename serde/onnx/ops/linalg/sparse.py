"""Sparse matrices in CSR or BSR form."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.allocation import repeat
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.elementwise.convert import as_dtype, cast, fill
from serde.onnx.ops.reduce import emit_reduce
from serde.onnx.ops.shape.layout import to_layout
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.op.linalg.sparse import resolve_shape, starts_of_columns
from serde.weights import numpy_dtype


def _read_csr(ctx: ExportContext, indices: Value, indptr: Value) -> np.ndarray[AnyValue, AnyValue]:
    """Return row and column of each element of a sparse matrix whose structure is constant.

    Raises:
        Unsupported: It is computed, or two elements have one index.
    """
    counts = np.diff(ctx.constant(indptr))
    rows = repeat(np.arange(len(counts)), counts)
    positions = np.stack([rows, ctx.constant(indices)[: len(rows)]], -1).astype(np.int64)
    if len(np.unique(positions, axis=0)) < len(positions):
        raise Unsupported("a sparse matrix with two elements in one place")
    return positions


def _to_dense(
    ctx: ExportContext, data: Value, indices: Value, indptr: Value, columns: int
) -> Value:
    """Return a sparse matrix as a dense one."""
    positions = _read_csr(ctx, indices, indptr)
    block = ctx.static_shape(data)[1:]
    height, width = block or (1, 1)
    dtype = ctx.type(data).dtype
    count = len(ctx.constant(indptr)) - 1
    shape = (count, columns // width, *block)
    if ctx.static_shape(data)[0] > len(positions):
        data = ctx.emit("Slice", data, ctx.ints([0]), ctx.ints([len(positions)]), ctx.ints([0]))
    zeros = fill(ctx, ctx.ints(shape), 0, dtype)
    found = ctx.emit("ScatterND", zeros, ctx.const(positions), data)
    if not block:
        return found
    moved = ctx.emit("Transpose", found, perm=[0, 2, 1, 3])
    return ctx.emit("Reshape", moved, ctx.ints([count * height, columns]))


@OPS.exports("nn.sparse_dense", "nn.internal.sparse_dense_padded")
def export_sparse_dense(
    ctx: ExportContext, x: Value, data: Value, indices: Value, indptr: Value, *, sparse_lhs: bool
) -> Value:
    (columns,) = ctx.static_lengths(x, [1])
    matrix = _to_dense(ctx, data, indices, indptr, columns)
    left, right = (matrix, x) if sparse_lhs else (x, matrix)
    return ctx.emit("MatMul", left, ctx.emit("Transpose", right, perm=[1, 0]))


@OPS.exports("nn.sparse_add")
def export_sparse_add(
    ctx: ExportContext, x: Value, data: Value, indices: Value, indptr: Value
) -> Value:
    (columns,) = ctx.static_lengths(x, [1])
    return ctx.emit("Add", x, _to_dense(ctx, data, indices, indptr, columns))


@OPS.exports("nn.sparse_transpose")
def export_sparse_transpose(
    ctx: ExportContext, data: Value, indices: Value, indptr: Value
) -> tuple[Value, ...]:
    """The structure is constant, so that only the elements move when the model runs."""
    rows, columns = _read_csr(ctx, indices, indptr).T
    order = np.argsort(columns, kind="stable")
    count = len(ctx.constant(indptr)) - 1
    starts = starts_of_columns(columns, count)
    return (
        ctx.emit("Gather", data, ctx.const(order, np.int64)),
        ctx.const(rows[order], ctx.type(indices).dtype),
        ctx.const(starts, ctx.type(indptr).dtype),
    )


@OPS.exports("nn.sparse_conv2d")
def export_sparse_conv2d(
    ctx: ExportContext,
    x: Value,
    data: Value,
    indices: Value,
    indptr: Value,
    *,
    layout: str,
    kernel_size: tuple[Dim, ...],
) -> Value:
    size = 3 if tuple(kernel_size) == (3, 3) else 1
    (channels,) = ctx.static_lengths(x, [layout.index("C")])
    matrix = _to_dense(ctx, data, indices, indptr, channels * size * size)
    window = "OIHW" if layout == "NCHW" else "OHWI"
    lengths = {"O": -1, "I": channels, "H": size, "W": size}
    weight = ctx.emit("Reshape", matrix, ctx.ints(lengths[letter] for letter in window))
    found = ctx.emit(
        "Conv",
        to_layout(ctx, x, layout, "NCHW"),
        to_layout(ctx, weight, window, "OIHW"),
        pads=[size // 2] * 4,
    )
    return to_layout(ctx, found, "NCHW", layout)


@OPS.exports("sparse_reshape")
def export_sparse_reshape(
    ctx: ExportContext, indices: Value, before: Value, after: Value
) -> tuple[Value, Value]:
    """``index[k] = flat // stride[k] % shape[k]`` of the flat index in row-major order."""
    old = tuple(int(length) for length in ctx.constant(before))
    new = resolve_shape(old, ctx.constant(after))
    wide = as_dtype(ctx, indices, "int64")
    scaled = ctx.emit("Mul", wide, ctx.ints(_row_major_strides(old)))
    numbers = emit_reduce(ctx, "ReduceSum", scaled, [1], True)
    found = ctx.emit(
        "Mod", ctx.emit("Div", numbers, ctx.ints(_row_major_strides(new))), ctx.ints(new)
    )
    dtype = ctx.type(indices).dtype
    shape = np.array(new, numpy_dtype(ctx.type(after).dtype))
    return found if dtype == "int64" else cast(ctx, found, dtype), ctx.const(shape)


def _row_major_strides(shape: tuple[int, ...]) -> list[int]:
    return [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]


@OPS.exports("sparse_fill_empty_rows")
def export_sparse_fill_empty_rows(
    ctx: ExportContext, indices: Value, values: Value, shape: Value, default: Value
) -> tuple[Value, Value, Value]:
    """Rows without a mark are empty; a stable sort orders what is added."""
    (rank,) = ctx.static_lengths(indices, [1])
    wide = as_dtype(ctx, indices, "int64")
    rows = ctx.emit("Gather", wide, ctx.const(0, np.int64), axis=1)
    count = ctx.emit("Slice", as_dtype(ctx, shape, "int64"), ctx.ints([0]), ctx.ints([1]))
    marks = fill(ctx, ctx.emit("Shape", rows), 1, "int64")
    taken = ctx.emit("ScatterElements", fill(ctx, count, 0, "int64"), rows, marks, axis=0)
    empty = ctx.emit("Equal", taken, ctx.const(0, np.int64))
    added = ctx.emit("Transpose", ctx.emit("NonZero", empty), perm=[1, 0])
    padded = ctx.emit("Pad", added, ctx.ints([0, 0, 0, rank - 1]))
    every = ctx.emit("Concat", wide, padded, axis=0)
    filler = ctx.emit(
        "Expand", default, ctx.emit("Slice", ctx.emit("Shape", added), ctx.ints([0]), ctx.ints([1]))
    )
    keys = ctx.emit("Gather", every, ctx.const(0, np.int64), axis=1)
    _, order = ctx.emit_tuple("TopK", keys, ctx.emit("Shape", keys), outputs=2, axis=0, largest=0)
    found = ctx.emit("Gather", every, order, axis=0)
    dtype = ctx.type(indices).dtype
    joined = ctx.emit("Concat", values, filler, axis=0)
    return (
        found if dtype == "int64" else cast(ctx, found, dtype),
        ctx.emit("Gather", joined, order, axis=0),
        empty,
    )
