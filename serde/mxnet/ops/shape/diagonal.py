"""Diagonals and triangles."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.elementwise.arithmetic import scalar_like
from serde.mxnet.ops.shape.rearrangement import axes_last, reshaped
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr


def _matrix(ctx: ImportContext, data: Expr, k: int) -> Expr:
    """Return the matrix that has a vector on diagonal `k`, zeros elsewhere."""
    (length,) = ctx.static_shape(data)
    zero = scalar_like(ctx, data, 0)
    # Column j of the result has the element of column j; of a lower diagonal, row i that of row i.
    line = relay.expand_dims(
        relay.nn.pad(data, [(abs(k), 0)], zero) if k else data, 0 if k >= 0 else 1
    )
    size = length + abs(k)
    return relay.where(relay.const(np.eye(size, k=k, dtype=np.bool_)), line, zero)


def _diagonal(ctx: ImportContext, data: Expr, k: int, axis1: int, axis2: int) -> Expr:
    """Return diagonal `k` of two axes as the last one: its places in the matrix as a row."""
    rows, columns = ctx.static_lengths(data, (axis1, axis2))
    last = axes_last(ctx, data, axis1, axis2)
    length = max(0, min(rows + min(k, 0), columns - max(k, 0)))
    steps = np.arange(length)
    places = (steps - min(k, 0)) * columns + steps + max(k, 0)
    outer = ctx.type(last).shape[:-2]
    flat = reshaped(last, [*outer, rows * columns])
    return relay.take(flat, relay.Constant(places), axis=len(outer), mode="fast")


@OPS.imports("diag")
def import_diag(
    ctx: ImportContext, data: Expr, *, k: int = 0, axis1: int = 0, axis2: int = 1
) -> Expr:
    """Of a vector the matrix that has it as a diagonal."""
    if ctx.type(data).rank == 1:
        return _matrix(ctx, data, k)
    return _diagonal(ctx, data, k, axis1, axis2)


@OPS.imports("_np_diag")
def import_np_diag(ctx: ImportContext, data: Expr, *, k: int = 0) -> Expr:
    if ctx.type(data).rank > 2:
        raise Unsupported(f"expected a vector or a matrix, found {ctx.type(data)!r}")
    return import_diag(ctx, data, k=k)


@OPS.imports("_np_diagflat")
def import_diagflat(ctx: ImportContext, data: Expr, *, k: int = 0) -> Expr:
    return _matrix(ctx, relay.reshape(data, (-1,)), k)


@OPS.imports("_np_diagonal")
def import_diagonal(
    ctx: ImportContext, data: Expr, *, offset: int = 0, axis1: int = 0, axis2: int = 1
) -> Expr:
    return _diagonal(ctx, data, offset, axis1, axis2)


@OPS.imports("_np_trace")
def import_trace(
    ctx: ImportContext, data: Expr, *, offset: int = 0, axis1: int = 0, axis2: int = 1
) -> Expr:
    return relay.sum(_diagonal(ctx, data, offset, axis1, axis2), axis=(-1,))


@OPS.imports("_npi_tril")
def import_tril(ctx: ImportContext, data: Expr, *, k: int = 0) -> Expr:
    """Of a vector the triangle of a square whose every row it is."""
    if ctx.type(data).rank == 1:
        (length,) = ctx.type(data).shape
        data = relay.broadcast_to(data, [length, length])
    return relay.trilu(data, k, upper=False)


@OPS.imports("_npi_diag_indices_from")
def import_diag_indices_from(ctx: ImportContext, data: Expr) -> Expr:
    shape = ctx.static_shape(data)
    if len(shape) < 2 or len(set(shape)) > 1:
        raise Unsupported(f"expected axes of equal lengths, found {ctx.type(data)!r}")
    return relay.Constant(np.tile(np.arange(shape[0]), (len(shape), 1)))
