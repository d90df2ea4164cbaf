"""Comparisons, truth values and the choice between two tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import serde.relay as relay
from serde.nnef.ops.elementwise.arithmetic import SCALARS, emit_binary, export_binary, import_binary
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.relay.ir.expr import Expr
from serde.walk import Takes, pair

COMPARISONS: Final = {
    "lt": "less",
    "gt": "greater",
    "le": "less_equal",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
"""Fragments that compare scalars, and Relay's operators."""


for _name, _target in {**COMPARISONS, "and": "logical_and", "or": "logical_or"}.items():
    OPS.imports(_name)(partial(import_binary, target=_target))


def _emit_xor(ctx: Export, x: Value, y: Value) -> Value:
    one = ctx.emit("or", x, y)
    return ctx.emit("and", one, ctx.emit("not", ctx.emit("and", x, y)))


def _emit_implication(ctx: Export, x: Value, y: Value) -> Value:
    return ctx.emit("or", ctx.emit("not", x), y)


def _emit_above(ctx: Export, x: Value, y: Value) -> Value:
    return ctx.emit("and", x, ctx.emit("not", y))


LOGICAL: Final[dict[str, Callable[[Export, Value, Value], Value]]] = {
    "lt": lambda ctx, x, y: _emit_above(ctx, y, x),
    "gt": _emit_above,
    "le": _emit_implication,
    "ge": lambda ctx, x, y: _emit_implication(ctx, y, x),
    "eq": lambda ctx, x, y: ctx.emit("not", _emit_xor(ctx, x, y)),
    "ne": _emit_xor,
}
"""How truth values are compared, of which fragments that compare take none."""


def _export_comparison(ctx: Export, lhs: Value, rhs: Value, *, op: str) -> Value:
    if ctx.type(lhs).dtype == "bool":
        return LOGICAL[op](ctx, *ctx.align(lhs, rhs))
    return emit_binary(ctx, op, lhs, rhs)


for _name, _target in COMPARISONS.items():
    OPS.exports(_target, takes=Takes(lhs=SCALARS))(partial(_export_comparison, op=_name))


for _name in ("and", "or"):
    OPS.exports(f"logical_{_name}", f"bitwise_{_name}")(partial(export_binary, op=_name))


@OPS.exports("logical_xor", "bitwise_xor")
def export_xor(ctx: Export, lhs: Value, rhs: Value) -> Value:
    return _emit_xor(ctx, *ctx.align(lhs, rhs))


@OPS.imports("select")
def import_select(ctx: Import, condition: Expr, true_value: Expr, false_value: Expr) -> Expr:
    true_value, false_value = ctx.join_types([true_value, false_value])
    return relay.where(*ctx.align(condition, true_value, false_value))


@OPS.exports("where")
def export_where(ctx: Export, condition: Value, x: Value, y: Value) -> Value:
    return ctx.emit("select", *ctx.align(condition, x, y))


OPS.pairs(pair("not", ("logical_not", "bitwise_not")))
