"""Arithmetic of two tensors."""

from __future__ import annotations

from functools import partial
from typing import Final

import serde.relay as relay
from serde.nnef.export_context import ExportContext, Value
from serde.nnef.import_context import ImportContext
from serde.nnef.ops.elementwise.compounds import join_division, operands
from serde.nnef.ops.elementwise.integers import SCALARS
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float
from serde.walk.takes import Takes

__all__ = ["emit_binary", "export_binary", "import_binary", "is_number"]

BINARY: Final = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "pow": "power",
    "min": "minimum",
    "max": "maximum",
}
"""Fragments of two tensors, and Relay's operators."""


def import_binary(ctx: ImportContext, x: Expr, y: Expr, *, target: str) -> Expr:
    """Read a fragment of two tensors, which NNEF broadcasts from the first axis on."""
    return call(target, *ctx.align(x, y))


for _name, _target in BINARY.items():
    OPS.imports(_name)(partial(import_binary, target=_target))


def emit_binary(ctx: ExportContext, op: str, x: Value, y: Value) -> Value:
    """Write a fragment of two tensors, which Relay broadcasts from the last axis on.

    One of them needs no axes of 1 behind its own where the other has them.
    """
    x, y = ctx.align(x, y)
    if ctx.type(x).rank == ctx.type(y).rank:
        short = _without_trailing(ctx, x)
        x, y = (x, _without_trailing(ctx, y)) if short is x else (short, y)
    return ctx.emit(op, x, y)


def _without_trailing(ctx: ExportContext, x: Value) -> Value:
    """Return a tensor without axes of 1 that were added behind its own."""
    added = ctx.producer(x, "unsqueeze")
    if added is None or x.type is None:
        return x
    axes, rank = list(added.attributes["axes"]), ctx.type(x).rank
    trailing = list(range(rank - len(axes), rank))
    return operands(added)[0] if axes == trailing and len(axes) < rank else x


def is_number(x: Value, value: float) -> bool:
    """Whether a value is that number, as a scalar."""
    return x.data is not None and not x.data.ndim and x.data.item() == value


def export_binary(ctx: ExportContext, lhs: Value, rhs: Value, *, op: str) -> Value:
    """Write a call of two tensors."""
    return emit_binary(ctx, op, lhs, rhs)


for _name in ("add", "sub", "pow"):
    OPS.exports(BINARY[_name])(partial(export_binary, op=_name))


@OPS.exports("multiply")
def export_multiply(ctx: ExportContext, lhs: Value, rhs: Value) -> Value:
    if lhs.name and lhs.name == rhs.name:
        return ctx.emit("sqr", lhs)
    return emit_binary(ctx, "mul", lhs, rhs)


@OPS.exports("divide")
def export_divide(ctx: ExportContext, lhs: Value, rhs: Value) -> Value:
    if is_number(lhs, 1.0) and is_float(ctx.type(rhs).dtype):
        square = ctx.producer(rhs, "sqr")
        return ctx.emit("rcp", rhs) if square is None else ctx.emit("rsqr", *operands(square))
    return join_division(ctx, lhs, rhs) or emit_binary(ctx, "div", lhs, rhs)


def _export_extremum(ctx: ExportContext, lhs: Value, rhs: Value, *, op: str, logical: str) -> Value:
    """The greater of two truth values is true where one is."""
    return emit_binary(ctx, logical if ctx.type(lhs).dtype == "bool" else op, lhs, rhs)


OPS.exports("maximum", takes=Takes(lhs=SCALARS))(partial(_export_extremum, op="max", logical="or"))
OPS.exports("minimum", takes=Takes(lhs=SCALARS))(partial(_export_extremum, op="min", logical="and"))


@OPS.exports("floor_divide")
def export_floor_divide(ctx: ExportContext, lhs: Value, rhs: Value) -> Value:
    return ctx.emit("floor", emit_binary(ctx, "div", lhs, rhs))


OPS.refuses_calls(
    "floor_mod",
    "mod",
    "trunc_mod",
    reason="NNEF has no remainder, and a rounded quotient does not give the exact one",
)


@OPS.imports("rcp")
def import_rcp(ctx: ImportContext, x: Expr) -> Expr:
    return relay.divide(ctx.const(1), x)


@OPS.imports("sqr")
def import_sqr(ctx: ImportContext, x: Expr) -> Expr:
    return relay.multiply(x, x)


@OPS.imports("rsqr")
def import_rsqr(ctx: ImportContext, x: Expr) -> Expr:
    return relay.divide(ctx.const(1), relay.multiply(x, x))
