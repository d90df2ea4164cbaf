"""Functions that calls carry as attributes: the bodies of loops.

A body has no free variables, so it is a scope of its own: no walk over a graph enters it, and
what is done to a function is done to the bodies below it by the walks given here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any as AnyValue
from typing import TypeVar

from serde.relay.expr import Attrs, Call, Expr, Function, Op, Var
from serde.relay.registry import infer_call
from serde.relay.visit import bound_vars, post_order, rewrite

__all__ = [
    "Apply",
    "Blank",
    "Kernel",
    "all_nodes",
    "all_scopes",
    "carried",
    "instantiate",
    "map_bodies",
]


@dataclass(frozen=True, slots=True)
class Apply:
    """What a kernel asks for that runs a function: its result for `args`."""

    function: Function
    args: Sequence[AnyValue]


@dataclass(frozen=True, slots=True)
class Blank:
    """What a kernel asks for where it does not run a function: zeros of its result's types.

    A length that nothing tells is 0.
    """

    function: Function
    args: Sequence[AnyValue]


ResultT = TypeVar("ResultT")

Kernel = Generator[Apply | Blank, AnyValue, ResultT]
"""A kernel that runs functions: it yields what it asks for, and is sent the answer."""


def carried(node: Expr) -> tuple[Function, ...]:
    """Return the functions among the attributes of a call; of any other node, none."""
    if not isinstance(node, Call) or not isinstance(node.op, Op) or not node.attrs:
        return ()
    return tuple(value for value in node.attrs.values() if isinstance(value, Function))


def all_scopes(*roots: Expr) -> list[list[Expr]]:
    """Return the nodes of `roots` and of each body below them, a list for each, inner ones last."""
    scopes = [post_order(*roots)]
    seen: set[Function] = set()
    for nodes in scopes:  # grows while it is walked
        for body in (body for node in nodes for body in carried(node)):
            if body not in seen:
                seen.add(body)
                scopes.append(post_order(body))
    return scopes


def all_nodes(*roots: Expr) -> Iterable[Expr]:
    """Yield every node below `roots`, those of the bodies included."""
    for nodes in all_scopes(*roots):
        yield from nodes


def map_bodies(function: Function, transform: Callable[[Function], Function]) -> Function:
    """Return `function` with `transform` applied to every body below it, inner ones first.

    `function` itself is returned, untransformed, where no body changes.
    """
    done: dict[Function, Function] = {}
    stack: list[tuple[Function, list[Call]]] = [(function, _carriers(function))]
    while stack:
        outer, calls = stack[-1]
        waiting = {body for call in calls for body in carried(call) if body not in done}
        if waiting:
            stack.extend((body, _carriers(body)) for body in waiting)
            continue
        stack.pop()
        if outer in done:
            continue
        new = _with_bodies(outer, calls, done) if calls else outer
        done[outer] = new if outer is function else transform(new)
    return done[function]


def _carriers(function: Function) -> list[Call]:
    return [node for node in post_order(function) if isinstance(node, Call) and carried(node)]


def _with_bodies(
    function: Function, calls: Sequence[Call], bodies: Mapping[Function, Function]
) -> Function:
    changed = {call for call in calls if any(bodies[body] is not body for body in carried(call))}
    if not changed:
        return function

    def replace(node: Expr, new: Expr) -> Expr:
        if node not in changed or not isinstance(new, Call):
            return new
        attrs = {
            name: bodies[value] if isinstance(value, Function) else value
            for name, value in new.attrs.items()
        }
        result = Call(new.op, new.args, Attrs(attrs), new.span)
        if new.type is not None:
            result.type = infer_call(result)
        return result

    result = rewrite(function, replace)
    return result if isinstance(result, Function) else function


def instantiate(function: Function, args: Sequence[Expr]) -> Expr:
    """Return the body of `function` with `args` for its parameters and fresh bound variables."""
    memo: dict[Expr, Expr] = dict(zip(function.params, args, strict=True))
    for variable in bound_vars(post_order(function.body)):
        fresh = Var(variable.name_hint, variable.type_annotation, variable.span)
        fresh.type = variable.type
        memo[variable] = fresh
    return rewrite(function.body, lambda _node, new: new, memo)
