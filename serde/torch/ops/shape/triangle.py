"""Triangles of matrices, and the places of elements."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.relay.ir.expr import Constant, Expr
from serde.torch.import_context import ImportContext, SymInt
from serde.torch.ops.table import OPS
from serde.weights import Array, numpy_dtype


def _triangle(ctx: ImportContext, x: Expr, diagonal: SymInt, *, upper: bool) -> Expr:
    return relay.trilu(x, ctx.scalar(diagonal, "int64"), upper)


@OPS.imports("aten::tril")
def import_tril(ctx: ImportContext, self: Expr, *, diagonal: SymInt = 0) -> Expr:
    return _triangle(ctx, self, diagonal, upper=False)


@OPS.imports("aten::triu")
def import_triu(ctx: ImportContext, self: Expr, *, diagonal: SymInt = 0) -> Expr:
    return _triangle(ctx, self, diagonal, upper=True)


def places_of(mask: Array) -> Array:
    """Return the rows and the columns of the elements that are true."""
    found = allocation.zeros((2, int(mask.sum())), np.int64)
    found[:] = mask.nonzero()
    return found


def _places(mask: Array, dtype: np.dtype[AnyValue] | None) -> Expr:
    return Constant(places_of(mask).astype(numpy_dtype("int64") if dtype is None else dtype))


def _whole(rows: int, columns: int) -> Array:
    """Return a matrix that is true everywhere; one without elements has no length either."""
    if not rows or not columns:
        rows, columns = min(rows, 0), min(columns, 0)
    return allocation.ones((rows, columns), bool)


_PLACE = ("layout", "device", "pin_memory")


@OPS.imports("aten::tril_indices", ignored=_PLACE)
def import_tril_indices(
    ctx: ImportContext,
    *,
    row: int,
    col: int,
    offset: int = 0,
    dtype: np.dtype[AnyValue] | None = None,
) -> Expr:
    return _places(np.tril(_whole(row, col), offset), dtype)


@OPS.imports("aten::triu_indices", ignored=_PLACE)
def import_triu_indices(
    ctx: ImportContext,
    *,
    row: int,
    col: int,
    offset: int = 0,
    dtype: np.dtype[AnyValue] | None = None,
) -> Expr:
    return _places(np.triu(_whole(row, col), offset), dtype)


@OPS.imports("aten::_dim_arange")
def import_dim_arange(ctx: ImportContext, like: Expr, *, dim: int) -> Expr:
    """The places of an axis."""
    length = ctx.scalar(ctx.size(like, ctx.axis(like, dim)), "int64")
    zero, one = (relay.const(each, "int64") for each in (0, 1))
    return relay.arange(zero, length, one, dtype="int64")
