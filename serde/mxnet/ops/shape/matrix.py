"""Diagonals and triangles of matrices."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.shape.arrange import axes_last
from serde.mxnet.ops.shape.create import FLOAT32
from serde.mxnet.ops.shape.reshape import reshape_to
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir.expr import Expr


def _eye(rows: int, columns: int, k: int, dtype: np.dtype[AnyValue]) -> Expr:
    """Where the numbers of row and column differ by `k`: no constant that grows with both."""
    if min(rows, columns) < 0:
        raise Unsupported(f"a matrix of {rows} rows and {columns} columns")
    row = relay.expand_dims(relay.arange(k, rows + k, 1, dtype="int64"), 1)
    return relay.cast(relay.equal(row, relay.arange(0, columns, 1, dtype="int64")), dtype)


@OPS.imports("_eye", ignored=("ctx",))
def import_eye(
    ctx: Import,
    *,
    N: int,  # noqa: N803
    M: int = 0,  # noqa: N803
    k: int = 0,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    """No columns given, or 0, means as many as rows."""
    return _eye(N, M or N, k, dtype)


@OPS.imports("_npi_eye", ignored=("ctx",))
def import_np_eye(
    ctx: Import,
    *,
    N: int,  # noqa: N803
    M: int | None = None,  # noqa: N803
    k: int = 0,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    return _eye(N, N if M is None else M, k, dtype)


@OPS.imports("_npi_identity", ignored=("ctx",))
def import_np_identity(
    ctx: Import, *, shape: tuple[int, ...] = (), dtype: np.dtype[AnyValue] = FLOAT32
) -> Expr:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise Unsupported(f"expected the shape of a square matrix, found {shape}")
    return _eye(shape[0], shape[1], 0, dtype)


def _matrix(ctx: Import, data: Expr, k: int) -> Expr:
    """Return the matrix that has a vector on diagonal `k`, zeros elsewhere."""
    (length,) = ctx.static_shape(data, 1)
    zero = scalar_like(ctx, data, 0)
    # Column j of the result has the element of column j; of a lower diagonal, row i that of row i.
    line = relay.expand_dims(
        relay.nn.pad(data, [(abs(k), 0)], zero) if k else data, 0 if k >= 0 else 1
    )
    size = length + abs(k)
    return relay.where(relay.const(allocation.eye(size, k=k, dtype=np.bool_)), line, zero)


def _diagonal(ctx: Import, data: Expr, k: int, axis1: int, axis2: int) -> Expr:
    """Return diagonal `k` of two axes as the last one: its indices in the matrix as a row."""
    rows, columns = ctx.static_lengths(data, (axis1, axis2))
    last = axes_last(ctx, data, axis1, axis2)
    length = max(0, min(rows + min(k, 0), columns - max(k, 0)))
    steps = allocation.arange(length)
    indices = (steps - min(k, 0)) * columns + steps + max(k, 0)
    outer = ctx.type(last).shape[:-2]
    flat = reshape_to(last, [*outer, rows * columns])
    return relay.take(flat, relay.Constant(indices), axis=len(outer), mode="fast")


@OPS.imports("diag")
def import_diag(ctx: Import, data: Expr, *, k: int = 0, axis1: int = 0, axis2: int = 1) -> Expr:
    """Of a vector the matrix that has it as a diagonal."""
    if ctx.type(data).rank == 1:
        return _matrix(ctx, data, k)
    return _diagonal(ctx, data, k, axis1, axis2)


@OPS.imports("_np_diag")
def import_np_diag(ctx: Import, data: Expr, *, k: int = 0) -> Expr:
    if ctx.type(data).rank > 2:
        raise Unsupported(f"expected a vector or a matrix, found {ctx.type(data)!r}")
    return import_diag(ctx, data, k=k)


@OPS.imports("_np_diagflat")
def import_diagflat(ctx: Import, data: Expr, *, k: int = 0) -> Expr:
    return _matrix(ctx, relay.reshape(data, (-1,)), k)


@OPS.imports("_np_diagonal")
def import_diagonal(
    ctx: Import, data: Expr, *, offset: int = 0, axis1: int = 0, axis2: int = 1
) -> Expr:
    return _diagonal(ctx, data, offset, axis1, axis2)


@OPS.imports("_np_trace")
def import_trace(
    ctx: Import, data: Expr, *, offset: int = 0, axis1: int = 0, axis2: int = 1
) -> Expr:
    return relay.sum(_diagonal(ctx, data, offset, axis1, axis2), axis=(-1,))


@OPS.imports("_npi_tril")
def import_tril(ctx: Import, data: Expr, *, k: int = 0) -> Expr:
    """Of a vector the triangle of a square whose every row it is."""
    if ctx.type(data).rank == 1:
        (length,) = ctx.type(data).shape
        data = relay.broadcast_to(data, [length, length])
    return relay.trilu(data, k, upper=False)


@OPS.imports("_npi_diag_indices_from")
def import_diag_indices_from(ctx: Import, data: Expr) -> Expr:
    shape = ctx.static_shape(data)
    if len(shape) < 2 or len(set(shape)) > 1:
        raise Unsupported(f"expected axes of equal lengths, found {ctx.type(data)!r}")
    return relay.Constant(allocation.tile(allocation.arange(shape[0]), (len(shape), 1)))
