"""Conditionals and loops of ``torch.export``, which have graphs as arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr, Function, If, Tuple, TupleGetItem, Var
from serde.relay.ir.infer import infer_if
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType, Type
from serde.relay.op.control.body import join, results
from serde.torch.aliases import Storage, Values
from serde.torch.import_context import ImportContext
from serde.torch.model import Graph
from serde.torch.ops.table import OPS
from serde.walk.assembly import closed_over
from serde.walk.holes import Hole

_SCALAR = TensorType((), "bool")


@OPS.imports("higher_order::cond")
def import_cond(
    ctx: ImportContext,
    arg0: Expr,
    *,
    arg1: Graph,
    arg2: Graph,
    arg3: Sequence[AnyValue] = (),
) -> list[Expr]:
    """A condition that is known leaves its branch only; one of one element counts as a scalar."""
    condition = _as_condition(ctx, arg0)
    known = ctx.known(condition)
    if known is not None:
        return run_inline(ctx, arg1 if known.item() else arg2, arg3, "true" if known else "false")
    yes, no = (_Branch.of(ctx, g, arg3, name) for g, name in ((arg1, "true"), (arg2, "false")))
    written = list(dict.fromkeys([*yes.written, *no.written]))
    if len(yes.results) != len(no.results):
        raise Unsupported(f"branches of {len(yes.results)} and {len(no.results)} results")
    pairs = list(zip(yes.results, no.results, strict=True))
    for one, other in pairs:
        if (one is None) != (other is None):
            raise Unsupported("only one of two branches gives a tensor, the other None")
    numbers = [all(not isinstance(x, Expr) or ctx.is_number(x) for x in pair) for pair in pairs]
    fields = [[ctx.number(x) for x in each.results if x is not None] for each in (yes, no)]
    for each, branch in zip(fields, (yes, no), strict=True):
        each += [branch.written.get(s) or ctx.current(s) for s in written]
    if not fields[0]:
        return [Hole() for _ in pairs]
    then, other = map(Tuple, fields)
    node = If(condition, then, other)
    node.type = infer_if(node)
    parts = [ctx.fold(TupleGetItem(node, place)) for place in range(len(fields[0]))]
    for storage, part in zip(written, parts[len(parts) - len(written) :], strict=True):
        ctx.write_back(storage, part)
    found = iter(parts)
    return [
        Hole() if one is None else ctx.number(ctx.as_number(next(found))) if number else next(found)
        for (one, _), number in zip(pairs, numbers, strict=True)
    ]


def _only(found: Sequence[AnyValue]) -> AnyValue:
    """Return what the condition of a loop gives, which is one value."""
    if len(found) != 1:
        raise Unsupported(f"a condition of {len(found)} results")
    return found[0]


def _as_condition(ctx: ImportContext, x: Expr) -> Expr:
    if ctx.type(x).rank:
        x = relay.reshape(x, newshape=())
    return ctx.fold(x) if ctx.dtype(x) == "bool" else ctx.cast(x, "bool")


@dataclass
class _Branch:
    """What a branch gives, and what it makes of tensors around it that it writes."""

    results: list[AnyValue]
    written: dict[Storage, Expr]

    @staticmethod
    def of(ctx: ImportContext, graph: Graph, args: Sequence[AnyValue], label: str) -> _Branch:
        scope = ctx.enter(label)
        found = ctx.run(graph, scope, args)
        return _Branch(found, scope.written())


def run_inline(
    ctx: ImportContext, graph: Graph, args: Sequence[AnyValue], label: str
) -> list[Expr]:
    """Return the results of a graph that always runs, once."""
    found = _Branch.of(ctx, graph, args, label)
    for storage, value in found.written.items():
        ctx.write_back(storage, value)
    return [Hole() if each is None else ctx.number(each) for each in found.results]


@OPS.imports("higher_order::while_loop")
def import_while_loop(
    ctx: ImportContext,
    *,
    arg0: Graph,
    arg1: Graph,
    arg2: Sequence[AnyValue],
    arg3: Sequence[AnyValue] = (),
) -> list[Expr]:
    """The condition is asked before the first turn, and by the body before each further one."""
    first = _only(run_inline(ctx, arg0, [*arg2, *arg3], "cond"))
    state = [ctx.number(each) for each in arg2]
    numbers = [not isinstance(x, Expr) or ctx.is_number(x) for x in arg2]
    count = Var("turn", TensorType((), "int64"))

    def body(scope: Values, params: Sequence[Var]) -> list[AnyValue]:
        given = [ctx.number(x) for x in ctx.run(arg1, scope, [*params, *ctx.take(scope, arg3)])]
        asked = ctx.enter("cond", function=True)
        asked.captures = scope.captures
        going = _only(ctx.run(arg0, asked, [*given, *ctx.take(asked, arg3)]))
        return [_as_condition(ctx, ctx.number(going)), *given]

    repeated = repeat(ctx, [count], state, numbers, body, skip=1)
    going = _as_condition(ctx, first)
    found = call(
        "serde.loop", None, going, repeated.state, repeated.captures, body=repeated.function
    )
    parts = [ctx.fold(TupleGetItem(found, i)) for i in range(len(repeated.state))]
    return repeated.settle(ctx, parts, numbers)


@OPS.imports("higher_order::scan")
def import_scan(
    ctx: ImportContext,
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
    ctx: ImportContext,
    state: Sequence[Expr],
    scanned: Sequence[Expr],
    rows: Sequence[Var],
    body: Callable[[Values, Sequence[Var]], list[AnyValue]],
) -> list[Expr]:
    repeated = repeat(ctx, rows, state, [False] * len(state), body, behind=True)
    stacks = len(results(repeated.function)) - len(repeated.state)
    found = call(
        "serde.scan",
        repeated.state,
        list(scanned),
        repeated.captures,
        body=repeated.function,
        axes=(0,) * len(scanned),
        reverse=(False,) * len(scanned),
        out_axes=(0,) * stacks,
        out_reverse=(False,) * stacks,
    )
    parts = [ctx.fold(TupleGetItem(found, i)) for i in range(len(repeated.state) + stacks)]
    return repeated.settle(ctx, parts, [False] * len(state))


@OPS.imports("higher_order::map_impl")
def import_map(
    ctx: ImportContext, *, arg0: Graph, arg1: Sequence[Expr], arg2: Sequence[AnyValue] = ()
) -> list[Expr]:
    """A map is a scan without states."""
    rows = [Var(f"row{place}", _row_type(ctx, each)) for place, each in enumerate(arg1)]

    def body(scope: Values, _params: Sequence[Var]) -> list[AnyValue]:
        given = ctx.run(arg0, scope, [*rows, *ctx.take(scope, arg2)])
        return [ctx.number(each) for each in given]

    return _scan(ctx, [], arg1, rows, body)


def _row_type(ctx: ImportContext, x: Expr) -> TensorType:
    type_ = ctx.type(x)
    return TensorType(type_.shape[1:], type_.dtype)


# Bodies of loops.


@dataclass
class Repeated:
    """A body of a loop with what it begins with.

    Attributes:
        function: The body; of tensors around it that it writes, the values follow the states.
        state: States at the beginning, those tensors included.
        captures: What it takes from around it.
        written: The tensors that it writes.
    """

    function: Function
    state: list[Expr]
    captures: tuple[Expr, ...]
    written: list[Storage]

    def settle(
        self, ctx: ImportContext, parts: Sequence[Expr], numbers: Sequence[bool]
    ) -> list[Expr]:
        """Return the results of a loop, what it made of tensors around it being written back."""
        count = len(numbers)
        for storage, value in zip(self.written, parts[count:], strict=False):
            ctx.write_back(storage, value)
        own = [
            ctx.number(ctx.as_number(each)) if number else each
            for each, number in zip(parts, numbers, strict=False)
        ]
        return own + list(parts[count + len(self.written) :])


def repeat(
    ctx: ImportContext,
    given: Sequence[Var],
    state: Sequence[Expr],
    numbers: Sequence[bool],
    body: Callable[[Values, Sequence[Var]], list[AnyValue]],
    *,
    skip: int = 0,
    behind: bool = False,
) -> Repeated:
    """Return the body of a loop whose states have types that join those before and behind it.

    Args:
        ctx: The context of the loop.
        given: Parameters besides the states: the number of the turn, or slices.
        state: The states at the beginning.
        numbers: Which of them stand for numbers of Python's.
        body: Gives the results of a turn, in its scope and of its states.
        skip: How many results come before the states.
        behind: Whether `given` follow the states.
    """
    types: list[Type] = [ctx.type(each) for each in state]
    written: dict[Storage, Type] = {}
    while True:
        params = [Var(f"state{place}", type_) for place, type_ in enumerate(types)]
        for param, number in zip(params, numbers, strict=True):
            if number:
                ctx.as_number(param)
        carried = {each: Var(each.name, type_) for each, type_ in written.items()}
        scope = ctx.enter("body", function=True, carried=carried)
        found = body(scope, params)
        changed = scope.written()
        fresh = [each for each in changed if each not in written]
        if fresh:
            written |= {each: ctx.type(ctx.current(each)) for each in fresh}
            continue
        place = skip + len(state)
        outs = [*found[:place], *(changed[each] for each in written), *found[place:]]
        states = [*params, *carried.values()]
        ordered = [*states, *given] if behind else [*given, *states]
        function, captures = closed_over(ordered, scope.captures or {}, outs)
        before = [*types, *written.values()]
        later = results(function)[skip : skip + len(states)]
        joined = [join(one, other) for one, other in zip(before, later, strict=True)]
        if joined == before:
            begin = [*state, *map(ctx.current, written)]
            return Repeated(function, begin, tuple(captures), list(written))
        types = [*joined[: len(state)]]
        written = dict(zip(written, joined[len(state) :], strict=True))
