"""Diagonals, triangles and identity matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import Array, numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, call, normalize_axis
from serde.torch.ops.elementwise.convert import PLACEMENT
from serde.torch.ops.shape.arrange import move_axes
from serde.torch.ops.shape.create import DType, fill, fill_like
from serde.torch.ops.shape.lengths import reshape, sizes_of
from serde.torch.ops.table import OPS, Export, Import, Scalar, SymInt, Value
from serde.walk.takes import CONSTANT, Takes

__all__ = ["diagonal_of"]


def _pair(ctx: Import, x: Expr, dim1: int, dim2: int, rank: int) -> tuple[int, int]:
    """Return two axes of a tensor of some rank, counted from the front."""
    one, other = (normalize_axis(each, rank) for each in (dim1, dim2))
    if one == other:
        raise Unsupported(f"{dim1} and {dim2} are one axis")
    return one, other


def _diagonal_length(rows: int, columns: int, offset: int) -> int:
    return max(0, min(rows + min(offset, 0), columns - max(offset, 0)))


def diagonal_of(ctx: Import, x: Expr, offset: int, dim1: int, dim2: int) -> Expr:
    """Return a diagonal of matrices as the last axis."""
    rank = ctx.type(x).rank
    axes = _pair(ctx, x, dim1, dim2, rank)
    moved = move_axes(ctx, x, axes, [rank - 2, rank - 1])
    rows, columns = ctx.type(moved).shape[-2:]
    if not isinstance(rows, int) or not isinstance(columns, int):
        return _open_diagonal(ctx, moved, offset)
    count = _diagonal_length(rows, columns, offset)
    first = max(offset, 0) + max(-offset, 0) * columns
    flat = reshape(ctx, moved, [*sizes_of(ctx, moved)[:-2], rows * columns])
    begin, end = (first, first + (count - 1) * (columns + 1) + 1) if count else (0, 0)
    return relay.strided_slice(flat, [begin], [end], [columns + 1], axes=[rank - 2])


def _open_diagonal(ctx: Import, x: Expr, offset: int) -> Expr:
    """Return the diagonal of matrices as long as they are wide, whatever their length."""
    rows, columns = ctx.type(x).shape[-2:]
    if offset or rows != columns:
        raise Unsupported(f"diagonal {offset} of matrices of shape ({rows}, {columns})")
    letters = "abcdefgh"[: ctx.type(x).rank - 2]
    return relay.einsum([x], f"{letters}ii->{letters}i")


@OPS.imports("aten::diagonal", "aten::diagonal_copy")
def import_diagonal(
    ctx: Import, self: Expr, *, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Expr:
    return diagonal_of(ctx, self, offset, dim1, dim2)


@OPS.imports("aten::linalg_diagonal")
def import_linalg_diagonal(
    ctx: Import,
    A: Expr,  # noqa: N803
    *,
    offset: int = 0,
    dim1: int = -2,
    dim2: int = -1,
) -> Expr:
    return diagonal_of(ctx, A, offset, dim1, dim2)


def _embed(ctx: Import, x: Expr, offset: int) -> Expr:
    """Return matrices, as the last axes, with the last axis of `x` as a diagonal, else zeros."""
    (length,) = ctx.static_lengths(x, [-1])
    size = length + abs(offset)
    marks = Constant(allocation.eye(size, k=offset, dtype=np.bool_))
    rank = ctx.type(x).rank
    before, behind = max(offset, 0), max(-offset, 0)
    widths = [(0, 0)] * (rank - 1) + [(before, behind)]
    zero = relay.const(0, ctx.dtype(x))
    row = relay.nn.pad(x, widths, zero) if offset else x
    return relay.where(marks, relay.expand_dims(row, axis=-2), zero)


@OPS.imports("aten::diag_embed")
def import_diag_embed(
    ctx: Import, self: Expr, *, offset: int = 0, dim1: int = -2, dim2: int = -1
) -> Expr:
    rank = ctx.type(self).rank + 1
    one, other = _pair(ctx, self, dim1, dim2, rank)
    return move_axes(ctx, _embed(ctx, self, offset), [rank - 2, rank - 1], [one, other])


@OPS.imports("aten::diag")
def import_diag(ctx: Import, self: Expr, *, diagonal: int = 0) -> Expr:
    """Of a matrix its diagonal, of a vector the matrix that has it."""
    if ctx.type(self).rank == 1:
        return _embed(ctx, self, diagonal)
    return diagonal_of(ctx, self, diagonal, 0, 1)


@OPS.imports("aten::diagflat")
def import_diagflat(ctx: Import, self: Expr, *, offset: int = 0) -> Expr:
    return _embed(ctx, reshape(ctx, self, [-1]), offset)


@OPS.imports("aten::trace")
def import_trace(ctx: Import, self: Expr) -> Expr:
    """Sums of whole numbers are of 64 bits."""
    found = diagonal_of(ctx, self, 0, 0, 1)
    wide = ctx.dtype(found) == "bool" or "int" in ctx.dtype(found)
    return relay.sum(ctx.cast(found, "int64") if wide else found, axis=(0,))


@OPS.imports("aten::diagonal_scatter")
def import_diagonal_scatter(
    ctx: Import, self: Expr, src: Expr, *, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Expr:
    rank = ctx.type(self).rank
    axes = _pair(ctx, self, dim1, dim2, rank)
    moved = move_axes(ctx, self, axes, [rank - 2, rank - 1])
    rows, columns = ctx.static_lengths(moved, [-2, -1])
    new = ctx.cast(src, ctx.dtype(self))
    if not _diagonal_length(rows, columns, offset):
        return self
    found = relay.matrix_set_diag(moved, new, offset)
    return move_axes(ctx, found, [rank - 2, rank - 1], axes)


@OPS.imports("aten::fill_diagonal")
def import_fill_diagonal(
    ctx: Import, self: Expr, *, fill_value: Scalar, wrap: bool = False
) -> Expr:
    """What ``fill_diagonal_`` writes: the diagonal goes on below a square if it wraps."""
    ctx.require_rank(self, 2)
    shape = ctx.static_shape(self)
    if len(shape) > 2 and len(set(shape)) > 1:
        raise Unsupported(f"the diagonal of {list(shape)}, whose lengths differ")
    mask = allocation.zeros(shape, bool)
    np.fill_diagonal(mask, True, wrap=wrap)
    value = ctx.scalar(fill_value, ctx.dtype(self))
    return relay.where(Constant(mask), value, self)


@OPS.imports("aten::cartesian_prod")
def import_cartesian_prod(ctx: Import, *tensors: Expr) -> Expr:
    if len(tensors) == 1:
        return tensors[0]
    columns = [reshape(ctx, each, [-1]) for each in relay.meshgrid(tensors)]
    return relay.stack(columns, axis=1)


def _binomial(count: int, chosen: int) -> int:
    """Return how many ways there are to choose, as far as a budget can hold them."""
    if chosen > count:
        return 0
    total = 1
    for place in range(min(chosen, count - chosen)):
        total = total * (count - place) // (place + 1)
        if total > 2**62:
            break
    return total


@OPS.imports("aten::combinations")
def import_combinations(
    ctx: Import, self: Expr, *, r: int = 2, with_replacement: bool = False
) -> Expr:
    from itertools import combinations, combinations_with_replacement

    ctx.require_rank(self, 1, 1)
    (length,) = ctx.static_shape(self)
    if r < 0:
        raise Unsupported(f"combinations of {r}")
    if not r:
        return relay.zeros((0,), ctx.dtype(self))
    choose = combinations_with_replacement if with_replacement else combinations
    count = _binomial(length + r - 1 if with_replacement else length, r)
    rows = allocation.zeros((count, r), np.int64)
    for row, places in zip(rows, choose(range(length), r) if count else (), strict=True):
        row[:] = places
    return relay.take(self, Constant(rows), axis=0, mode="fast")


def _import_triangle(ctx: Import, self: Expr, *, upper: bool, diagonal: SymInt = 0) -> Expr:
    return relay.trilu(self, ctx.scalar(diagonal, "int64"), upper)


OPS.imports("aten::tril")(partial(_import_triangle, upper=False))
OPS.imports("aten::triu")(partial(_import_triangle, upper=True))


@OPS.exports("trilu", takes=Takes(k=CONSTANT))
def export_trilu(ctx: Export, data: Value, k: Value, *, upper: bool) -> Value:
    number = int(ctx.constant(k))
    target = "torch.triu" if upper else "torch.tril"
    return ctx.call(target, data, number) if number else ctx.call(target, data)


def places_of(mask: Array) -> Array:
    """Return the rows and the columns of the elements that are true."""
    found = allocation.zeros((2, int(mask.sum())), np.int64)
    found[:] = mask.nonzero()
    return found


def _whole(rows: int, columns: int) -> Array:
    """Return a matrix that is true everywhere; one without elements has no length either."""
    if not rows or not columns:
        rows, columns = min(rows, 0), min(columns, 0)
    return allocation.ones((rows, columns), bool)


_PLACE = ("layout", "device", "pin_memory")


def _import_indices(
    ctx: Import,
    *,
    band: Callable[[Array, int], Array],
    row: int,
    col: int,
    offset: int = 0,
    dtype: np.dtype[AnyValue] | None = None,
) -> Expr:
    places = places_of(band(_whole(row, col), offset))
    return Constant(places.astype(numpy_dtype("int64") if dtype is None else dtype))


OPS.imports("aten::tril_indices", ignored=_PLACE)(partial(_import_indices, band=np.tril))
OPS.imports("aten::triu_indices", ignored=_PLACE)(partial(_import_indices, band=np.triu))


SMALL = 64
"""Elements of an identity matrix that is written out."""


def _cut(ctx: Import, x: Expr) -> Expr:
    """Return matrices of which nothing but the diagonal is left."""
    zero = ctx.scalar(0, "int64")
    return call("trilu", call("trilu", x, zero, upper=True), zero, upper=False)


def identity_like(ctx: Import, x: Expr) -> Expr:
    """Return identity matrices shaped like others."""
    return _cut(ctx, fill_like(ctx, x, ctx.scalar(1, ctx.dtype(x))))


@OPS.imports("aten::eye", ignored=PLACEMENT)
def import_eye(ctx: Import, *, n: SymInt, m: SymInt | None = None, dtype: DType = None) -> Expr:
    kind = ctx.default_dtype if dtype is None else dtype.name
    size = (n, n if m is None else m)
    rows, columns = map(ctx.dim, size)
    if isinstance(rows, int) and isinstance(columns, int) and rows * columns <= SMALL:
        return ctx.cast(Constant(allocation.eye(rows, columns, dtype=np.float32)), kind)
    return _cut(ctx, fill(ctx, size, ctx.scalar(1, kind)))


@OPS.exports("serde.eye_like", takes=Takes(k=0))
def export_eye_like(ctx: Export, data: Value, *, dtype: DType) -> Value:
    type_ = ctx.result_type()
    return ctx.call("torch.eye", *ctx.sizes(type_.shape), dtype=ctx.dtype(type_.dtype))
