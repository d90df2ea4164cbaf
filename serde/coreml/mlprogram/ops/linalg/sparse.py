"""Sparse matrices, whose coordinates are constants, as dense ones."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.coreml.mlprogram.ops.table import OPS
from serde.errors import Unsupported
from serde.relay.ir.expr import Constant, Expr
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.op.linalg.sparse import starts_of_columns
from serde.weights import Array


def _data(x: Expr, what: str) -> Array:
    if not isinstance(x, Constant):
        raise Unsupported(f"{what} of a sparse matrix that are computed")
    return x.data


def _lengths(x: Expr) -> tuple[int, ...]:
    shape = x.checked_type.concrete_shape if isinstance(x.checked_type, TensorType) else None
    if shape is None:
        raise Unsupported(f"a sparse matrix beside {x.checked_type!r}")
    return shape


def _dtype(x: Expr) -> str:
    return x.checked_type.dtype if isinstance(x.checked_type, TensorType) else "float32"


def _coordinates(indices: Expr, indptr: Expr) -> Array:
    """Return row and column of each element.

    Raises:
        Unsupported: They are not constants, or two elements have one place.
    """
    counts = np.diff(_data(indptr, "rows"))
    rows = allocation.repeat(allocation.arange(len(counts)), counts)
    coordinates = np.stack([rows, _data(indices, "columns")[: len(rows)]]).astype(np.int32)
    if len(np.unique(coordinates, axis=1).T) < len(rows):
        raise Unsupported("a sparse matrix with two elements in one place")
    return coordinates


def _matrix(matrix: tuple[Expr, ...], columns: int) -> Expr:
    """Return a sparse matrix, its elements and their coordinates, as a dense one."""
    data, indices, indptr = matrix
    coordinates = _coordinates(indices, indptr)
    count, *block = _lengths(data)
    height, width = block or (1, 1)
    rows = len(_data(indptr, "rows")) - 1
    shape = (rows, columns // width, *block)
    if count > coordinates.shape[1]:
        data = relay.strided_slice(data, [0], [coordinates.shape[1]], axes=[0])
    zeros = relay.const(allocation.zeros(shape), _dtype(data))
    found = relay.scatter_nd(zeros, relay.Constant(coordinates), data, "update")
    if not block:
        return found
    moved = relay.transpose(found, axes=[0, 2, 1, 3])
    return relay.reshape(moved, [rows * height, columns])


@OPS.expands("nn.sparse_dense", "nn.internal.sparse_dense_padded")
def expand_sparse_dense(x: Expr, *matrix: Expr, sparse_lhs: bool) -> Expr:
    dense = _matrix(matrix, _lengths(x)[1])
    left, right = (dense, x) if sparse_lhs else (x, dense)
    return call("nn.matmul", left, right, units=None, transpose_b=True)


@OPS.expands("nn.sparse_add")
def expand_sparse_add(x: Expr, *matrix: Expr) -> Expr:
    return relay.add(x, _matrix(matrix, _lengths(x)[1]))


@OPS.expands("nn.sparse_transpose")
def expand_sparse_transpose(data: Expr, indices: Expr, indptr: Expr) -> Expr:
    """The coordinates are constants, so that only the elements move when the model runs."""
    rows, columns = _coordinates(indices, indptr)
    order = np.argsort(columns, kind="stable").astype(np.int32)
    count = len(_data(indptr, "rows")) - 1
    starts = starts_of_columns(columns, count)
    moved = relay.take(data, relay.Constant(order), axis=0, mode="fast")
    coordinates = relay.const(rows[order], _dtype(indices))
    return relay.Tuple([moved, coordinates, relay.const(starts, _dtype(indptr))])


@OPS.expands("nn.sparse_conv2d")
def expand_sparse_conv2d(
    x: Expr, *matrix: Expr, layout: str, kernel_size: tuple[AnyValue, ...]
) -> Expr:
    """A convolution whose weight is the matrix made dense."""
    size = 3 if tuple(kernel_size) == (3, 3) else 1
    channels = _lengths(x)[layout.index("C")]
    dense = _matrix(matrix, channels * size * size)
    window = "OIHW" if layout == "NCHW" else "OHWI"
    named = {"O": -1, "I": channels, "H": size, "W": size}
    weight = relay.reshape(dense, [named[letter] for letter in window])
    if layout != "NCHW":
        weight = relay.transpose(weight, axes=[window.index(letter) for letter in "OIHW"])
        x = relay.transpose(x, axes=[layout.index(letter) for letter in "NCHW"])
    found = relay.nn.conv2d(
        x,
        weight,
        padding=(size // 2,) * 4,
        channels=_lengths(weight)[0],
        kernel_size=(size, size),
    )
    if layout == "NCHW":
        return found
    return relay.transpose(found, axes=["NCHW".index(letter) for letter in layout])


@OPS.expands("sparse_reshape")
def expand_sparse_reshape(sparse_indices: Expr, prev_shape: Expr, new_shape: Expr) -> Expr:
    """Each element's number in row-major order, divided by what each new axis steps over."""
    old = [int(length) for length in _data(prev_shape, "lengths")]
    new = [int(length) for length in _data(new_shape, "lengths")]
    known = int(np.prod([length for length in new if length != -1]))
    new = [int(np.prod(old)) // known if length == -1 else length for length in new]
    dtype = _dtype(sparse_indices)
    scaled = relay.multiply(sparse_indices, relay.const(_steps(old), dtype))
    numbers = relay.sum(scaled, axis=[1], keepdims=True)
    parts = relay.floor_divide(numbers, relay.const(_steps(new), dtype))
    found = relay.floor_mod(parts, relay.const(new, dtype))
    return relay.Tuple([found, relay.const(new, _dtype(new_shape))])


def _steps(shape: list[int]) -> list[int]:
    return [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
