"""Diagonals and triangles of the innermost matrices."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import as_dtype, cast, emit_where, to_int64
from serde.onnx.ops.shape.reshape import as_scalar, emit_lengths, emit_range, reshape_along
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.op.shape.matrix import Diagonals

TRIANGLES = ("float32", "float64", "int32", "int64")
"""Dtypes of which ONNX Runtime has a Trilu of every version; int64 holds the other integers."""


def _number_rows_and_columns(ctx: ExportContext, x: Value) -> tuple[Value, Value]:
    """Return the numbers of rows, as a column, and of columns, as a row."""
    rows, columns = (emit_range(ctx, emit_lengths(ctx, x, [axis])) for axis in (-2, -1))
    return reshape_along(ctx, rows, 0, 2), reshape_along(ctx, columns, 1, 2)


@OPS.exports("trilu", since=14)
def export_trilu(ctx: ExportContext, x: Value, k: Value, *, upper: bool) -> Value:
    dtype = ctx.type(x).dtype
    work = dtype
    if dtype not in TRIANGLES:
        work = "int64" if dtype in ("bool", "uint64") or "int" in dtype else "float32"
    result = ctx.emit("Trilu", as_dtype(ctx, x, work), to_int64(ctx, k), upper=int(upper))
    return result if work == dtype else cast(ctx, result, dtype)


@OPS.exports("trilu")
def export_trilu_v1(ctx: ExportContext, x: Value, k: Value, *, upper: bool) -> Value:
    """Before 14, a comparison of the indices of columns and rows: ``columns < rows + k``."""
    rows, columns = _number_rows_and_columns(ctx, x)
    bound = ctx.emit("Add", rows, to_int64(ctx, k))
    outside = ctx.emit("Less", *((columns, bound) if upper else (bound, columns)))
    return emit_where(ctx, outside, ctx.scalar_like(x, 0), x, ctx.type(x).dtype)


@OPS.imports("Trilu", since=14)
def import_trilu(ctx: ImportContext, x: Expr, k: Expr | None = None, *, upper: bool = True) -> Expr:
    diagonal = relay.Constant(np.int64(0)) if k is None else k
    return relay.trilu(x, as_scalar(ctx, diagonal), upper=upper)


@OPS.exports("matrix_set_diag")
def export_matrix_set_diag(
    ctx: ExportContext, x: Value, diagonal: Value, *, diagonals: Diagonals
) -> Value:
    """``y[i, j] = diagonal[k2 - (j - i), step]`` where there is such a diagonal.

    An element lies as far along its diagonal as the smaller of its row and column says.
    """
    rows, columns = _number_rows_and_columns(ctx, x)
    number = ctx.emit("Sub", columns, rows)
    step = ctx.emit("Where", ctx.emit("Less", rows, columns), rows, columns)
    width = emit_lengths(ctx, diagonal, [-1])
    upper = ctx.emit("Less", ctx.const(-1, np.int64), number)
    for aligned, side in (
        (diagonals.super_diag_right_align, upper),
        (diagonals.sub_diag_right_align, ctx.emit("Not", upper)),
    ):
        if aligned:
            skip = ctx.emit("Sub", width, _diagonal_lengths(ctx, x, number))
            step = ctx.emit("Where", side, ctx.emit("Add", step, skip), step)
    line = ctx.emit("Sub", ctx.const(diagonals.k2, np.int64), number)
    low = ctx.emit("Less", line, ctx.const(0, np.int64))
    high = ctx.emit("Less", ctx.const(diagonals.k2 - diagonals.k1, np.int64), line)
    outside = ctx.emit("Or", low, high)
    position = ctx.emit("Add", ctx.emit("Mul", line, width), step)
    position = ctx.emit("Where", outside, ctx.const(0, np.int64), position)
    kept = emit_lengths(ctx, x, range(ctx.type(x).rank - 2))
    flat = ctx.emit("Reshape", diagonal, ctx.emit("Concat", kept, ctx.ints([-1]), axis=0))
    found = ctx.emit("Gather", flat, position, axis=-1)
    return emit_where(ctx, outside, x, found, ctx.type(x).dtype)


def _diagonal_lengths(ctx: ExportContext, x: Value, number: Value) -> Value:
    """Return the length of each diagonal: of its rows or of its columns, whichever are fewer."""
    zero = ctx.const(0, np.int64)
    rows, columns = (emit_lengths(ctx, x, [axis]) for axis in (-2, -1))
    below = ctx.emit("Less", number, zero)
    tall = ctx.emit("Add", rows, ctx.emit("Where", below, number, zero))
    wide = ctx.emit("Sub", columns, ctx.emit("Where", below, zero, number))
    return ctx.emit("Where", ctx.emit("Less", tall, wide), tall, wide)
