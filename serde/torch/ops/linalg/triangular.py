"""Factors of positive definite matrices, and triangular systems."""

from __future__ import annotations

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.torch.export_context import ExportContext, Value
from serde.torch.import_context import ImportContext
from serde.torch.ops.linalg.elimination import align_batch, no_info, swap_last
from serde.torch.ops.shape.matrix import identity_like
from serde.torch.ops.table import OPS
from serde.torch.ops.written import cast, widen


@OPS.imports("aten::cholesky", "aten::linalg_cholesky")
def import_cholesky(ctx: ImportContext, self: Expr, *, upper: bool = False) -> Expr:
    """Either triangle is that of a symmetric matrix, of which PyTorch reads the one asked for."""
    if not upper:
        return call("serde.cholesky", self)
    return swap_last(ctx, call("serde.cholesky", swap_last(ctx, self)))


@OPS.imports("aten::linalg_cholesky_ex", ignored=("check_errors",))
def import_cholesky_ex(ctx: ImportContext, self: Expr, *, upper: bool = False) -> tuple[Expr, Expr]:
    """The second result is 0, as of matrices that have such a factor."""
    return import_cholesky(ctx, self, upper=upper), no_info(ctx, self)


def _triangular(
    ctx: ImportContext, a: Expr, b: Expr, upper: bool, transpose: bool, unit: bool
) -> Expr:
    """Return the solution of systems of a triangle, whose diagonal may count as ones."""
    if unit:
        identity = identity_like(ctx, a)
        on_diagonal = relay.not_equal(identity, ctx.scalar(0, ctx.dtype(a)))
        a = relay.where(on_diagonal, identity, a)
    one, two = align_batch(ctx, a, b)
    return call("serde.triangular_solve", one, two, lower=not upper, transpose=transpose)


@OPS.imports("aten::linalg_solve_triangular")
def import_solve_triangular(
    ctx: ImportContext,
    self: Expr,
    B: Expr,  # noqa: N803
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Expr:
    if left:
        return _triangular(ctx, self, B, upper, False, unitriangular)
    found = _triangular(ctx, self, swap_last(ctx, B), upper, True, unitriangular)
    return swap_last(ctx, found)


@OPS.imports("aten::triangular_solve")
def import_triangular_solve(
    ctx: ImportContext,
    self: Expr,
    A: Expr,  # noqa: N803
    *,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Expr, Expr]:
    found = _triangular(ctx, A, self, upper, transpose, unitriangular)
    return found, align_batch(ctx, A, self)[0]


@OPS.imports("aten::cholesky_solve")
def import_cholesky_solve(
    ctx: ImportContext, self: Expr, input2: Expr, *, upper: bool = False
) -> Expr:
    """The factor is that of the matrix of the system, which is solved in two steps."""
    half = _triangular(ctx, input2, self, upper, upper, False)
    return _triangular(ctx, input2, half, upper, not upper, False)


@OPS.imports("aten::cholesky_inverse")
def import_cholesky_inverse(ctx: ImportContext, self: Expr, *, upper: bool = False) -> Expr:
    return import_cholesky_solve(ctx, identity_like(ctx, self), self, upper=upper)


@OPS.exports("serde.triangular_solve")
def export_triangular_solve(
    ctx: ExportContext, a: Value, b: Value, *, lower: bool, transpose: bool
) -> Value:
    (x, work), (y, _) = widen(ctx, a), widen(ctx, b)
    if transpose:
        x = ctx.method(x, "transpose", -2, -1)
    upper = lower == transpose
    found = ctx.call("torch.linalg.solve_triangular", x, y, upper=upper)
    return cast(ctx, found, ctx.type(b).dtype, work)
