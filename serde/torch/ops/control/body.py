"""Bodies of loops, and what they carry on from turn to turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

from serde.core.records import dataclass
from serde.relay.ir import Expr, Function, SequenceType, TensorType, Type, Var, value_types
from serde.relay.op.control.body import join, results
from serde.torch import program as tree
from serde.torch.aliases import Storage, Values
from serde.torch.ops.table import Export, Import, Value
from serde.walk.assembly import closed_over


def param_type(param: Var) -> TensorType | SequenceType:
    """Return the type of a parameter of a body, which is no tuple."""
    return value_types(param.type)[0]


def begin_state(ctx: Export, value: Value) -> str:
    """Return a variable that a loop carries on, with its first value."""
    name = ctx.variable()
    ctx.write(tree.Assign((name,), ctx.term(value)))
    return name


def stack(ctx: Export, rows: str, type_: TensorType | SequenceType, axis: int = 0) -> Value:
    """Return what a list holds as one tensor, which may have no rows."""
    if isinstance(type_, SequenceType):
        return Value(rows, type_)
    lengths = [dim for place, dim in enumerate(type_.shape) if place != axis]
    count = type_.shape[axis]
    if isinstance(count, int) and count > 0:
        return ctx.call("torch.stack", Value(rows), **({"dim": axis} if axis else {}))
    known = [dim if isinstance(dim, int) else 0 for dim in lengths]
    known.insert(axis, 0)
    none = ctx.call("torch.zeros", known, dtype=ctx.dtype(type_.dtype))
    return ctx.call(ctx.helper("stack_rows"), Value(rows), none, axis)


HINT = "control_flow='python' writes it"


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

    def settle(self, ctx: Import, parts: Sequence[Expr], numbers: Sequence[bool]) -> list[Expr]:
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
    ctx: Import, given: Sequence[Var], state: Sequence[Expr], numbers: Sequence[bool],
    body: Callable[[Values, Sequence[Var]], list[AnyValue]],
    *, skip: int = 0, behind: bool = False,
) -> Repeated:  # fmt: skip
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
