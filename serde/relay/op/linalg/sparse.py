"""Sparse matrices, as three tensors: elements, their columns, and where each row starts.

With elements of rank 1 these are CSR; of rank 3 each element is a dense block (BSR). Lists of
coordinates with their values are the other form here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any as AnyValue, Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Constant, Dim, Expr, Fusion, FusionPattern, Ordering, TupleWrapper
from serde.relay.ir.registry import Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.shapes import join_dim, layout_axes, require_same_dtype
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import times
from serde.relay.lowering.sparse import (
    decompose_sparse_add,
    decompose_sparse_conv2d,
    decompose_sparse_dense,
    decompose_sparse_fill_empty_rows,
    decompose_sparse_reshape,
    decompose_sparse_transpose,
    require_columns,
    rows_of_elements,
)
from serde.relay.op.linalg.product import exact_operand, to_product_dtype
from serde.relay.op.shape.reshape import new_shape


def _require_sparse(data: TensorType, indices: TensorType, indptr: TensorType) -> None:
    if data.rank not in (1, 3) or indices.rank != 1 or indptr.rank != 1:
        raise TypeInferenceError(
            f"expected a sparse matrix, found {data!r}, {indices!r} and {indptr!r}"
        )
    for positions in (indices, indptr):
        if not positions.dtype.startswith(("int", "uint")):
            raise TypeInferenceError(f"expected integer positions, found {positions!r}")
    join_dim(data.shape[0], indices.shape[0])


def _rows(data: TensorType, indptr: TensorType) -> Dim:
    blocks = indptr.shape[0] - 1
    return blocks if data.rank == 1 else blocks * data.shape[1]


def _dense(data: Array, indices: Array, indptr: Array, columns: int) -> Array:
    """Return the matrix with all its elements; what a row names twice is added."""
    height, width = data.shape[1:] or (1, 1)
    rows, count = rows_of_elements(indptr, len(indices)), len(indptr) - 1
    blocks = np.zeros((count, columns // width, height, width), data.dtype)
    stored = data.reshape(-1, height, width)[: len(rows)]
    np.add.at(blocks, (rows, indices[: len(rows)]), stored)
    return blocks.swapaxes(1, 2).reshape(count * height, columns)


def _sparse_dense_type(
    dense_data: TensorType,
    sparse_data: TensorType,
    sparse_indices: TensorType,
    sparse_indptr: TensorType,
    *,
    sparse_lhs: bool,
) -> TensorType:
    _require_sparse(sparse_data, sparse_indices, sparse_indptr)
    dtype = require_same_dtype(dense_data, sparse_data)
    if dense_data.rank != 2:
        raise TypeInferenceError(f"expected a matrix, found {dense_data!r}")
    rows = _rows(sparse_data, sparse_indptr)
    first = dense_data.shape[0]
    return TensorType((rows, first) if sparse_lhs else (first, rows), dtype)


def _padded_dense_type(
    data: TensorType,
    weight_data: TensorType,
    weight_indices: TensorType,
    weight_indptr: TensorType,
    *,
    sparse_lhs: bool,
) -> TensorType:
    return _sparse_dense_type(
        data, weight_data, weight_indices, weight_indptr, sparse_lhs=sparse_lhs
    )


_POINTERS = np.array([0, 2, 2, 3, 5], np.int32)
_COLUMNS = np.array([0, 4, 1, 2, 5], np.int32)


@relay_op(
    "nn.sparse_dense",
    traits=(Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),),
    infer=_sparse_dense_type,
    decompose=decompose_sparse_dense,
    samples=[
        sample((3, 6), (5,), _COLUMNS, _POINTERS),
        sample((3, 6), (5,), _COLUMNS, _POINTERS, sparse_lhs=True),
        sample((2, 9), (3, 2, 3), np.array([0, 2, 1], np.int32), np.array([0, 2, 3], np.int32)),
    ],
)
def sparse_dense(
    dense_data: Array,
    sparse_data: Array,
    sparse_indices: Array,
    sparse_indptr: Array,
    *,
    sparse_lhs: bool = False,
) -> Array:
    """``y = dense_data @ sparse.T``, or ``sparse @ dense_data.T`` with both exchanged."""
    matrix = _dense(sparse_data, sparse_indices, sparse_indptr, dense_data.shape[1])
    left, right = (matrix, dense_data) if sparse_lhs else (dense_data, matrix)
    depth = dense_data.shape[1]
    total = np.matmul(exact_operand(left, depth), exact_operand(right, depth).T)
    return to_product_dtype(total, dense_data, None)


def _parts(matrix: AnyValue) -> list[Expr]:
    """Return the three tensors of a SciPy matrix, or of a sequence of them."""
    parts = matrix
    if hasattr(matrix, "indices"):
        parts = (matrix.data, matrix.indices, matrix.indptr)
    return [part if isinstance(part, Expr) else Constant(np.asarray(part)) for part in parts]


@builder("nn.sparse_dense")
def build_sparse_dense(dense_mat: Expr, sparse_mat: AnyValue, sparse_lhs: bool = False) -> Expr:
    """Build ``nn.sparse_dense``; the matrix is SciPy's, or its data, indices and indptr."""
    if sparse_lhs and not isinstance(dense_mat, Expr):
        dense_mat, sparse_mat = sparse_mat, dense_mat
    return call("nn.sparse_dense", dense_mat, *_parts(sparse_mat), sparse_lhs=sparse_lhs)


@relay_op(
    "nn.internal.sparse_dense_padded", traits=(Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),),
    infer=_padded_dense_type,
    decompose=partial(call, "nn.sparse_dense"),
    samples=[
        sample((3, 6), (7,), np.array([0, 4, 0, 1, 0, 2, 5], np.int32),
               np.array([0, 2, 3, 5, 7], np.int32)),
        sample((2, 9), (3, 2, 3), np.array([0, 2, 1], np.int32), np.array([0, 2, 3], np.int32)),
    ],
)  # fmt: skip
def sparse_dense_padded(
    data: Array,
    weight_data: Array,
    weight_indices: Array,
    weight_indptr: Array,
    *,
    sparse_lhs: bool = False,
) -> Array:
    """``nn.sparse_dense`` with a matrix whose rows a graphics processor has filled up with zeros.

    What was put in is zero, so that it adds nothing wherever it stands.
    """
    return sparse_dense(data, weight_data, weight_indices, weight_indptr, sparse_lhs=sparse_lhs)


def _sparse_transpose_type(
    sparse_data: TensorType, sparse_indices: TensorType, sparse_indptr: TensorType
) -> list[TensorType]:
    _require_sparse(sparse_data, sparse_indices, sparse_indptr)
    if sparse_data.rank != 1:
        raise TypeInferenceError(f"expected single elements, found {sparse_data!r}")
    return [sparse_data, sparse_indices, sparse_indptr]


@relay_op(
    "nn.sparse_transpose",
    traits=(Ordering, Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_sparse_transpose_type,
    decompose=decompose_sparse_transpose,
    samples=[
        sample((5,), np.array([0, 3, 1, 2, 3], np.int32), _POINTERS),
        sample((3,), np.array([2, 0, 1], np.int64), np.array([0, 1, 3, 3], np.int64)),
    ],
)
def sparse_transpose(
    sparse_data: Array, sparse_indices: Array, sparse_indptr: Array
) -> tuple[Array, Array, Array]:
    """The transpose of a square CSR matrix."""
    rows = rows_of_elements(sparse_indptr, len(sparse_indices))
    order = np.argsort(sparse_indices, kind="stable")
    count = len(sparse_indptr) - 1
    require_columns(sparse_indices, count)
    starts = np.concatenate([[0], np.cumsum(np.bincount(sparse_indices, minlength=count))])
    return (
        sparse_data[order],
        rows[order].astype(sparse_indices.dtype),
        starts.astype(sparse_indptr.dtype),
    )


@builder("nn.sparse_transpose")
def build_sparse_transpose(x: AnyValue) -> TupleWrapper:
    """Build ``nn.sparse_transpose``; the matrix is SciPy's, or its data, indices and indptr."""
    return TupleWrapper(call("nn.sparse_transpose", *_parts(x)), 3)


def _sparse_add_type(
    dense_data: TensorType,
    sparse_data: TensorType,
    sparse_indices: TensorType,
    sparse_indptr: TensorType,
) -> TensorType:
    _require_sparse(sparse_data, sparse_indices, sparse_indptr)
    require_same_dtype(dense_data, sparse_data)
    if dense_data.rank != 2:
        raise TypeInferenceError(f"expected a matrix, found {dense_data!r}")
    join_dim(dense_data.shape[0], _rows(sparse_data, sparse_indptr))
    return dense_data


@relay_op(
    "nn.sparse_add",
    infer=_sparse_add_type,
    decompose=decompose_sparse_add,
    samples=[
        sample((4, 6), (5,), _COLUMNS, _POINTERS),
        sample(tensor((4, 6), "int32"), tensor((5,), "int32"), _COLUMNS, _POINTERS),
    ],
)
def sparse_add(
    dense_data: Array, sparse_data: Array, sparse_indices: Array, sparse_indptr: Array
) -> Array:
    """The sum of a dense and a sparse matrix."""
    width = dense_data.shape[1]
    return dense_data + _dense(sparse_data, sparse_indices, sparse_indptr, width)


@builder("nn.sparse_add")
def build_sparse_add(dense_mat: Expr, sparse_mat: AnyValue) -> Expr:
    """Build ``nn.sparse_add``; the matrix is SciPy's, or its data, indices and indptr."""
    return call("nn.sparse_add", dense_mat, *_parts(sparse_mat))


def _sparse_conv2d_type(
    dense_data: TensorType,
    sparse_data: TensorType,
    sparse_indices: TensorType,
    sparse_indptr: TensorType,
    *,
    layout: str,
    kernel_size: Sequence[Dim],
) -> TensorType:
    _require_sparse(sparse_data, sparse_indices, sparse_indptr)
    dtype = require_same_dtype(dense_data, sparse_data)
    if dense_data.rank != 4:
        raise TypeInferenceError(f"expected data of layout {layout}, found {dense_data!r}")
    if tuple(kernel_size) not in ((1, 1), (3, 3)):
        raise TypeInferenceError(f"kernel_size: expected [1, 1] or [3, 3], found {kernel_size}")
    shape = list(dense_data.shape)
    shape[layout.index("C")] = _rows(sparse_data, sparse_indptr)
    return TensorType(shape, dtype)


@relay_op(
    "nn.sparse_conv2d", traits=(times(8), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),),
    infer=_sparse_conv2d_type,
    decompose=decompose_sparse_conv2d,
    samples=[
        sample((1, 3, 4, 6), (5,), _COLUMNS, _POINTERS),
        sample((1, 2, 3, 4), (5,), np.array([0, 9, 4, 17, 13], np.int32), _POINTERS,
               layout="NCHW", kernel_size=[3, 3]),
        sample((1, 3, 4, 2), (3, 2, 3), np.array([0, 4, 2], np.int32),
               np.array([0, 2, 3], np.int32), kernel_size=[3, 3]),
    ],
)  # fmt: skip
def sparse_conv2d(
    dense_data: Array,
    sparse_data: Array,
    sparse_indices: Array,
    sparse_indptr: Array,
    *,
    layout: Literal["NHWC", "NCHW"] = "NHWC",
    kernel_size: tuple[Dim, ...] = (1, 1),
) -> Array:
    """A convolution that keeps height and width, its weight a sparse matrix of a row a channel.

    Columns run over the window and then the channels for NHWC, over the channels and then the
    window for NCHW.
    """
    data = dense_data.transpose(layout_axes(layout, "NHWC"))
    size = int(kernel_size[0])  # type: ignore[arg-type]
    around = (size // 2, size // 2)
    padded = np.pad(data, ((0, 0), around, around, (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view
    windows: Array = view(padded, (size, size), (1, 2))  # type: ignore[call-overload]
    if layout == "NHWC":
        windows = windows.transpose(0, 1, 2, 4, 5, 3)
    columns = windows.reshape(*data.shape[:3], -1)
    matrix = _dense(sparse_data, sparse_indices, sparse_indptr, columns.shape[-1])
    depth = columns.shape[-1]
    total = np.matmul(exact_operand(columns, depth), exact_operand(matrix, depth).T)
    return to_product_dtype(total, dense_data, None).transpose(layout_axes("NHWC", layout))


def _require_coordinates(indices: TensorType) -> None:
    if indices.rank != 2 or not indices.dtype.startswith("int"):
        raise TypeInferenceError(f"expected a row of integers for each value, found {indices!r}")


def _fill_type(
    sparse_indices: TensorType,
    sparse_values: TensorType,
    dense_shape: TensorType,
    default_value: TensorType,
) -> list[TensorType]:
    _require_coordinates(sparse_indices)
    require_same_dtype(sparse_values, default_value)
    if sparse_values.rank != 1 or dense_shape.rank != 1 or default_value.rank > 1:
        raise TypeInferenceError(
            "expected a vector of values, a shape and a number, found "
            f"{sparse_values!r}, {dense_shape!r} and {default_value!r}"
        )
    join_dim(sparse_indices.shape[0], sparse_values.shape[0])
    join_dim(sparse_indices.shape[1], dense_shape.shape[0])
    return [
        TensorType((Any(), sparse_indices.shape[1]), sparse_indices.dtype),
        TensorType((Any(),), sparse_values.dtype),
        TensorType((Any(),), "bool"),
    ]


@relay_op(
    "sparse_fill_empty_rows",
    traits=(Ordering,),
    infer=_fill_type,
    decompose=decompose_sparse_fill_empty_rows,
    samples=[
        sample(np.array([[0, 1], [0, 3], [2, 0], [3, 1]], np.int64), (4,),
               np.array([5, 6], np.int64), np.float32(9)),
        sample(np.zeros((0, 3), np.int32), tensor((0,), "int32"), np.array([2, 2, 2], np.int32),
               np.int32(-1)),
    ],
)  # fmt: skip
def sparse_fill_empty_rows(
    sparse_indices: Array, sparse_values: Array, dense_shape: Array, default_value: Array
) -> tuple[Array, Array, Array]:
    """The entries in order of their rows, with one more in column 0 of each row that had none.

    The third result tells which rows these are.
    """
    rows = sparse_indices[:, 0]
    empty = np.bincount(rows, minlength=int(dense_shape[0])) == 0
    added = np.zeros((int(empty.sum()), sparse_indices.shape[1]), sparse_indices.dtype)
    added[:, 0] = np.flatnonzero(empty)
    indices = np.concatenate([sparse_indices, added])
    filler = np.full(len(added), default_value.item(), sparse_values.dtype)
    order = np.argsort(indices[:, 0], kind="stable")
    return indices[order], np.concatenate([sparse_values, filler])[order], empty


def _sparse_reshape_type(
    sparse_indices: TensorType, prev_shape: TensorType, new_shape: TensorType
) -> list[TensorType]:
    _require_coordinates(sparse_indices)
    if prev_shape.rank != 1 or new_shape.rank != 1:
        raise TypeInferenceError(f"expected two shapes, found {prev_shape!r} and {new_shape!r}")
    join_dim(sparse_indices.shape[1], prev_shape.shape[0])
    shape = (sparse_indices.shape[0], new_shape.shape[0])
    return [TensorType(shape, sparse_indices.dtype), new_shape]


@relay_op(
    "sparse_reshape", traits=(Fusion(FusionPattern.INJECTIVE),),
    infer=_sparse_reshape_type,
    decompose=decompose_sparse_reshape,
    samples=[
        sample(tensor((4, 3), "int64", low=0, high=1), np.array([2, 3, 6], np.int64),
               np.array([9, -1], np.int64)),
        sample(tensor((3, 1), "int32", low=0, high=11), np.array([12], np.int32),
               np.array([2, 3, 2], np.int32)),
    ],
)  # fmt: skip
def sparse_reshape(
    sparse_indices: Array, prev_shape: Array, new_shape: Array
) -> tuple[Array, Array]:
    """The coordinates of the same elements in another shape, and that shape without its -1."""
    before = tuple(int(length) for length in prev_shape)
    after = _resolve_shape(before, new_shape)
    flat = np.ravel_multi_index(tuple(sparse_indices.T), before)
    moved = np.stack(np.unravel_index(flat, after), -1)
    return moved.astype(sparse_indices.dtype), np.array(after, new_shape.dtype)


def _resolve_shape(before: Sequence[int], after: Array) -> tuple[int, ...]:
    """Return `after`, of as many elements as `before`, with the length that a -1 stands for."""
    result = new_shape(before, [int(length) for length in after], allowzero=True)
    return tuple(length for length in result if isinstance(length, int))
