"""Functions that calls carry as attributes: the bodies of loops.

A body has no free variables, so it is a scope of its own: no walk over a graph enters it, and
what is done to a function is done to the bodies below it by the walks given here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any as AnyValue, TypeVar

from serde.core import budget, dataclass
from serde.relay.ir.expr import Attrs, Call, Expr, Function, GlobalVar, Var
from serde.relay.ir.registry import OpDef, infer_call
from serde.relay.ir.specialize import specialize_for
from serde.relay.ir.types import Type
from serde.relay.ir.visit import bound_vars, kinds, post_order, rewrite, rewrite_function

__all__ = [
    "Apply", "Blank", "Kernel", "all_nodes", "call_others", "carried", "inner_first",
    "instantiate", "map_bodies", "substitute",
]  # fmt: skip


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


NodeT = TypeVar("NodeT", bound=Expr)
ResultT = TypeVar("ResultT")

Kernel = Generator[Apply | Blank, AnyValue, ResultT]
"""A kernel that runs functions: it yields what it asks for, and is sent the answer."""


def carried(node: Expr) -> tuple[Function, ...]:
    """Return the functions among the attributes of a call; of any other node, none."""
    if not isinstance(node, Call) or not isinstance(node.op, OpDef) or not node.op.carries:
        return ()
    values = (node.attrs[name] for name in node.op.carries)
    return tuple(value for value in values if isinstance(value, Function))


def inner_first(*roots: Expr) -> Sequence[Function]:
    """Return the bodies below `roots`, each once and after those that it carries itself."""
    if len(roots) != 1 or not isinstance(roots[0], Function):
        return _find_bodies(roots)
    function = roots[0]
    if function.carried is None:
        carries = any(isinstance(op, OpDef) and op.carries for op in kinds(function))
        function.carried = tuple(_find_bodies(roots)) if carries else ()
    return function.carried


def _find_bodies(roots: Sequence[Expr]) -> list[Function]:
    order: list[Function] = []
    seen: set[Function] = set()
    stack: list[tuple[Function | None, Iterator[Function]]] = [(None, _bodies_below(*roots))]
    while stack:
        body, pending = stack[-1]
        inner = next((each for each in pending if each not in seen), None)
        if inner is not None:
            seen.add(inner)
            stack.append((inner, _bodies_below(inner)))
            continue
        stack.pop()
        if body is not None:
            order.append(body)
    return order


def _bodies_below(*roots: Expr) -> Iterator[Function]:
    return (body for node in post_order(*roots) for body in carried(node))


def all_nodes(*roots: Expr) -> Iterator[Expr]:
    """Yield every node below `roots`, those of the bodies included."""
    yield from post_order(*roots)
    for body in inner_first(*roots):
        yield from post_order(body)


def map_bodies(function: Function, transform: Callable[[Function], Function]) -> Function:
    """Return `function` with `transform` applied to every body below it, inner ones first.

    `function` itself is returned, untransformed, where no body changes.
    """
    bodies = inner_first(function)
    if not bodies:
        return function
    done: dict[Function, Function] = {}
    for body in bodies:
        done[body] = transform(_replace_bodies(body, _carriers(body), done))
    return _replace_bodies(function, _carriers(function), done)


def _carriers(function: Function) -> list[Call]:
    return [node for node in post_order(function) if isinstance(node, Call) and carried(node)]


def _replace_bodies(
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
        result = Call(new.op, new.args, Attrs(attrs), span=new.span)
        if new.type is not None:
            result.type = infer_call(result)
        return result

    return rewrite_function(function, replace)


def substitute(expr: Expr, values: Mapping[NodeT, Expr]) -> Expr:
    """Return `expr` with `values` for some of its nodes and fresh bound variables."""
    memo: dict[Expr, Expr] = dict(values.items())
    for variable in bound_vars(post_order(expr)):
        fresh = Var(variable.name_hint, variable.type_annotation, variable.span)
        fresh.type = variable.type
        memo[variable] = fresh
    return rewrite(expr, lambda _node, new: new, memo)


def instantiate(
    function: Function, args: Sequence[Expr], result: Type | None = None, *, size: int | None = None
) -> Expr:
    """Return the body of `function` with `args` for its parameters and fresh bound variables.

    Args:
        function: The function.
        args: The arguments.
        result: The type of the call, which a polymorphic function's body takes.
        size: How many nodes the body has, where that has been counted.

    Raises:
        LimitError: It has more nodes than the budget of the conversion affords.
    """
    if function.type_params:
        function = specialize_for(function, args, result)
    name = f"@{function.attrs['global_symbol']}" if "global_symbol" in function.attrs else "a body"
    size = len(post_order(function.body)) if size is None else size
    budget().draw("nodes", size, f"{name} in the place of its calls")
    return substitute(function.body, dict(zip(function.params, args, strict=True)))


def call_others(function: Function, names: Mapping[GlobalVar, GlobalVar]) -> Function:
    """Return `function`, its bodies included, with other names for functions of the module."""

    def replace(_node: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, GlobalVar) or new.op not in names:
            return new
        result = Call(names[new.op], new.args, new.attrs, span=new.span)
        result.type = new.type
        return result

    def rename(scope: Function) -> Function:
        memo: dict[Expr, Expr] = dict(names.items())
        return rewrite_function(scope, replace, memo)

    return rename(map_bodies(function, rename))
