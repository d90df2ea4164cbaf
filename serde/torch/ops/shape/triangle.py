"""Triangles of matrices, and the places of elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.relay.ir.expr import Constant, Expr
from serde.torch.import_context import ImportContext, SymInt
from serde.torch.ops.table import OPS
from serde.weights import Array, numpy_dtype


def _import_triangle(ctx: ImportContext, self: Expr, *, upper: bool, diagonal: SymInt = 0) -> Expr:
    return relay.trilu(self, ctx.scalar(diagonal, "int64"), upper)


OPS.imports("aten::tril")(partial(_import_triangle, upper=False))
OPS.imports("aten::triu")(partial(_import_triangle, upper=True))


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
    ctx: ImportContext,
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


@OPS.imports("aten::_dim_arange")
def import_dim_arange(ctx: ImportContext, like: Expr, *, dim: int) -> Expr:
    """The places of an axis."""
    length = ctx.scalar(ctx.size(like, ctx.axis(like, dim)), "int64")
    zero, one = (relay.const(each, "int64") for each in (0, 1))
    return relay.arange(zero, length, one, dtype="int64")
