"""Removal of what loops carry though nothing depends on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from serde.core.records import dataclass
from serde.relay.ir import Call, Expr, Function, Let, OpDef, Tuple, TupleGetItem, Var, call
from serde.relay.ir.types import TupleType
from serde.relay.ir.visit import add_reached, children, post_order, rewrite_function, use_counts

__all__ = ["without_dead_states"]


@dataclass(frozen=True)
class _Loop:
    """A loop or scan, taken apart.

    Attributes:
        node: The call.
        lets: The lets around what its body yields.
        leading: What the body yields before the states: whether a loop goes on.
        states: Next states.
        rows: What is stacked.
        first: Number of parameters of the body before the states.
        captured: Number of parameters before the captures.
    """

    node: Call
    lets: tuple[Let, ...]
    leading: tuple[Expr, ...]
    states: tuple[Expr, ...]
    rows: tuple[Expr, ...]
    first: int
    captured: int


@dataclass(frozen=True)
class _Live:
    """Which states, stacks and captures stay, and the lets of the body that do."""

    states: tuple[int, ...]
    rows: tuple[int, ...]
    captures: tuple[int, ...]
    lets: tuple[Let, ...]


def without_dead_states(function: Function) -> Function:
    """Return `function` with loops that have only the states, stacks and captures that matter.

    A state matters if its last value is used, or if whether the loop goes on, another state
    that matters or a stack that is used depends on it.
    """
    nodes = post_order(function)
    loops = [loop for loop in map(_unpack_loop, nodes) if loop is not None]
    if not loops:
        return function
    plans = _plans(loops, nodes, use_counts(function))
    if not plans:
        return function

    def replace(node: Expr, new: Expr) -> Expr:
        if isinstance(node, Call) and node in plans and isinstance(new, Call):
            return _renumber_results(*plans[node], _remove_dead(*plans[node], new))
        if isinstance(node, TupleGetItem) and node.tuple_value in plans:
            value = children(new)[0]
            return value.fields[node.index] if isinstance(value, Tuple) else new
        return new

    return rewrite_function(
        function, replace, {node: node for node in nodes if isinstance(node, Var)}
    )


def _unpack_loop(node: Expr) -> _Loop | None:
    """Return the parts of a loop or scan; None where they are not spelled out."""
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return None
    if node.op.name not in ("serde.loop", "serde.scan"):
        return None
    is_loop = node.op.name == "serde.loop"
    state = node.args[2 if is_loop else 0]
    captures = node.args[-1]
    if not isinstance(state, Tuple) or not isinstance(captures, Tuple):
        return None
    lets = []
    value = node.attrs["body"].body
    while isinstance(value, Let):
        lets.append(value)
        value = value.body
    if not isinstance(value, Tuple):
        return None
    first = 1 if is_loop else 0
    end = first + len(state)
    fields = value.fields
    captured = len(node.attrs["body"].params) - len(captures)
    return _Loop(
        node, tuple(lets), fields[:first], fields[first:end], fields[end:], first, captured
    )


def _plans(
    loops: Sequence[_Loop], nodes: Iterable[Expr], uses: dict[Expr, int]
) -> dict[Expr, tuple[_Loop, _Live]]:
    fields: dict[Expr, list[int]] = {}
    for node in nodes:
        if isinstance(node, TupleGetItem):
            fields.setdefault(node.tuple_value, []).append(node.index)
    plans: dict[Expr, tuple[_Loop, _Live]] = {}
    for loop in loops:
        taken = fields.get(loop.node, [])
        if len(taken) != uses[loop.node]:
            taken = list(range(len(loop.states) + len(loop.rows)))
        kept = _find_live(loop, set(taken))
        captures = len(loop.node.attrs["body"].params) - loop.captured
        whole = (len(loop.states), len(loop.rows), captures)
        if (len(kept.states), len(kept.rows), len(kept.captures)) != whole:
            plans[loop.node] = (loop, kept)
    return plans


def _find_live(loop: _Loop, used: set[int]) -> _Live:
    """Return the states and rows that results in use depend on."""
    params = loop.node.attrs["body"].params
    values: dict[Expr, Expr] = {let.var: let.value for let in loop.lets}
    for index, following in enumerate(loop.states):
        values[params[loop.first + index]] = following
    count = len(loop.states)
    rows = [index for index in range(len(loop.rows)) if count + index in used]
    pending = [*loop.leading, *(loop.rows[index] for index in rows)]
    pending += [params[loop.first + index] for index in range(count) if index in used]
    seen: set[Expr] = set()
    add_reached(seen, pending, values)
    captures = range(len(params) - loop.captured)
    return _Live(
        tuple(index for index in range(count) if params[loop.first + index] in seen),
        tuple(rows),
        tuple(index for index in captures if params[loop.captured + index] in seen),
        tuple(let for let in loop.lets if let.var in seen),
    )


def _remove_dead(loop: _Loop, kept: _Live, new: Call) -> Call:
    """Return `new`, the call with its operands rewritten, without what does not matter."""
    body = loop.node.attrs["body"]
    count = len(loop.states)
    between = body.params[loop.first + count : loop.captured]
    params = [
        *body.params[: loop.first],
        *(body.params[loop.first + index] for index in kept.states),
        *between,
        *(body.params[loop.captured + index] for index in kept.captures),
    ]
    result: Expr = Tuple(
        [
            *loop.leading,
            *(loop.states[index] for index in kept.states),
            *(loop.rows[index] for index in kept.rows),
        ]
    )
    for let in reversed(kept.lets):
        result = Let(let.var, let.value, result, let.span)
    attrs = dict(new.attrs, body=body.evolve(params=params, body=result, ret_type=None))
    for name in ("out_axes", "out_reverse"):
        if attrs.get(name):
            attrs[name] = tuple(attrs[name][index] for index in kept.rows)
    operands: list[object] = [_operand(argument) for argument in new.args]
    place = 2 * loop.first
    operands[place] = [children(new.args[place])[index] for index in kept.states]
    operands[-1] = [children(new.args[-1])[index] for index in kept.captures]
    return call(loop.node.op.name, *operands, span=new.span, **attrs)  # type: ignore[attr-defined]


def _operand(argument: Expr) -> object:
    """Return an argument as a builder takes it: an absent one is None."""
    return None if argument.type == TupleType(()) else argument


def _renumber_results(loop: _Loop, kept: _Live, new: Call) -> Expr:
    """Return the results of `new` in the places they had, any in those that nobody reads."""
    count, total = len(loop.states), len(loop.states) + len(loop.rows)
    places = [*kept.states, *(count + index for index in kept.rows)]
    if len(places) == total:
        return new
    fields = [TupleGetItem(new, index, new.span) for index in range(len(places))]
    by_place = dict(zip(places, fields, strict=True))
    return Tuple([by_place.get(place, fields[0]) for place in range(total)])
