"""Norms of vectors and of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, TupleGetItem, call
from serde.torch.ops.elementwise.convert import widen
from serde.torch.ops.reduce.plain import Axes, DType, Reduction, as_floats, make_sum_exporter
from serde.torch.ops.table import OPS, Export, Import, Scalar, Value
from serde.torch.ops.written import dims_of, in_signed

MATRIX = (-2, -1)


def vector_norm(ctx: Import, x: Expr, order: Scalar | None, dim: Axes, keepdim: bool) -> Expr:
    """Return ``sum(abs(x) ** order) ** (1 / order)`` over axes, and its limits."""
    if isinstance(order, (Expr, complex)):
        raise Unsupported("a norm whose order is computed")
    dtype, axes = ctx.dtype(x), ctx.axes(x, dim)
    order = 2.0 if order is None else float(order)
    if order == 2:
        return call("serde.reduce_l2", x, axis=axes, keepdims=keepdim)
    if order == 1:
        return call("serde.reduce_l1", x, axis=axes, keepdims=keepdim)
    if math.isinf(order):
        extreme = "max" if order > 0 else "min"
        return call(extreme, relay.abs(x), axis=axes, keepdims=keepdim)
    wide = widen(ctx, x)
    kind = ctx.dtype(wide)
    if order == 0:
        nonzero = relay.cast(relay.not_equal(wide, ctx.scalar(0, kind)), kind)
        return ctx.cast(relay.sum(nonzero, axis=axes, keepdims=keepdim), dtype)
    powers = relay.power(relay.abs(wide), ctx.scalar(order, kind))
    total = relay.sum(powers, axis=axes, keepdims=keepdim)
    return ctx.cast(relay.power(total, ctx.scalar(1 / order, kind)), dtype)


@OPS.imports("aten::norm", "aten::frobenius_norm")
@OPS.imports("aten::linalg_vector_norm", renamed={"ord": "p"})
def import_norm(
    ctx: Import,
    self: Expr,
    *,
    p: Scalar | None = 2,
    dim: Axes = None,
    keepdim: bool = False,
    dtype: DType = None,
) -> Expr:
    return vector_norm(ctx, as_floats(ctx, self, dtype, "the norm"), p, dim, keepdim)


@OPS.imports("aten::dist")
def import_dist(ctx: Import, self: Expr, other: Expr, *, p: Scalar = 2) -> Expr:
    return vector_norm(ctx, relay.subtract(*ctx.promote_to_float(self, other)), p, None, False)


def _singular_values(ctx: Import, x: Expr, rows: int, columns: int) -> Expr:
    """Return the singular values of matrices whose axes may stand anywhere, as the last axis."""
    rest = [axis for axis in range(ctx.type(x).rank) if axis not in (rows, columns)]
    parts = call("serde.svd", relay.transpose(x, axes=[*rest, rows, columns]))
    return TupleGetItem(parts, 1)


def matrix_norm(
    ctx: Import, x: Expr, order: Scalar | str, dim: tuple[int, ...], keepdim: bool
) -> Expr:
    """Return the norm of matrices: of Frobenius, of singular values, or of sums of rows."""
    if isinstance(order, (Expr, complex)):
        raise Unsupported("a norm whose order is computed")
    if len(dim) != 2:
        raise Unsupported(f"a norm of matrices over {len(dim)} axes")
    rows, columns = (ctx.axis(x, axis) for axis in dim)
    if order == "fro":
        return vector_norm(ctx, x, 2, (rows, columns), keepdim)
    if order == "nuc" or (not isinstance(order, str) and abs(order) == 2):
        values = _singular_values(ctx, x, rows, columns)
        empty = 0 in (ctx.type(x).shape[rows], ctx.type(x).shape[columns])
        kind = "sum" if order == "nuc" or empty else "max" if order == 2 else "min"
        found: Expr = call(kind, values, axis=[-1])
        axes = sorted((rows, columns)) if keepdim else ()
        for axis in axes:
            found = relay.expand_dims(found, axis=axis)
        return found
    if isinstance(order, str) or abs(order) not in (1, math.inf):
        raise Unsupported(f"a matrix norm of order {order!r}")
    inner, outer = (columns, rows) if math.isinf(order) else (rows, columns)
    if 0 in (ctx.type(x).shape[rows], ctx.type(x).shape[columns]):
        return vector_norm(ctx, x, 1, (rows, columns), keepdim)
    sums = call("serde.reduce_l1", x, axis=[inner], keepdims=True)
    found = call("max" if order > 0 else "min", sums, axis=[outer], keepdims=True)
    return found if keepdim else relay.squeeze(found, axis=sorted((rows, columns)))


@OPS.imports("aten::linalg_matrix_norm")
def import_matrix_norm(
    ctx: Import,
    self: Expr,
    *,
    ord: Scalar | str = "fro",
    dim: tuple[int, ...] = MATRIX,
    keepdim: bool = False,
    dtype: DType = None,
) -> Expr:
    x = as_floats(ctx, self, dtype, "the norm")
    return matrix_norm(ctx, x, ord, dim, keepdim)


@OPS.imports("aten::nuclear_norm")
def import_nuclear_norm(
    ctx: Import, self: Expr, *, dim: tuple[int, ...] = MATRIX, keepdim: bool = False
) -> Expr:
    return matrix_norm(ctx, as_floats(ctx, self, None, "the norm"), "nuc", dim, keepdim)


@OPS.imports("aten::linalg_norm")
def import_linalg_norm(
    ctx: Import,
    self: Expr,
    *,
    ord: Scalar | Literal["fro", "nuc"] | None = None,
    dim: Axes = None,
    keepdim: bool = False,
    dtype: DType = None,
) -> Expr:
    """With an order, two axes are those of matrices; without one, all are of one vector."""
    x = as_floats(ctx, self, dtype, "the norm")
    axes = (dim,) if isinstance(dim, int) else dim
    matrices = len(axes) == 2 if axes else ctx.type(x).rank == 2
    if ord is not None and matrices:
        return matrix_norm(ctx, x, ord, axes or MATRIX, keepdim)
    if isinstance(ord, str):
        raise Unsupported(f"a norm of vectors of order {ord!r}")
    return vector_norm(ctx, x, ord, axes, keepdim)


@OPS.imports("aten::renorm")
def import_renorm(ctx: Import, self: Expr, *, p: Scalar, dim: int, maxnorm: Scalar) -> Expr:
    """Slices whose norm is above the limit are scaled down to it."""
    axis = ctx.axis(self, dim)
    axes = tuple(i for i in range(ctx.type(self).rank) if i != axis)
    wide = widen(ctx, self)
    dtype = ctx.dtype(wide)
    size = vector_norm(ctx, wide, p, axes, True)
    limit = ctx.scalar(maxnorm, dtype)
    factor = relay.divide(limit, relay.add(size, ctx.scalar(1e-7, dtype)))
    factor = relay.where(relay.greater(size, limit), factor, ctx.scalar(1, dtype))
    return ctx.cast(relay.multiply(wide, factor), ctx.dtype(self))


def _make_length_exporter() -> Callable[..., Value]:
    write, plain = make_sum_exporter("abs"), in_signed(make_sum_exporter(None))

    def export_reduce_l1(ctx: Export, data: Value, *, reduction: Reduction) -> Value:
        """Numbers without a sign are what they measure."""
        export = plain if ctx.type(data).dtype.startswith("uint") else write
        return export(ctx, data, reduction=reduction)

    return export_reduce_l1


OPS.exports("serde.reduce_l1")(_make_length_exporter())


@OPS.exports("serde.reduce_l2")
def export_reduce_l2(ctx: Export, data: Value, *, reduction: Reduction) -> Value:
    axes = reduction.axes(ctx.type(data).rank)
    if not axes:
        return ctx.method(data, "abs")
    options = {"keepdim": True} if reduction.keepdims else {}
    return ctx.call("torch.linalg.vector_norm", data, dim=dims_of(axes), **options)
