"""Factors, systems, inverses, determinants, eigenvalues and singular values of matrices."""

from __future__ import annotations

from math import prod
from typing import Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.linalg.blas import TriangularFactor, product_of, scale_by, transpose_if
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TupleGetItem, call, normalize_axes
from serde.relay.op.linalg.columns import identity_like
from serde.walk.pairs import pair, writes


@OPS.imports("_linalg_potri")
def import_potri(ctx: Import, a: Expr) -> Expr:
    """The inverse of L L^T, of which the lower triangle of `a` is the factor L."""
    inverse = call("serde.triangular_solve", a, identity_like(a))
    return product_of(ctx, inverse, inverse, transpose_a=True)


@OPS.imports("_linalg_trsm")
def import_trsm(ctx: Import, a: Expr, b: Expr, *, factor: TriangularFactor) -> Expr:
    """X op(A) = B is op(A)^T X^T = B^T."""
    rightside, transpose = factor.rightside, factor.transpose != factor.rightside
    given = transpose_if(ctx, scale_by(ctx, b, factor.alpha), rightside)
    found = call("serde.triangular_solve", a, given, lower=factor.lower, transpose=transpose)
    return transpose_if(ctx, found, rightside)


@OPS.imports("_linalg_gelqf")
def import_gelqf(ctx: Import, a: Expr) -> list[Expr]:
    found = call("serde.lq", a)
    return [TupleGetItem(found, 1), TupleGetItem(found, 0)]


@OPS.exports("serde.lq")
def export_lq(ctx: Export, data: Value) -> tuple[Value, ...]:
    orthogonal, lower = ctx.emit_tuple("_linalg_gelqf", data, outputs=2)
    return lower, orthogonal


def _of_matrix(ctx: Import, result: Expr, matrix: Expr) -> Expr:
    """Return what one matrix yields as MXNet shapes it: a scalar under NumPy's shapes alone."""
    if ctx.type(matrix).rank > 2 or ctx.np_shape:
        return result
    return relay.expand_dims(result, 0)


@OPS.imports("_linalg_det")
def import_det(ctx: Import, a: Expr) -> Expr:
    return _of_matrix(ctx, call("serde.det", a), a)


@OPS.imports("_linalg_slogdet")
def import_slogdet(ctx: Import, a: Expr) -> list[Expr]:
    found = call("serde.slogdet", a)
    return [_of_matrix(ctx, TupleGetItem(found, index), a) for index in (0, 1)]


def _as_floats(ctx: Import, *data: Expr) -> list[Expr]:
    """Return tensors in the dtype that MXNet computes in: float64 unless all are float32."""
    dtypes = {ctx.type(each).dtype for each in data}
    if dtypes & {"float16", "bool"}:
        raise Unsupported(f"MXNet solves no equations of {', '.join(sorted(dtypes))}")
    wide = "float32" if dtypes == {"float32"} else "float64"
    return [relay.cast(each, wide) if ctx.type(each).dtype != wide else each for each in data]


@OPS.imports("_npi_solve")
def import_solve(ctx: Import, a: Expr, b: Expr) -> Expr:
    """One axis less than the matrices have makes one right side of each."""
    left, right = _as_floats(ctx, a, b)
    if ctx.type(left).rank == ctx.type(right).rank:
        return call("serde.solve", left, right)
    last = ctx.type(right).rank
    found = call("serde.solve", left, relay.expand_dims(right, last))
    return relay.squeeze(found, [last])


@OPS.imports("_npi_tensorinv")
def import_tensorinv(ctx: Import, a: Expr, *, ind: int = 2) -> Expr:
    shape = ctx.static_shape(a)
    if not 0 < ind <= len(shape) or 0 in shape:
        raise Unsupported(f"ind={ind}: no matrix is made of {ctx.type(a)!r}")
    matrix = relay.reshape(a, (prod(shape[:ind]), prod(shape[ind:])))
    return relay.reshape(call("serde.inverse", matrix), (*shape[ind:], *shape[:ind]))


@OPS.imports("_npi_tensorsolve")
def import_tensorsolve(
    ctx: Import, a: Expr, b: Expr, *, a_axes: tuple[int, ...] | None = ()
) -> Expr:
    """The axes named go behind the others; those behind as many as `b` has are the unknowns'."""
    left, right = _as_floats(ctx, a, b)
    rank, given = ctx.type(left).rank, ctx.type(right).rank
    behind = normalize_axes(a_axes or (), rank)
    order = [*(axis for axis in range(rank) if axis not in behind), *behind]
    if order != sorted(order):
        left = relay.transpose(left, order)
    unknown = ctx.static_shape(left)[given:]
    matrix = relay.reshape(left, (-1, prod(unknown)))
    found = call("serde.solve", matrix, relay.reshape(right, (-1, 1)))
    return relay.reshape(found, unknown)


@OPS.imports("_linalg_syevd")
def import_syevd(ctx: Import, a: Expr) -> list[Expr]:
    """MXNet gives the eigenvectors as rows, before the eigenvalues."""
    found = call("serde.eigh", a)
    return [transpose_if(ctx, TupleGetItem(found, 1)), TupleGetItem(found, 0)]


@OPS.imports("_npi_eigh")
def import_eigh(ctx: Import, a: Expr, *, UPLO: str = "L") -> list[Expr]:  # noqa: N803
    (data,) = _as_floats(ctx, a)
    found = call("serde.eigh", data, triangle=_triangle(UPLO))
    return [TupleGetItem(found, index) for index in (0, 1)]


@OPS.imports("_npi_eigvalsh")
def import_eigvalsh(ctx: Import, a: Expr, *, UPLO: str = "L") -> Expr:  # noqa: N803
    return import_eigh(ctx, a, UPLO=UPLO)[0]


def _triangle(letter: str) -> Literal["lower", "upper"]:
    if letter not in ("L", "U", "76", "85"):
        raise Unsupported(f"UPLO={letter}: expected L or U")
    return "lower" if letter in ("L", "76") else "upper"


@OPS.exports("serde.eigh")
def export_eigh(ctx: Export, data: Value, *, triangle: str) -> tuple[Value, ...]:
    return ctx.emit_tuple("_npi_eigh", data, outputs=2, UPLO="L" if triangle == "lower" else "U")


@OPS.imports("_npi_eig")
def import_eig(ctx: Import, a: Expr) -> list[Expr]:
    (data,) = _as_floats(ctx, a)
    found = call("serde.eig", data)
    return [TupleGetItem(found, index) for index in (0, 1)]


@OPS.imports("_npi_eigvals")
def import_eigvals(ctx: Import, a: Expr) -> Expr:
    return import_eig(ctx, a)[0]


@OPS.imports("_npi_svd")
def import_svd(ctx: Import, a: Expr) -> list[Expr]:
    found = call("serde.svd", a)
    return [TupleGetItem(found, index) for index in (0, 1, 2)]


@OPS.exports("serde.svd")
def export_svd(ctx: Export, data: Value) -> tuple[Value, ...]:
    """MXNet takes no more rows than columns, so that others are transposed before and after."""
    rows, columns = ctx.static_lengths(data, [-2, -1])
    if rows <= columns:
        return ctx.emit_tuple("_npi_svd", data, outputs=3)
    rank = ctx.type(data).rank
    order = [*range(rank - 2), rank - 1, rank - 2]
    transposed = ctx.emit("transpose", data, axes=order)
    left, values, right = ctx.emit_tuple("_npi_svd", transposed, outputs=3)
    return ctx.emit("transpose", right, axes=order), values, ctx.emit("transpose", left, axes=order)


def pseudo_inverse(ctx: Import, a: Expr, rcond: Expr) -> Expr:
    """Return V diag(1 / s) U^T, without the singular values below a share of the greatest."""
    type_ = ctx.type(a)
    if 0 in type_.shape[-2:]:
        return transpose_if(ctx, a)
    left, values, right = (TupleGetItem(call("serde.svd", a), index) for index in (0, 1, 2))
    greatest = relay.max(values, axis=-1, keepdims=True)
    kept = relay.greater(values, relay.multiply(rcond, greatest))
    zero, one = (relay.const(number, type_.dtype) for number in (0.0, 1.0))
    inverted = relay.where(kept, relay.divide(one, relay.where(kept, values, one)), zero)
    weighted = relay.multiply(left, relay.expand_dims(inverted, type_.rank - 2))
    return product_of(ctx, right, weighted, transpose_a=True, transpose_b=True)


@OPS.imports("_npi_pinv_scalar_rcond")
def import_pinv_scalar_rcond(
    ctx: Import, a: Expr, *, rcond: float = 1e-15, hermitian: bool = False
) -> Expr:
    _require_general(hermitian)
    return pseudo_inverse(ctx, a, relay.const(rcond, ctx.type(a).dtype))


@OPS.imports("_npi_pinv")
def import_pinv(ctx: Import, a: Expr, rcond: Expr, *, hermitian: bool = False) -> Expr:
    _require_general(hermitian)
    share = relay.cast(rcond, ctx.type(a).dtype)
    return pseudo_inverse(ctx, a, relay.expand_dims(share, ctx.type(rcond).rank))


def _require_general(hermitian: bool) -> None:
    if hermitian:
        raise Unsupported("hermitian=True, which MXNet ignores")


OPS.pairs(
    writes("_linalg_trsm", "serde.triangular_solve", "lower", "transpose"),
    writes("_linalg_det", "serde.det"),
    writes("_linalg_slogdet", "serde.slogdet"),
    writes("_npi_solve", "serde.solve"),
    writes("_npi_eig", "serde.eig"),
    pair(("_linalg_potrf", "_npi_cholesky"), "serde.cholesky"),
    pair("_linalg_inverse", "serde.inverse"),
)
