"""Which nodes of a Relay expression belong into which branch of its conditionals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from serde.core.records import dataclass
from serde.errors import ConverterBug, Unsupported
from serde.relay.ir import Call, Expr, Function, If, Let, Match, OpDef, Var, children

__all__ = ["Placement", "Scope", "callee", "place"]


class Scope:
    """A graph, a branch of a conditional, or the body of a loop or a function.

    Args:
        parent: The scope around it; None for a graph that sees nothing around it.
        step: What it is in its parent, such as ``loop_1/body``; the name of a function.

    Attributes:
        level: Number of scopes around it.
    """

    __slots__ = ("_jump", "level", "parent", "step")

    def __init__(self, parent: Scope | None = None, step: str = "") -> None:
        self.parent = parent
        self.step = step
        self.level: int = 0 if parent is None else parent.level + 1
        # Of the outermost it is itself: said by None, so that a graph goes once nothing needs it.
        self._jump: Scope | None = None
        if parent is None:
            return
        # Every scope knows one far ancestor, chosen so that a search upwards is logarithmic.
        far = parent.jump
        even = parent.level - far.level == far.level - far.jump.level
        self._jump = far.jump if even else parent

    @property
    def jump(self) -> Scope:
        """A scope around this one, or of the outermost itself."""
        return self._jump or self

    def inner(self, step: str) -> Scope:
        """Return a new scope inside this one."""
        return type(self)(self, step)

    def path(self) -> str:
        """Return the steps from the main graph to here, each with a slash after it."""
        steps = [f"{scope.step}/" for scope in self.around() if scope.step]
        return "".join(reversed(steps))

    def around(self) -> Iterator[Scope]:
        """Yield this scope and those around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def require_level(self, most: int) -> None:
        """Refuse a subgraph that lies too deep inside others.

        Raises:
            Unsupported: More than `most` are around and including it.
        """
        if self.level > most:
            raise Unsupported(f"more than {most} subgraphs lie inside each other")

    def common(self, other: Scope) -> Scope:
        """Return the innermost scope that both are in."""
        one: Scope = self
        while one.level > other.level:
            one = one.jump if one.jump.level >= other.level else _above(one)
        while other.level > one.level:
            other = other.jump if other.jump.level >= one.level else _above(other)
        while one is not other:
            apart = one.jump is not other.jump
            one, other = (one.jump, other.jump) if apart else (_above(one), _above(other))
        return one


def _above(scope: Scope) -> Scope:
    if scope.parent is None:
        raise ConverterBug("two scopes of different graphs are compared")
    return scope.parent


@dataclass(frozen=True, slots=True)
class Placement:
    """How the nodes of one expression lie in scopes.

    Attributes:
        orders: What lies in each scope, operands first.
        branches: The scopes of both branches of each conditional.
        lets: Values of the variables that lets bind.
        uses: How often each node is used.
    """

    orders: Mapping[Scope, Sequence[Expr]]
    branches: Mapping[If, tuple[Scope, Scope]]
    lets: Mapping[Var, Expr]
    uses: Mapping[Expr, int]


def callee(node: Expr) -> Expr | None:
    """Return what a node calls, if that is no operator."""
    return node.op if isinstance(node, Call) and not isinstance(node.op, OpDef) else None


def place(
    root: Expr,
    base: Scope,
    branch: Callable[[If, Scope], tuple[Scope, Scope]],
    captures: Callable[[Function], Sequence[Var]],
) -> Placement:
    """Place the nodes below `root`, which itself lies in `base`.

    A node that one branch alone needs lies in that branch; one that several
    need lies around all of them. Bodies of functions are not looked into; a
    call needs what the function called takes from around it.

    Args:
        root: The expression.
        base: A scope.
        branch: Makes the scopes of both branches of a conditional in a scope.
        captures: Gives the variables that a function takes from around it.
    """
    lets: dict[Var, Expr] = {}
    operands: dict[Expr, tuple[Expr, ...]] = {}
    order = _operands_first(root, lets, operands, captures)
    scopes: dict[Expr, Scope] = {root: base}
    branches: dict[If, tuple[Scope, Scope]] = {}
    uses = dict.fromkeys(order, 0)
    uses[root] = 1
    for node in reversed(order):
        here = scopes[node]
        around = [here] * len(operands[node])
        if isinstance(node, If):
            branches[node] = branch(node, here)
            around[1:] = branches[node]
        for operand, scope in zip(operands[node], around, strict=True):
            uses[operand] += 1
            known = scopes.get(operand)
            scopes[operand] = scope if known is None else known.common(scope)
    orders: dict[Scope, list[Expr]] = {}
    for node in order:
        orders.setdefault(scopes[node], []).append(node)
    return Placement(orders, branches, lets, uses)


def _operands_first(
    root: Expr,
    lets: dict[Var, Expr],
    operands: dict[Expr, tuple[Expr, ...]],
    captures: Callable[[Function], Sequence[Var]],
) -> list[Expr]:
    order: list[Expr] = []
    operands[root] = _operands(root, lets, captures)
    stack: list[tuple[Expr, Iterator[Expr]]] = [(root, iter(operands[root]))]
    while stack:
        node, pending = stack[-1]
        operand = next((each for each in pending if each not in operands), None)
        if operand is None:
            order.append(node)
            stack.pop()
        else:
            operands[operand] = _operands(operand, lets, captures)
            stack.append((operand, iter(operands[operand])))
    return order


def _operands(
    node: Expr, lets: dict[Var, Expr], captures: Callable[[Function], Sequence[Var]]
) -> tuple[Expr, ...]:
    """Return what a node needs the values of."""
    if isinstance(node, Call):
        called = callee(node)
        if isinstance(called, Function):
            return (*node.args, *captures(called))
        return node.args if called is None or isinstance(called, Var) else children(node)
    if isinstance(node, Let):
        lets[node.var] = node.value
        return (node.body,)
    if isinstance(node, Var):
        value = lets.get(node)
        return () if value is None or isinstance(value, Function) else (value,)
    if isinstance(node, Match):  # No format has one; its clauses bind variables of their own.
        return (node.data,)
    return () if isinstance(node, Function) else children(node)
