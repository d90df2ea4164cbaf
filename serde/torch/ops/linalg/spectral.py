"""Factors with orthonormal columns, and eigenvalues of symmetric matrices."""

from __future__ import annotations

from typing import Literal

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, TupleGetItem, TupleWrapper, call, is_float, limits
from serde.torch.ops.linalg.elimination import make_parts_exporter, swap_last
from serde.torch.ops.linalg.product import build_matmul
from serde.torch.ops.shape.matrix import identity_like
from serde.torch.ops.table import OPS, Export, Import, Scalar, Value
from serde.torch.ops.written import cast, widen


def _qr(ctx: Import, x: Expr) -> tuple[Expr, Expr]:
    """Return Q and R of matrices with no fewer rows than columns, by LQ of their transposes."""
    rows, columns = ctx.last_lengths(x, 2)
    if isinstance(rows, int) and isinstance(columns, int) and rows < columns:
        square = relay.strided_slice(x, begin=[0], end=[rows], axes=[-1])
        orthogonal, _ = _qr(ctx, square)
        return orthogonal, build_matmul(ctx, swap_last(ctx, orthogonal), x)
    parts = call("serde.lq", swap_last(ctx, x))
    return swap_last(ctx, TupleGetItem(parts, 1)), swap_last(ctx, TupleGetItem(parts, 0))


@OPS.imports("aten::linalg_qr")
def import_linalg_qr(
    ctx: Import,
    A: Expr,  # noqa: N803
    *,
    mode: Literal["reduced", "complete", "r"] = "reduced",
) -> tuple[Expr, Expr]:
    rows, columns = ctx.last_lengths(A, 2)
    if mode == "complete" and not (
        isinstance(rows, int) and isinstance(columns, int) and rows <= columns
    ):
        raise Unsupported("columns beyond the rank of a matrix", hint="use mode='reduced'")
    orthogonal, triangle = _qr(ctx, A)
    if mode == "r":
        return relay.zeros((0,), ctx.dtype(A)), triangle
    return orthogonal, triangle


@OPS.imports("aten::qr")
def import_qr(ctx: Import, self: Expr, *, some: bool = True) -> tuple[Expr, Expr]:
    return import_linalg_qr(ctx, self, mode="reduced" if some else "complete")


def _svd(ctx: Import, x: Expr, full: bool) -> list[Expr]:
    rows, columns = ctx.last_lengths(x, 2)
    if full and rows != columns:
        raise Unsupported("vectors beyond the rank of a matrix", hint="use full_matrices=False")
    return list(TupleWrapper(call("serde.svd", x), 3))


@OPS.imports("aten::linalg_svd", ignored=("driver",))
def import_linalg_svd(ctx: Import, A: Expr, *, full_matrices: bool = True) -> list[Expr]:  # noqa: N803
    return _svd(ctx, A, full_matrices)


@OPS.imports("aten::_linalg_svd", ignored=("driver",))
def import_plain_svd(
    ctx: Import,
    A: Expr,  # noqa: N803
    *,
    full_matrices: bool = False,
    compute_uv: bool = True,
) -> list[Expr]:
    """Vectors that are not asked for have no elements."""
    if compute_uv:
        return _svd(ctx, A, full_matrices)
    nothing = relay.zeros((0,), ctx.dtype(A))
    return [nothing, import_svdvals(ctx, A), nothing]


@OPS.imports("aten::svd")
def import_svd(
    ctx: Import, self: Expr, *, some: bool = True, compute_uv: bool = True
) -> tuple[Expr, Expr, Expr]:
    """The third result is not transposed."""
    if not compute_uv:
        raise Unsupported("singular values with zeros for vectors", hint="use linalg.svdvals")
    left, values, right = _svd(ctx, self, not some)
    return left, values, swap_last(ctx, right)


@OPS.imports("aten::linalg_svdvals", ignored=("driver",))
def import_svdvals(ctx: Import, A: Expr) -> Expr:  # noqa: N803
    return TupleGetItem(call("serde.svd", A), 1)


TRIANGLES = {"L": "lower", "U": "upper"}


@OPS.imports("aten::linalg_eigh")
def import_eigh(
    ctx: Import,
    self: Expr,
    *,
    UPLO: Literal["L", "U"] = "L",  # noqa: N803
) -> list[Expr]:
    """The signs of vectors are nobody's to say."""
    return list(TupleWrapper(call("serde.eigh", self, triangle=TRIANGLES[UPLO]), 2))


@OPS.imports("aten::linalg_eigvalsh")
def import_eigvalsh(
    ctx: Import,
    self: Expr,
    *,
    UPLO: Literal["L", "U"] = "L",  # noqa: N803
) -> Expr:
    return TupleGetItem(call("serde.eigh", self, triangle=TRIANGLES[UPLO]), 0)


def _parts(ctx: Import, x: Expr, symmetric: bool) -> list[Expr]:
    """Return U, s and V^T of matrices; of symmetric ones by eigenvalues, which have signs."""
    if not symmetric:
        return _svd(ctx, x, False)
    values, vectors = import_eigh(ctx, x)
    return [vectors, values, swap_last(ctx, vectors)]


def _cutoff(ctx: Import, x: Expr, values: Expr, atol: Expr | None, rtol: Expr | None) -> Expr:
    """Return below what a singular value counts as zero: by default by the precision.

    Limits may be one for each matrix; a relative one is 0 where there is an absolute one alone.
    """
    dtype = ctx.dtype(x)
    rows, columns = (ctx.scalar(ctx.size(x, axis), dtype) for axis in (-2, -1))
    if not is_float(dtype):
        raise Unsupported(f"singular values of {dtype}")
    epsilon = ctx.scalar(float(limits(dtype).eps), dtype)
    precision = ctx.fold(relay.multiply(relay.maximum(rows, columns), epsilon))
    least = ctx.scalar(0, dtype) if atol is None else _beside(ctx, atol, dtype)
    if rtol is None:
        part: Expr = precision
        if atol is not None:
            none = relay.greater(least, ctx.scalar(0, dtype))
            part = relay.where(none, ctx.scalar(0, dtype), part)
    else:
        part = _beside(ctx, rtol, dtype)
    greatest = relay.max(values, axis=[-1], keepdims=True)
    return relay.maximum(least, relay.multiply(greatest, part))


def _beside(ctx: Import, limit: Expr, dtype: str) -> Expr:
    """Return limits of matrices with an axis for their singular values."""
    found = ctx.cast(limit, dtype)
    return relay.expand_dims(found, axis=-1) if ctx.type(limit).rank else found


@OPS.imports("aten::linalg_pinv.atol_rtol_float", "aten::linalg_pinv.atol_rtol_tensor")
def import_pinv(
    ctx: Import,
    self: Expr,
    atol: Expr | None = None,
    rtol: Expr | None = None,
    *,
    hermitian: bool = False,
) -> Expr:
    """Of a symmetric matrix one triangle is read."""
    if 0 in ctx.type(self).shape:
        return swap_last(ctx, self)
    left, signed, right = _parts(ctx, self, hermitian)
    values = relay.abs(signed)
    dtype = ctx.dtype(self)
    above = relay.greater(values, _cutoff(ctx, self, values, atol, rtol))
    one, zero = ctx.scalar(1, dtype), ctx.scalar(0, dtype)
    inverse = relay.where(above, relay.divide(one, relay.where(above, signed, one)), zero)
    scaled = relay.multiply(swap_last(ctx, right), relay.expand_dims(inverse, axis=-2))
    return build_matmul(ctx, scaled, swap_last(ctx, left))


@OPS.imports("aten::linalg_pinv")
def import_pinv_rcond(ctx: Import, self: Expr, rcond: Expr, *, hermitian: bool = False) -> Expr:
    return import_pinv(ctx, self, rtol=rcond, hermitian=hermitian)


@OPS.imports("aten::pinverse")
def import_pinverse(ctx: Import, self: Expr, *, rcond: float = 1e-15) -> Expr:
    return import_pinv(ctx, self, rtol=ctx.number(rcond))


@OPS.exports("serde.eigh")
def export_eigh(ctx: Export, data: Value, *, triangle: str) -> tuple[Value, ...]:
    x, work = widen(ctx, data)
    letter = "L" if triangle == "lower" else "U"
    found = ctx.call_tuple(ctx.helper("symmetric_eigenvalues"), x, letter, outputs=2)
    return tuple(cast(ctx, each, ctx.type(data).dtype, work) for each in found)


@OPS.imports("aten::linalg_matrix_rank.atol_rtol_tensor")
def import_matrix_rank_by(
    ctx: Import,
    input: Expr,
    atol: Expr | None = None,
    rtol: Expr | None = None,
    *,
    hermitian: bool = False,
) -> Expr:
    return import_matrix_rank(ctx, input, atol, rtol, hermitian=hermitian)


@OPS.imports("aten::linalg_cond")
def import_cond(ctx: Import, self: Expr, *, p: Scalar | None = None) -> Expr:
    """The ratio of the outermost singular values, or the norm of both it and its inverse."""
    if p in (None, 2, -2):
        values = import_svdvals(ctx, self)
        greatest, least = relay.max(values, axis=[-1]), relay.min(values, axis=[-1])
        return relay.divide(least, greatest) if p == -2 else relay.divide(greatest, least)
    raise Unsupported(f"a condition number of order {p!r}")


@OPS.imports("aten::linalg_matrix_rank.atol_rtol_float")
def import_matrix_rank(
    ctx: Import,
    self: Expr,
    atol: Expr | None = None,
    rtol: Expr | None = None,
    *,
    hermitian: bool = False,
) -> Expr:
    if 0 in ctx.type(self).shape[-2:]:
        return relay.zeros(ctx.type(self).shape[:-2], "int64")
    values = relay.abs(_parts(ctx, self, hermitian)[1])
    above = relay.greater(values, _cutoff(ctx, self, values, atol, rtol))
    return relay.sum(relay.cast(above, "int64"), axis=[-1])


MAX_REFLECTIONS = 64


@OPS.imports("aten::linalg_householder_product")
def import_householder_product(ctx: Import, input: Expr, tau: Expr) -> Expr:
    """The first columns of the product of reflections, each told by a column below its diagonal."""
    (count,) = ctx.last_lengths(tau, 1)
    shape = ctx.type(input).shape
    if not isinstance(count, int) or count > MAX_REFLECTIONS:
        raise Unsupported(f"a product of {count} reflections")
    if count == 0 or 0 in shape:
        return identity_like(ctx, input)
    dtype, found = ctx.dtype(input), identity_like(ctx, input)
    rows = ctx.fixed(ctx.size(input, -2))
    places = allocation.arange(rows)
    for place in reversed(range(count)):
        column = relay.take(input, ctx.scalar(place, "int64"), axis=-1)
        below = Constant((places > place).astype(numpy_dtype(dtype)))
        head = Constant((places == place).astype(numpy_dtype(dtype)))
        vector = relay.expand_dims(relay.add(relay.multiply(column, below), head), axis=-1)
        factor = relay.take(tau, ctx.scalar(place, "int64"), axis=-1)
        factor = relay.expand_dims(factor, axis=-1, num_newaxis=2)
        sums = relay.sum(relay.multiply(vector, found), axis=[-2], keepdims=True)
        found = relay.subtract(found, relay.multiply(relay.multiply(factor, vector), sums))
    return found


OPS.exports("serde.svd")(make_parts_exporter("torch.linalg.svd", 3, full_matrices=False))
OPS.exports("serde.lq")(make_parts_exporter("lower_factor", 2))


OPS.exports("serde.eig")(make_parts_exporter("real_eigenvalues", 2))
