"""Loops, as private functions.

TVM's machine calls functions on the stack of the processor, which ends after a few thousand
calls inside each other. So a loop is no function that calls itself for the next turn: it is one
that makes a turn, one that calls that twice, one that calls this twice, and so on. As many calls
lie inside each other as the number of turns has binary digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue, TypeAlias

from serde.core.records import dataclass, replace
from serde.errors import Unsupported
from serde.relax.export_context import Block, ExportContext, Value
from serde.relax.functions import PrivateFunction, bind_results, cast_shape, outline
from serde.relax.loops import transpose_outside
from serde.relax.ops.table import OPS
from serde.relay.ir import Any, Dim, Function, TensorType, leaf_types
from serde.relay.op.control.body import SCALAR_BOOL, SCALAR_INT, goes_on, results, tensors
from serde.walk.export_context import Writing


@OPS.exports("serde.loop")
def export_loop(
    ctx: ExportContext,
    limit: Value | None,
    going: Value | None,
    state: tuple[Value, ...],
    captures: tuple[Value, ...],
    *,
    body: Function,
) -> Writing[tuple[Value, ...]]:
    """A number of turns that is known is made of powers of two; otherwise each call asks first."""
    stacked = leaf_types(ctx.result)[len(state) :]
    body, captures = transpose_outside(ctx, body, captures)
    always = goes_on(body) and (going is None or (going.data is not None and bool(going.data)))
    asks = not always or limit is None or limit.data is None
    params = [each for param in body.params for each in leaf_types(param.type)]
    types = params[1 : 1 + len(state)], params[1 + len(state) :]
    rows = tensors("body", results(body))[1 + len(state) :]
    loop = _Loop(*types, rows, asks, limit is not None)

    def write(number: Value, states: list[Value], fixed: list[Value]) -> Writing[list[Value]]:
        return list((yield from ctx.body(body, [number, *states, *fixed])))

    turn = yield from _write_turn(ctx, loop, write)
    return _repeat(ctx, loop, turn, limit, going, state, captures, stacked)


@dataclass(frozen=True, slots=True)
class _Loop:
    """What the functions of a loop take and give.

    Attributes:
        states: Types of the states.
        captures: Types of what all turns get.
        rows: Types of what each turn adds to the stacks.
        asks: Whether it is asked before each turn whether to go on.
        has_limit: Whether the number of turns has a bound.
    """

    states: list[TensorType]
    captures: list[TensorType]
    rows: list[TensorType]
    asks: bool
    has_limit: bool

    @property
    def bounded(self) -> bool:
        """Whether the bound is asked for."""
        return self.asks and self.has_limit

    @property
    def carried(self) -> list[TensorType]:
        """Types of what goes round: the turn's number, whether to go on if asked, the states."""
        return [SCALAR_INT, *([SCALAR_BOOL] if self.asks else []), *self.states]

    @property
    def fixed(self) -> list[TensorType]:
        """Types of what all turns get: the bound if asked for, and the captures."""
        return [*([SCALAR_INT] if self.bounded else []), *self.captures]

    @property
    def outputs(self) -> int:
        """How many results each function has."""
        return len(self.carried) + len(self.rows)

    def split(self, values: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """Return what goes round, and what comes behind it."""
        return list(values[: len(self.carried)]), list(values[len(self.carried) :])


Writer: TypeAlias = Callable[[Value, list[Value], list[Value]], Writing[list[Value]]]
"""Writes a body, of the turn's number, states and captures; gives first whether to go on."""


def _write_turn(ctx: ExportContext, loop: _Loop, write: Writer) -> Writing[PrivateFunction]:
    """Write the function of one turn."""
    made = PrivateFunction(ctx, "turn", [*loop.carried, *loop.fixed])
    (number, *states), captures = loop.split(made.params)
    with made.inside():
        bound = captures.pop(0) if loop.bounded else None
        going, *found = yield from write(number, states[loop.asks :], captures)
        following = ctx.emit("add", number, ctx.const(1, "int64"))
        if bound is not None:
            going = ctx.emit("logical_and", going, ctx.emit("less", following, bound))
        asked = [going] if loop.asks else []
        # What a turn yields has the types with which it enters the next.
        pairs = zip(found, loop.states, strict=False)
        states = [ctx.typed(replace(x, type=None), type_) for x, type_ in pairs]
        rows = [ctx.emit("expand_dims", row, axis=0) for row in found[len(states) :]]
        made.end([following, *asked, *states, *rows])
    return made


def _repeat(
    ctx: ExportContext, loop: _Loop, turn: PrivateFunction, limit: Value | None,
    going: Value | None, state: Sequence[Value], captures: Sequence[Value],
    stacked: Sequence[TensorType],
) -> tuple[Value, ...]:  # fmt: skip
    """Write turns and return the last states and the stacks, along the first axis."""
    count = None if limit is None or limit.data is None else max(int(limit.data), 0)
    begin = ctx.const(0, "int64")
    if not loop.asks and count is not None:
        return _repeat_times(ctx, loop, turn, count, [begin, *state], captures, stacked)
    further = ctx.const(True, "bool") if going is None else going
    if limit is not None:
        further = ctx.emit("logical_and", further, ctx.emit("less", begin, limit))
        captures = (limit, *captures)
    return _repeat_while(ctx, loop, turn, count, [begin, further, *state], captures, stacked)


def _repeat_times(
    ctx: ExportContext, loop: _Loop, turn: PrivateFunction, count: int, values: list[Value],
    fixed: Sequence[Value], stacked: Sequence[TensorType],
) -> tuple[Value, ...]:  # fmt: skip
    """Write as many turns as are known."""
    if not count:
        return (*values[1:], *(_no_rows(ctx, each) for each in stacked))
    parts: list[list[Value]] = []
    function = turn
    while count:
        if count & 1:
            values, rows = loop.split(function.call([*values, *fixed], loop.outputs))
            parts.append(rows)
        count >>= 1
        if count:
            function = _twice(ctx, loop, function)
    return (*values[1:], *_join(ctx, loop, parts))


def _twice(ctx: ExportContext, loop: _Loop, function: PrivateFunction) -> PrivateFunction:
    """Write a function that calls another twice, the second time with what the first gives."""
    made = PrivateFunction(ctx, "turns", [*loop.carried, *loop.fixed])
    with made.inside():
        values, fixed = loop.split(made.params)
        values, before = loop.split(function.call([*values, *fixed], loop.outputs))
        values, after = loop.split(function.call([*values, *fixed], loop.outputs))
        made.end([*values, *_join(ctx, loop, [before, after])])
    return made


def _join(ctx: ExportContext, loop: _Loop, parts: Sequence[Sequence[Value]]) -> list[Value]:
    """Return the stacks that lie one behind the other."""
    joined = []
    for index, element in enumerate(loop.rows):
        lengths = [_length(ctx, dim) for dim in element.shape]
        rows = [_know(ctx, part[index], lengths) for part in parts]
        joined.append(rows[0] if len(rows) == 1 else ctx.emit("concat", rows, axis=0))
    return joined


def _length(ctx: ExportContext, dim: Dim) -> AnyValue:
    """Return a length of a row, a new variable where nothing shows it."""
    try:
        return ctx.dim(dim)
    except Unsupported:
        return ctx.symbols.new_length()


def _know(ctx: ExportContext, rows: Value, lengths: Sequence[AnyValue]) -> Value:
    """Return rows with lengths that TVM knows."""
    if ctx.framework.type_of(rows.expr).shape is not None:
        return rows
    return cast_shape(ctx, rows, [ctx.symbols.new_length(), *lengths])


def _repeat_while(
    ctx: ExportContext, loop: _Loop, turn: PrivateFunction, count: int | None, values: list[Value],
    fixed: Sequence[Value], stacked: Sequence[TensorType],
) -> tuple[Value, ...]:  # fmt: skip
    """Write turns until one says to stop.

    Without a bound, one turn is followed by two, these by four, and so on.
    """
    function = _write_turns(ctx, loop, turn)
    level = 0 if count is None else max(count - 1, 0).bit_length()
    if count is None:
        function = _write_further(ctx, loop, function)

    def go() -> list[Value]:
        return function.call([ctx.const(level, "int64"), *values, *fixed], loop.outputs)

    def stop() -> list[Value]:
        return [*values, *(_no_rows(ctx, each) for each in stacked)]

    return tuple(_write_conditional(ctx, loop, values[1], go, stop)[2:])


def _no_rows(ctx: ExportContext, stacked: TensorType) -> Value:
    """Return a stack of no turns; a length that nothing tells is 0 then."""
    lengths = [0 if isinstance(dim, Any) else dim for dim in stacked.shape]
    return ctx.emit("zeros", ctx.shape_expr(lengths), stacked.dtype)


def _write_turns(ctx: ExportContext, loop: _Loop, turn: PrivateFunction) -> PrivateFunction:
    """Write a function that makes two to the power of its first argument turns at most.

    It makes one at least.
    """
    made = PrivateFunction(ctx, "turns", [SCALAR_INT, *loop.carried, *loop.fixed])
    level, *params = made.params

    def make_one() -> list[Value]:
        return turn.call(params, loop.outputs)

    def make_more() -> list[Value]:
        below = ctx.emit("subtract", level, ctx.const(1, "int64"))
        return _go_on(ctx, loop, (made, below), (made, below), params)

    with made.inside():
        made.declare(_declared(ctx, loop))
        last = ctx.emit("equal", level, ctx.const(0, "int64"))
        made.end(_write_conditional(ctx, loop, last, make_one, make_more))
    return made


def _write_further(ctx: ExportContext, loop: _Loop, turns: PrivateFunction) -> PrivateFunction:
    """Write a function that makes ever more turns, as many again and again as before."""
    made = PrivateFunction(ctx, "further", [SCALAR_INT, *loop.carried, *loop.fixed])
    level, *params = made.params
    with made.inside():
        made.declare(_declared(ctx, loop))
        above = ctx.emit("add", level, ctx.const(1, "int64"))
        made.end(_go_on(ctx, loop, (turns, level), (made, above), params))
    return made


def _declared(ctx: ExportContext, loop: _Loop) -> list[AnyValue]:
    """Return the types of Relax of what a function that calls itself gives."""
    stacks = [ctx.framework.TensorType(None, x.dtype, ndim=x.rank + 1) for x in loop.rows]
    return [*map(ctx.relax_type, loop.carried), *stacks]


def _go_on(
    ctx: ExportContext,
    loop: _Loop,
    first: tuple[PrivateFunction, Value],
    second: tuple[PrivateFunction, Value],
    params: Sequence[Value],
) -> list[Value]:
    """Write a call, and where that says to go on, another of what it gives.

    Args:
        ctx: Where they are written.
        loop: The loop.
        first: What is called, and its first argument.
        second: What is called then.
        params: Further arguments of the first.
    """
    values, fixed = loop.split(params)
    found = first[0].call([first[1], *values, *fixed], loop.outputs)
    values, before = loop.split(found)

    def go() -> list[Value]:
        called = second[0].call([second[1], *values, *fixed], loop.outputs)
        following, after = loop.split(called)
        return [*following, *_join(ctx, loop, [before, after])]

    return _write_conditional(ctx, loop, values[1], go, lambda: found)


def _write_conditional(
    ctx: ExportContext,
    loop: _Loop,
    condition: Value,
    first: Callable[[], list[Value]],
    second: Callable[[], list[Value]],
) -> list[Value]:
    """Write a conditional of what two functions write."""
    branches = []
    for write in (first, second):
        block = Block(ctx.scope)
        with ctx.inside(block):
            branches.append(outline(ctx, block, write()))
    made = ctx.framework.relax.If(ctx.expr(condition), *branches)
    return bind_results(ctx, made, loop.outputs)
