"""Conditions, counts and indices as places, masks and codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import serde.relay as relay
from serde.relax.export_context import ExportContext, Value
from serde.relax.import_context import ImportContext
from serde.relax.ops.shape.dynamic import compute_lengths
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call

__all__ = ["read_scalar"]


@OPS.exports("argwhere")
def export_argwhere(ctx: ExportContext, condition: Value) -> Value:
    """The elements are counted, then written in order."""
    rank = ctx.type(condition).rank
    if 0 in ctx.extents(condition):
        return ctx.emit("zeros", ctx.shape_expr((0, rank)), "int32")
    given = condition if rank else ctx.emit("reshape", condition, ctx.shape_expr((1,)))
    (length,) = ctx.read_shape(ctx.emit_te(_make_search(ctx, None), given))
    if not rank:
        shape = ctx.framework.relax.ShapeExpr(ctx.wide([length, 0]))
        return ctx.emit("zeros", shape, "int32")
    return ctx.emit_te(_make_search(ctx, length), condition)


def _make_search(ctx: ExportContext, count: AnyValue) -> Callable[[AnyValue], AnyValue]:
    """Return what counts the elements that are not zero or, when there are `count`, finds them.

    A loop does both: of no elements, reductions of tensor expressions give any number.
    """
    framework = ctx.framework
    tir, statements = framework.tir, framework.statements

    def argwhere(x: AnyValue) -> AnyValue:
        dtype, rank = str(x.dtype), len(x.shape)
        size = tir.IntImm("int64", 1)
        for each in x.shape:
            size = size * each

        def write(given: AnyValue, out: AnyValue) -> None:
            number = framework.cell("int64") if count is not None else out
            number[0] = tir.IntImm("int64", 0)
            with statements.serial(0, size) as place:
                one = given[place]
                hit = one if dtype == "bool" else one != tir.const(0, dtype)
                with statements.If(hit), statements.Then():
                    if count is not None:
                        _write_place(tir, out, number[0], place, x.shape)
                    number[0] = number[0] + tir.IntImm("int64", 1)

        shape = ctx.wide([1] if count is None else [count, rank])
        kind = "int64" if count is None else "int32"
        return framework.extern("argwhere", [x], [shape], [kind], write)[0]

    return argwhere


def _write_place(
    tir: AnyValue, out: AnyValue, row: AnyValue, place: AnyValue, shape: Sequence[AnyValue]
) -> None:
    """Write the coordinates of a place in row-major order into a row."""
    rank = len(shape)
    for axis in reversed(range(rank)):
        out[row * rank + axis] = tir.floormod(place, shape[axis]).astype("int32")
        place = tir.floordiv(place, shape[axis])


@OPS.imports("relax.nonzero")
def import_nonzero(ctx: ImportContext, x: Expr) -> Expr:
    return relay.cast(call("serde.nonzero", x), "int64")


def read_scalar(ctx: ExportContext, x: Value) -> AnyValue:
    """Return the integer that a scalar, or a vector of one, holds, for an argument."""
    if x.data is not None:
        return int(x.data.item())
    rank = ctx.type(x).rank
    (found,) = compute_lengths(ctx, 1, lambda given: [given[0] if rank else given()], x)
    return found
