"""Scans and maps, and loops over slices as they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, Function, TupleGetItem, Var, call, value_types
from serde.relay.ir.types import SequenceType, TensorType
from serde.relay.op.control.body import results
from serde.torch import program as tree
from serde.torch.aliases import Values
from serde.torch.model import Graph
from serde.torch.ops.control.body import HINT, begin_state, param_type, repeat, stack
from serde.torch.ops.table import OPS, Export, Import, Value
from serde.walk.export_context import Writing


def _is_along_axes(call: Call) -> bool:
    """Whether there is something to scan."""
    return bool(value_types(call.args[1].type))


@OPS.exports("serde.scan", when=_is_along_axes)
def export_scan(
    ctx: Export, state: tuple[Value, ...], scanned: tuple[Value, ...], captures: tuple[Value, ...],
    *, body: Function, axes: tuple[int, ...], reverse: tuple[bool, ...], out_axes: tuple[int, ...],
    out_reverse: tuple[bool, ...],
) -> Writing[tuple[Value, ...]]:  # fmt: skip
    """A slice is taken by its index; results that are stacked backwards are flipped."""
    types = value_types(ctx.result)
    axes = axes or (0,) * len(scanned)
    if ctx.hop and not isinstance(ctx.size(scanned[0], axes[0]), int):
        raise Unsupported("a scan of open length as a higher-order operator", hint=HINT)
    carried = [begin_state(ctx, each) for each in state]
    lists = [ctx.begin_list() for _ in types[len(state) :]]
    counter = ctx.variable("i")
    length = ctx.term(ctx.size(scanned[0], axes[0]))
    scope = ctx.block("body")
    with ctx.inside(scope):
        slices = [
            ctx.typed(_slice(ctx, each, axis, back, counter, length), param_type(param))
            for each, axis, back, param in zip(
                scanned,
                axes,
                reverse or (False,) * len(scanned),
                body.params[len(state) : len(state) + len(scanned)],
                strict=True,
            )
        ]
        inner = [
            Value(name, param_type(each))
            for name, each in zip(carried, body.params[: len(state)], strict=True)
        ]
        results = yield from ctx.body(body, [*inner, *slices, *captures])
        for target, row in zip(lists, results[len(state) :], strict=True):
            ctx.append(target, row)
        ctx.write_all(carried, results[: len(state)])
    ctx.write(tree.Loop(None, scope.statements, tuple(carried), counter, length, ctx.source))
    values = [Value(name, type_) for name, type_ in zip(carried, types, strict=False)]
    return (*values, *_stacks(ctx, lists, types[len(state) :], out_axes, out_reverse))


def _slice(
    ctx: Export, x: Value, axis: int, back: bool, counter: str, length: tree.Expression
) -> Value:
    place: tree.Expression = tree.Local(counter)
    if back:
        last: tree.Expression = tree.Infix("-", length, tree.Literal(1))
        if isinstance(length, tree.Literal):
            last = tree.Literal(length.value - 1)
        place = tree.Infix("-", last, place)
    return ctx.assign(tree.Method(ctx.term(x), "select", (tree.Literal(axis), place)))


def _stacks(
    ctx: Export,
    lists: Sequence[str],
    types: Sequence[TensorType | SequenceType],
    axes: Sequence[int],
    reverse: Sequence[bool],
) -> list[Value]:
    axes, reverse = axes or (0,) * len(lists), reverse or (False,) * len(lists)
    found = []
    for rows, type_, axis, back in zip(lists, types, axes, reverse, strict=True):
        rank = type_.rank if isinstance(type_, TensorType) else 0
        stacked = stack(ctx, rows, type_, axis % rank)
        found.append(ctx.call("torch.flip", stacked, [axis % rank]) if back else stacked)
    return found


@OPS.imports("higher_order::scan")
def import_scan(
    ctx: Import,
    *,
    arg0: Graph,
    arg1: Sequence[Expr],
    arg2: Sequence[Expr],
    arg3: Sequence[AnyValue] = (),
) -> list[Expr]:
    """Slices and what is stacked have the first axis."""
    state = [ctx.number(each) for each in arg1]
    rows = [Var(f"row{place}", _row_type(ctx, each)) for place, each in enumerate(arg2)]

    def body(scope: Values, params: Sequence[Var]) -> list[AnyValue]:
        given = ctx.run(arg0, scope, [*params, *rows, *ctx.take(scope, arg3)])
        return [ctx.number(each) for each in given]

    return _scan(ctx, state, arg2, rows, body)


def _scan(
    ctx: Import,
    state: Sequence[Expr],
    scanned: Sequence[Expr],
    rows: Sequence[Var],
    body: Callable[[Values, Sequence[Var]], list[AnyValue]],
) -> list[Expr]:
    repeated = repeat(ctx, rows, state, [False] * len(state), body, behind=True)
    stacks = len(results(repeated.function)) - len(repeated.state)
    found = call(
        "serde.scan", repeated.state, list(scanned), repeated.captures, body=repeated.function,
        axes=(0,) * len(scanned), reverse=(False,) * len(scanned), out_axes=(0,) * stacks,
        out_reverse=(False,) * stacks,
    )  # fmt: skip
    parts = [ctx.fold(TupleGetItem(found, i)) for i in range(len(repeated.state) + stacks)]
    return repeated.settle(ctx, parts, [False] * len(state))


@OPS.imports("higher_order::map_impl")
def import_map(
    ctx: Import, *, arg0: Graph, arg1: Sequence[Expr], arg2: Sequence[AnyValue] = ()
) -> list[Expr]:
    """A map is a scan without states."""
    rows = [Var(f"row{place}", _row_type(ctx, each)) for place, each in enumerate(arg1)]

    def body(scope: Values, _params: Sequence[Var]) -> list[AnyValue]:
        given = ctx.run(arg0, scope, [*rows, *ctx.take(scope, arg2)])
        return [ctx.number(each) for each in given]

    return _scan(ctx, [], arg1, rows, body)


def _row_type(ctx: Import, x: Expr) -> TensorType:
    type_ = ctx.type(x)
    return TensorType(type_.shape[1:], type_.dtype)
