"""Products of matrices and of their triangles, as BLAS has them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


def scale_by(ctx: ImportContext, data: Expr, factor: float) -> Expr:
    """Return `data` times a number."""
    if factor == 1:
        return data
    return relay.multiply(data, relay.const(factor, ctx.type(data).dtype))


def transpose_if(ctx: ImportContext, data: Expr, really: bool = True) -> Expr:
    """Return the transpose of each matrix, if asked."""
    rank = ctx.type(data).rank
    if not really:
        return data
    return relay.transpose(data, [*range(rank - 2), rank - 1, rank - 2])


def product_of(
    ctx: ImportContext, a: Expr, b: Expr, transpose_a: bool = False, transpose_b: bool = False
) -> Expr:
    """Return the products of the matrices of two stacks, each transposed if asked.

    Raises:
        Unsupported: They have no matrices, or not the same axes before them.
    """
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


def _rows_last(ctx: ImportContext, data: Expr, axis: int) -> Expr:
    """Return `data` with the axis of its rows before that of its columns.

    Raises:
        Unsupported: There is no such axis.
    """
    rank = ctx.type(data).rank
    if not -rank <= axis < rank or axis % rank == rank - 1:
        raise Unsupported(f"axis={axis}: no axis of rows of {ctx.type(data)!r}")
    if axis % rank == rank - 2:
        return data
    others = [each for each in range(rank - 1) if each != axis % rank]
    return relay.transpose(data, [*others, axis % rank, rank - 1])


def _rows_back(ctx: ImportContext, data: Expr, axis: int) -> Expr:
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
def import_gemm2(ctx: ImportContext, a: Expr, b: Expr, *, gemm: Gemm) -> Expr:
    left, right = (_rows_last(ctx, each, gemm.axis) for each in (a, b))
    product = product_of(ctx, left, right, gemm.transpose_a, gemm.transpose_b)
    return _rows_back(ctx, scale_by(ctx, product, gemm.alpha), gemm.axis)


@OPS.imports("_linalg_gemm")
def import_gemm(
    ctx: ImportContext, a: Expr, b: Expr, c: Expr, *, gemm: Gemm, beta: float = 1.0
) -> Expr:
    return relay.add(import_gemm2(ctx, a, b, gemm=gemm), scale_by(ctx, c, beta))


@OPS.imports("_linalg_syrk")
def import_syrk(
    ctx: ImportContext, a: Expr, *, transpose: bool = False, alpha: float = 1.0
) -> Expr:
    return scale_by(ctx, product_of(ctx, a, a, transpose, not transpose), alpha)


@OPS.imports("_linalg_trmm")
def import_trmm(ctx: ImportContext, a: Expr, b: Expr, *, factor: TriangularFactor) -> Expr:
    """What lies outside the triangle of the first is taken for zero."""
    triangle = relay.trilu(a, 0, upper=not factor.lower)
    if factor.rightside:
        product = product_of(ctx, b, triangle, False, factor.transpose)
    else:
        product = product_of(ctx, triangle, b, factor.transpose)
    return scale_by(ctx, product, factor.alpha)


@OPS.imports("khatri_rao")
def import_khatri_rao(ctx: ImportContext, *args: Expr, num_args: int = 0) -> Expr:
    def multiply_rows(left: Expr, right: Expr) -> Expr:
        pairs = relay.multiply(relay.expand_dims(left, 1), relay.expand_dims(right, 0))
        return relay.reshape(pairs, (-3, 0))

    if not args:
        raise Unsupported("a product of no matrices")
    return reduce(multiply_rows, args)
