"""Loops: ``while_loop`` is read and written; else they are statements of Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from serde.errors import Unsupported
from serde.relay.ir import Expr, Function, TupleGetItem, Var, call, value_types
from serde.relay.ir.types import SequenceType, TensorType
from serde.relay.op.control.body import goes_on
from serde.torch import program as tree
from serde.torch.aliases import Values
from serde.torch.model import Graph
from serde.torch.ops.control.body import HINT, begin_state, param_type, repeat, stack
from serde.torch.ops.control.branch import as_condition, run_inline
from serde.torch.ops.table import OPS, Export, Import, Value
from serde.walk.bodies import only_result
from serde.walk.export_context import Writing


@OPS.exports("serde.loop")
def export_loop(
    ctx: Export,
    limit: Value | None,
    going: Value | None,
    state: tuple[Value, ...],
    captures: tuple[Value, ...],
    *,
    body: Function,
) -> Writing[tuple[Value, ...]]:
    """With a limit alone it is ``for``, otherwise ``while``; what is stacked goes into lists."""
    types = value_types(ctx.result)
    if ctx.hop:
        return (yield from _write_while_loop(ctx, limit, going, state, captures, body))
    asks = not (goes_on(body) and (going is None or ctx.scalar(going) is True))
    carried = [begin_state(ctx, each) for each in state]
    lists = [ctx.begin_list() for _ in types[len(state) :]]
    counter, condition = ctx.variable("i"), ctx.variable("going")
    if asks:
        known = True if going is None else ctx.scalar(going)
        first: tree.Expression = tree.Literal(known)
        if going is not None and known is None:
            first = tree.Apply("bool", (ctx.term(going),))
        ctx.write(tree.Assign((condition,), first))
    counted = _as_count(ctx, limit)
    if asks or counted is None:
        ctx.write(tree.Assign((counter,), tree.Literal(0)))
    scope = ctx.block("body")
    with ctx.inside(scope):
        number = ctx.assign(tree.Apply("torch.tensor", (tree.Local(counter),)))
        inner = [ctx.typed(number, TensorType((), "int64"))]
        params = body.params[1 : 1 + len(state)]
        inner += [Value(n, param_type(each)) for n, each in zip(carried, params, strict=True)]
        found = yield from ctx.body(body, [*inner, *captures])
        follows, *results = found
        for target, row in zip(lists, results[len(state) :], strict=True):
            ctx.append(target, row)
        ctx.write_all(carried, results[: len(state)])
        if asks:
            ctx.write(tree.Assign((condition,), tree.Apply("bool", (ctx.term(follows),))))
        if asks or counted is None:
            after = tree.Infix("+", tree.Local(counter), tree.Literal(1))
            ctx.write(tree.Assign((counter,), after))
    if asks or counted is None:
        asked = _question(counter, condition if asks else None, counted)
        ctx.write(tree.Loop(asked, scope.statements, tuple(carried), source=ctx.source))
    else:
        loop = tree.Loop(None, scope.statements, tuple(carried), counter, counted, ctx.source)
        ctx.write(loop)
    values = [Value(name, type_) for name, type_ in zip(carried, types, strict=False)]
    stacks = zip(lists, types[len(state) :], strict=True)
    return (*values, *(stack(ctx, rows, type_) for rows, type_ in stacks))


def _as_count(ctx: Export, limit: Value | None) -> tree.Expression | None:
    """Return a limit as a number of Python's."""
    if limit is None:
        return None
    known = ctx.scalar(limit)
    if known is not None:
        return tree.Literal(max(int(known), 0))
    return tree.Apply("int", (ctx.term(limit),))


def _question(
    counter: str, condition: str | None, limit: tree.Expression | None
) -> tree.Expression:
    """Return what is asked before each turn."""
    below = None if limit is None else tree.Infix("<", tree.Local(counter), limit)
    if condition is None:
        return below or tree.Literal(True)
    going = tree.Local(condition)
    return going if below is None else tree.Infix("and", going, below)


def _write_while_loop(
    ctx: Export,
    limit: Value | None,
    going: Value | None,
    state: tuple[Value, ...],
    captures: tuple[Value, ...],
    body: Function,
) -> Writing[tuple[Value, ...]]:
    """All that the loop carries are tensors; what is stacked has its place from the beginning."""
    types = value_types(ctx.result)
    asks = not (goes_on(body) and (going is None or ctx.scalar(going) is True))
    counter, condition = ctx.variable(), ctx.variable()
    ctx.write(tree.Assign((counter,), tree.Apply("torch.tensor", (tree.Literal(0),))))
    carried = [counter]
    if asks:
        first = ctx.const(True) if going is None else going
        ctx.write(tree.Assign((condition,), tree.Method(ctx.term(first), "clone")))
        carried.append(condition)
    names = [begin_state(ctx, each) for each in state]
    stacks = [begin_state(ctx, _reserve(ctx, type_)) for type_ in types[len(state) :]]
    scope = ctx.block("body")
    with ctx.inside(scope):
        inner = [Value(counter, TensorType((), "int64"))]
        params = body.params[1 : 1 + len(state)]
        inner += [Value(n, param_type(each)) for n, each in zip(names, params, strict=True)]
        follows, *results = yield from ctx.body(body, [*inner, *captures])
        place = tree.Method(tree.Local(counter), "reshape", (tree.Literal(1),))
        rows = [
            ctx.assign(
                tree.Method(
                    tree.Local(stack),
                    "index_copy",
                    (tree.Literal(0), place, tree.Method(ctx.term(row), "unsqueeze", (_ZERO,))),
                )
            )
            for stack, row in zip(stacks, results[len(state) :], strict=True)
        ]
        after = [ctx.assign(tree.Infix("+", tree.Local(counter), tree.Literal(1)))]
        after += [follows] if asks else []
        new = [*after, *results[: len(state)], *rows]
        copies = [ctx.assign(tree.Method(ctx.term(each), "clone")) for each in new]
        carried += [*names, *stacks]
        ctx.write_all(carried, copies)
    ctx.write(tree.Loop(_ask(ctx, counter, condition, limit, asks), scope.statements,
                        tuple(carried), source=ctx.source))  # fmt: skip
    given = [*names, *stacks]
    return tuple(Value(name, type_) for name, type_ in zip(given, types, strict=True))


_ZERO = tree.Literal(0)


def _ask(
    ctx: Export, counter: str, condition: str, limit: Value | None, asks: bool
) -> tree.Expression:
    """Return what is asked before each turn, a tensor."""
    going = tree.Local(condition)
    if limit is None:
        return going if asks else tree.Apply("torch.tensor", (tree.Literal(True),))
    bound = ctx.term(limit, number=True)
    below = tree.Infix("<", tree.Local(counter), bound)
    return tree.Apply("torch.logical_and", (below, going)) if asks else below


def _reserve(ctx: Export, type_: TensorType | SequenceType) -> Value:
    """Return zeros for what is stacked."""
    shape = type_.concrete_shape if isinstance(type_, TensorType) else None
    if shape is None or not isinstance(type_, TensorType):
        raise Unsupported("stacks of open length in a higher-order operator", hint=HINT)
    return ctx.call("torch.zeros", list(shape), dtype=ctx.dtype(type_.dtype))


@OPS.imports("higher_order::while_loop")
def import_while_loop(
    ctx: Import,
    *,
    arg0: Graph,
    arg1: Graph,
    arg2: Sequence[AnyValue],
    arg3: Sequence[AnyValue] = (),
) -> list[Expr]:
    """The condition is asked before the first turn, and by the body before each further one."""
    first = only_result(run_inline(ctx, arg0, [*arg2, *arg3], "cond"))
    state = [ctx.number(each) for each in arg2]
    numbers = [not isinstance(x, Expr) or ctx.is_number(x) for x in arg2]
    count = Var("turn", TensorType((), "int64"))

    def body(scope: Values, params: Sequence[Var]) -> list[AnyValue]:
        given = [ctx.number(x) for x in ctx.run(arg1, scope, [*params, *ctx.take(scope, arg3)])]
        asked = ctx.enter("cond", function=True)
        asked.captures = scope.captures
        going = only_result(ctx.run(arg0, asked, [*given, *ctx.take(asked, arg3)]))
        return [as_condition(ctx, ctx.number(going)), *given]

    repeated = repeat(ctx, [count], state, numbers, body, skip=1)
    going = as_condition(ctx, first)
    found = call(
        "serde.loop", None, going, repeated.state, repeated.captures, body=repeated.function
    )
    parts = [ctx.fold(TupleGetItem(found, i)) for i in range(len(repeated.state))]
    return repeated.settle(ctx, parts, numbers)
