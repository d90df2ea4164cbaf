"""Which nodes of a Relay expression belong into which scope of an ONNX model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from serde.onnx.builder import Scope
from serde.relay.ir.expr import Call, Expr, Function, If, Let, Var
from serde.relay.ir.registry import OpDef
from serde.relay.ir.visit import children

__all__ = ["Placement", "callee", "place"]


@dataclass(frozen=True, slots=True)
class Placement:
    """How the nodes of one expression lie in scopes.

    Attributes:
        order: All nodes, operands first.
        scopes: The innermost scope around all uses of each node.
        branches: The scopes of both branches of each conditional.
        lets: Values of the variables that lets bind.
        uses: How often each node is used.
    """

    order: Sequence[Expr]
    scopes: Mapping[Expr, Scope]
    branches: Mapping[If, tuple[Scope, Scope]]
    lets: Mapping[Var, Expr]
    uses: Mapping[Expr, int]


def callee(node: Expr) -> Expr | None:
    """Return what a node calls, if that is no operator."""
    return node.op if isinstance(node, Call) and not isinstance(node.op, OpDef) else None


def place(
    root: Expr,
    base: Scope,
    name_of: Callable[[If], str],
    taken_by: Callable[[Function], Sequence[Var]],
) -> Placement:
    """Place the nodes below `root`, which itself lies in `base`.

    A node that one branch alone needs lies in that branch; one that several
    need lies around all of them. Bodies of functions are not looked into; a
    call needs what the function called takes from around it.

    Args:
        root: The expression.
        base: A scope.
        name_of: Gives each conditional its name.
        taken_by: Gives the variables that a function takes from around it.
    """
    lets: dict[Var, Expr] = {}
    below: dict[Expr, tuple[Expr, ...]] = {}
    order = _operands_first(root, lets, below, taken_by)
    scopes: dict[Expr, Scope] = {root: base}
    branches: dict[If, tuple[Scope, Scope]] = {}
    uses = dict.fromkeys(order, 0)
    uses[root] = 1
    for node in reversed(order):
        here = scopes[node]
        places = [here] * len(below[node])
        if isinstance(node, If):
            name = name_of(node)
            branches[node] = Scope(here, f"{name}/then"), Scope(here, f"{name}/else")
            places[1:] = branches[node]
        for child, scope in zip(below[node], places, strict=True):
            uses[child] += 1
            known = scopes.get(child)
            scopes[child] = scope if known is None else known.common(scope)
    return Placement(order, scopes, branches, lets, uses)


def _operands_first(
    root: Expr,
    lets: dict[Var, Expr],
    below: dict[Expr, tuple[Expr, ...]],
    taken_by: Callable[[Function], Sequence[Var]],
) -> list[Expr]:
    order: list[Expr] = []
    below[root] = _below(root, lets, taken_by)
    stack: list[tuple[Expr, Iterator[Expr]]] = [(root, iter(below[root]))]
    while stack:
        node, pending = stack[-1]
        child = next((each for each in pending if each not in below), None)
        if child is None:
            order.append(node)
            stack.pop()
        else:
            below[child] = _below(child, lets, taken_by)
            stack.append((child, iter(below[child])))
    return order


def _below(
    node: Expr, lets: dict[Var, Expr], taken_by: Callable[[Function], Sequence[Var]]
) -> tuple[Expr, ...]:
    """Return what a node needs the values of."""
    if isinstance(node, Call):
        called = callee(node)
        if isinstance(called, Function):
            return (*node.args, *taken_by(called))
        return node.args if called is None or isinstance(called, Var) else children(node)
    if isinstance(node, Let):
        lets[node.var] = node.value
        return (node.body,)
    if isinstance(node, Var):
        value = lets.get(node)
        return () if value is None or isinstance(value, Function) else (value,)
    return () if isinstance(node, Function) else children(node)
