"""Diagonals and triangles taken out of matrices, and matrices made of them."""

from __future__ import annotations

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import Array
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr


def _size(ctx: ImportContext, data: Expr) -> int:
    if ctx.type(data).rank < 2:
        raise Unsupported(f"expected matrices, found {ctx.type(data)!r}")
    rows, columns = ctx.static_lengths(data, [-2, -1])
    if rows != columns:
        raise Unsupported(f"expected square matrices, found {ctx.type(data)!r}")
    return rows


def _triangle(size: int, offset: int, lower: bool) -> tuple[Array, Array]:
    """Return rows and columns of the elements of a triangle in MXNet's order.

    A diagonal above the middle one bounds an upper triangle, one below it a lower one, whatever
    `lower` says. A lower triangle goes row by row, an upper one as its mirror image does.
    """
    side = max(size - abs(offset), 0)
    rows, columns = allocation.tril_indices(side)
    if offset < 0 or (offset == 0 and lower):
        return rows - offset, columns
    return columns, rows + offset


def _pick(ctx: ImportContext, data: Expr, rows: Array, columns: Array, offset: int) -> Expr:
    size = _size(ctx, data)
    if not len(rows):
        raise Unsupported(f"offset={offset} is outside a matrix of {size} rows")
    flat = relay.reshape(data, (*(0,) * (ctx.type(data).rank - 2), -1))
    indices = relay.const(rows * size + columns, "int64")
    return relay.take(flat, indices, axis=ctx.type(flat).rank - 1, mode="fast")


def _scatter_into_matrix(
    ctx: ImportContext, data: Expr, size: int, rows: Array, columns: Array
) -> Expr:
    """Return matrices that hold `data` at some rows and columns, and zeros elsewhere."""
    type_ = ctx.type(data)
    (count,) = ctx.static_lengths(data, [-1])
    indices = allocation.full((size, size), count)
    indices[rows, columns] = allocation.arange(count)
    padded = relay.nn.pad(data, [*((0, 0),) * (type_.rank - 1), (0, 1)], 0.0)
    return relay.take(padded, relay.const(indices, "int64"), axis=type_.rank - 1, mode="fast")


def diagonal_of(ctx: ImportContext, data: Expr, offset: int = 0) -> Expr:
    """Return a diagonal of each matrix.

    Raises:
        Unsupported: They are not square, or have no such diagonal.
    """
    rows = allocation.arange(_size(ctx, data) - abs(offset))
    return _pick(ctx, data, rows + max(-offset, 0), rows + max(offset, 0), offset)


@OPS.imports("_linalg_extractdiag")
def import_extractdiag(ctx: ImportContext, a: Expr, *, offset: int = 0) -> Expr:
    return diagonal_of(ctx, a, offset)


@OPS.imports("_linalg_makediag")
def import_makediag(ctx: ImportContext, a: Expr, *, offset: int = 0) -> Expr:
    (count,) = ctx.static_lengths(a, [-1])
    rows = allocation.arange(count)
    size = count + abs(offset)
    return _scatter_into_matrix(ctx, a, size, rows + max(-offset, 0), rows + max(offset, 0))


@OPS.imports("_linalg_extracttrian")
def import_extracttrian(
    ctx: ImportContext, a: Expr, *, offset: int = 0, lower: bool = True
) -> Expr:
    size = _size(ctx, a)
    if abs(offset) >= size:
        raise Unsupported(f"offset={offset} is outside a matrix of {size} rows")
    return _pick(ctx, a, *_triangle(size, offset, lower), offset)


@OPS.imports("_linalg_maketrian")
def import_maketrian(ctx: ImportContext, a: Expr, *, offset: int = 0, lower: bool = True) -> Expr:
    (count,) = ctx.static_lengths(a, [-1])
    rows = int((np.sqrt(8 * count + 1) - 1) / 2)
    if rows * (rows + 1) != 2 * count:
        raise Unsupported(f"no triangle has {count} elements")
    size = rows + abs(offset)
    return _scatter_into_matrix(ctx, a, size, *_triangle(size, offset, lower))


@OPS.imports("_linalg_sumlogdiag")
def import_sumlogdiag(ctx: ImportContext, a: Expr) -> Expr:
    result = relay.sum(relay.log(diagonal_of(ctx, a)), axis=-1)
    return relay.expand_dims(result, 0) if ctx.type(a).rank == 2 else result
