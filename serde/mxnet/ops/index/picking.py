"""One element of each row, by an index a row."""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.index.selection import as_index
from serde.mxnet.ops.layout import converted
from serde.mxnet.ops.shape.rearrangement import axes_last
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import normalize_axis


@OPS.imports("pick")
def import_pick(
    ctx: ImportContext,
    data: Expr,
    index: Expr,
    *,
    axis: int | None = -1,
    keepdims: bool = False,
    mode: Literal["clip", "wrap"] = "clip",
) -> Expr:
    """The index may have the axis with length 1, or not. A vector gives one element, no scalar."""
    if axis is None:
        raise Unsupported("axis=None, which MXNet has no meaning for")
    rank = ctx.type(data).rank
    along = normalize_axis(axis, rank)
    places = as_index(ctx, index)
    if ctx.type(index).rank == rank:
        places = relay.squeeze(places, (along,))
    rows = axes_last(ctx, data, along)
    picked = relay.take(rows, places, axis=rank - 1, batch_dims=rank - 1, mode=mode)
    return relay.expand_dims(picked, along) if keepdims or rank == 1 else picked


@OPS.imports("batch_take")
def import_batch_take(ctx: ImportContext, a: Expr, indices: Expr) -> Expr:
    """The indices may have any shape of as many elements as the matrix has rows."""
    if ctx.type(a).rank != 2:
        raise Unsupported(f"of {ctx.type(a)!r}, which is no matrix, MXNet reads past the end")
    places = indices if ctx.type(indices).rank == 1 else relay.reshape(indices, (-1,))
    picked = relay.take(a, places, axis=1, batch_dims=1, mode="clip")
    return picked if places is indices else relay.reshape_like(picked, indices)


@OPS.imports("fill_element_0index")
def import_fill_element(ctx: ImportContext, lhs: Expr, mhs: Expr, rhs: Expr) -> Expr:
    """An index outside its row leaves the row as it is."""
    (length,) = ctx.static_lengths(lhs, [1])
    columns = relay.const(np.arange(length, dtype=np.int32))
    places = converted(rhs, "int32")
    marked = relay.equal(columns, relay.expand_dims(places, 1))
    return relay.where(marked, relay.expand_dims(mhs, 1), lhs)
