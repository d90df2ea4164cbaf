"""Products of matrices and of their triangles, as BLAS has them; diagonals and triangles."""

from __future__ import annotations

from functools import reduce

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core import Array, dataclass
from serde.errors import Unsupported
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir import Expr, call


def scale_by(ctx: Import, data: Expr, factor: float) -> Expr:
    """Return `data` times a number."""
    if factor == 1:
        return data
    return relay.multiply(data, relay.const(factor, ctx.type(data).dtype))


def transpose_if(ctx: Import, data: Expr, really: bool = True) -> Expr:
    """Return the transpose of each matrix, if asked."""
    rank = ctx.type(data).rank
    if not really:
        return data
    return relay.transpose(data, [*range(rank - 2), rank - 1, rank - 2])


def product_of(
    ctx: Import, a: Expr, b: Expr, transpose_a: bool = False, transpose_b: bool = False
) -> Expr:
    """Return the products of the matrices of two stacks, each transposed if asked."""
    left, right = ctx.type(a), ctx.type(b)
    if left.rank != right.rank or left.rank < 2:
        raise Unsupported(f"expected matrices of one rank, found {left!r} and {right!r}")
    if left.rank == 2:
        return relay.nn.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    if left.rank == 3:
        return relay.nn.batch_matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    return call(
        "serde.matmul", transpose_if(ctx, a, transpose_a), transpose_if(ctx, b, transpose_b)
    )


def _rows_last(ctx: Import, data: Expr, axis: int) -> Expr:
    """Return `data` with the axis of its rows before that of its columns."""
    rank = ctx.type(data).rank
    if not -rank <= axis < rank or axis % rank == rank - 1:
        raise Unsupported(f"axis={axis}: no axis of rows of {ctx.type(data)!r}")
    if axis % rank == rank - 2:
        return data
    others = [each for each in range(rank - 1) if each != axis % rank]
    return relay.transpose(data, [*others, axis % rank, rank - 1])


def _rows_back(ctx: Import, data: Expr, axis: int) -> Expr:
    rank = ctx.type(data).rank
    if axis % rank == rank - 2:
        return data
    order = list(range(rank - 2))
    order.insert(axis % rank, rank - 2)
    return relay.transpose(data, [*order, rank - 1])


@dataclass(frozen=True, kw_only=True)
class Gemm:
    """Attributes of ``alpha * op(a) op(b)``."""

    transpose_a: bool = False
    transpose_b: bool = False
    alpha: float = 1.0
    axis: int = -2


@dataclass(frozen=True, kw_only=True)
class TriangularFactor:
    """Attributes of operators on a triangular matrix and another one."""

    transpose: bool = False
    rightside: bool = False
    lower: bool = True
    alpha: float = 1.0


@OPS.imports("_linalg_gemm2")
def import_gemm2(ctx: Import, a: Expr, b: Expr, *, gemm: Gemm) -> Expr:
    left, right = (_rows_last(ctx, each, gemm.axis) for each in (a, b))
    product = product_of(ctx, left, right, gemm.transpose_a, gemm.transpose_b)
    return _rows_back(ctx, scale_by(ctx, product, gemm.alpha), gemm.axis)


@OPS.imports("_linalg_gemm")
def import_gemm(ctx: Import, a: Expr, b: Expr, c: Expr, *, gemm: Gemm, beta: float = 1.0) -> Expr:
    return relay.add(import_gemm2(ctx, a, b, gemm=gemm), scale_by(ctx, c, beta))


@OPS.imports("_linalg_syrk")
def import_syrk(ctx: Import, a: Expr, *, transpose: bool = False, alpha: float = 1.0) -> Expr:
    return scale_by(ctx, product_of(ctx, a, a, transpose, not transpose), alpha)


@OPS.imports("_linalg_trmm")
def import_trmm(ctx: Import, a: Expr, b: Expr, *, factor: TriangularFactor) -> Expr:
    """What lies outside the triangle of the first is taken for zero."""
    triangle = relay.trilu(a, 0, upper=not factor.lower)
    if factor.rightside:
        product = product_of(ctx, b, triangle, False, factor.transpose)
    else:
        product = product_of(ctx, triangle, b, factor.transpose)
    return scale_by(ctx, product, factor.alpha)


@OPS.imports("khatri_rao")
def import_khatri_rao(ctx: Import, *args: Expr, num_args: int = 0) -> Expr:
    def multiply_rows(left: Expr, right: Expr) -> Expr:
        pairs = relay.multiply(relay.expand_dims(left, 1), relay.expand_dims(right, 0))
        return relay.reshape(pairs, (-3, 0))

    if not args:
        raise Unsupported("a product of no matrices")
    return reduce(multiply_rows, args)


def _size(ctx: Import, data: Expr) -> int:
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


def _pick(ctx: Import, data: Expr, rows: Array, columns: Array, offset: int) -> Expr:
    size = _size(ctx, data)
    if not len(rows):
        raise Unsupported(f"offset={offset} is outside a matrix of {size} rows")
    flat = relay.reshape(data, (*(0,) * (ctx.type(data).rank - 2), -1))
    indices = relay.const(rows * size + columns, "int64")
    return relay.take(flat, indices, axis=ctx.type(flat).rank - 1, mode="fast")


def _scatter_into_matrix(ctx: Import, data: Expr, size: int, rows: Array, columns: Array) -> Expr:
    """Return matrices that hold `data` at some rows and columns, and zeros elsewhere."""
    type_ = ctx.type(data)
    (count,) = ctx.static_lengths(data, [-1])
    indices = allocation.full((size, size), count)
    indices[rows, columns] = allocation.arange(count)
    padded = relay.nn.pad(data, [*((0, 0),) * (type_.rank - 1), (0, 1)], 0.0)
    return relay.take(padded, relay.const(indices, "int64"), axis=type_.rank - 1, mode="fast")


def diagonal_of(ctx: Import, data: Expr, offset: int = 0) -> Expr:
    """Return a diagonal of each matrix."""
    rows = allocation.arange(_size(ctx, data) - abs(offset))
    return _pick(ctx, data, rows + max(-offset, 0), rows + max(offset, 0), offset)


@OPS.imports("_linalg_extractdiag")
def import_extractdiag(ctx: Import, a: Expr, *, offset: int = 0) -> Expr:
    return diagonal_of(ctx, a, offset)


@OPS.imports("_linalg_makediag")
def import_makediag(ctx: Import, a: Expr, *, offset: int = 0) -> Expr:
    (count,) = ctx.static_lengths(a, [-1])
    rows = allocation.arange(count)
    size = count + abs(offset)
    return _scatter_into_matrix(ctx, a, size, rows + max(-offset, 0), rows + max(offset, 0))


@OPS.imports("_linalg_extracttrian")
def import_extracttrian(ctx: Import, a: Expr, *, offset: int = 0, lower: bool = True) -> Expr:
    size = _size(ctx, a)
    if abs(offset) >= size:
        raise Unsupported(f"offset={offset} is outside a matrix of {size} rows")
    return _pick(ctx, a, *_triangle(size, offset, lower), offset)


@OPS.imports("_linalg_maketrian")
def import_maketrian(ctx: Import, a: Expr, *, offset: int = 0, lower: bool = True) -> Expr:
    (count,) = ctx.static_lengths(a, [-1])
    rows = int((np.sqrt(8 * count + 1) - 1) / 2)
    if rows * (rows + 1) != 2 * count:
        raise Unsupported(f"no triangle has {count} elements")
    size = rows + abs(offset)
    return _scatter_into_matrix(ctx, a, size, *_triangle(size, offset, lower))


@OPS.imports("_linalg_sumlogdiag")
def import_sumlogdiag(ctx: Import, a: Expr) -> Expr:
    result = relay.sum(relay.log(diagonal_of(ctx, a)), axis=-1)
    return relay.expand_dims(result, 0) if ctx.type(a).rank == 2 else result
