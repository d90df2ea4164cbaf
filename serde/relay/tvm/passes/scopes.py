"""In which scope each node of an expression is evaluated, as TVM counts scopes.

The body of a function, a branch, what a let binds with its body, and a clause are scopes. A node
belongs to the innermost scope around all that use it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from serde.core.records import dataclass, field
from serde.relay.ir import Call, Constructor, Expr, Function, GlobalVar, If, Let, Match, Op, Var
from serde.relay.ir.visit import children

__all__ = ["Inner", "Scope", "find_scopes", "lifted_nodes"]


class Scope:
    """What is evaluated together, inside another scope.

    A scope knows its parent and one further out, so that two meet in logarithmic time.

    Attributes:
        bindings: Variables and their values, in order.
    """

    __slots__ = ("bindings", "depth", "jump", "parent")

    def __init__(self, parent: Scope | None) -> None:
        self.bindings: deque[tuple[Var, Expr]] = deque()
        self.parent = self.jump = self
        self.depth = 0
        if parent is not None:
            further = parent.jump
            regular = parent.depth - further.depth == further.depth - further.jump.depth
            self.parent, self.depth = parent, parent.depth + 1
            self.jump = further.jump if regular else parent

    def _ancestor(self, depth: int) -> Scope:
        scope = self
        while scope.depth > depth:
            scope = scope.jump if scope.jump.depth >= depth else scope.parent
        return scope

    def meet(self, other: Scope) -> Scope:
        """Return the innermost scope around both."""
        depth = min(self.depth, other.depth)
        one, two = self._ancestor(depth), other._ancestor(depth)
        while one is not two:
            if one.jump is not two.jump:
                one, two = one.jump, two.jump
            else:
                one, two = one.parent, two.parent
        return one

    def take_over(self, inner: Scope) -> None:
        """Add the bindings of a scope inside; of both, the fewer are moved."""
        if len(inner.bindings) > len(self.bindings):
            inner.bindings.extendleft(reversed(self.bindings))
            self.bindings = inner.bindings
        else:
            self.bindings.extend(inner.bindings)

    def around(self, body: Expr) -> Expr:
        """Return the lets of this scope around its result."""
        for variable, value in reversed(self.bindings):
            body = Let(variable, value, body)
        return body


@dataclass(frozen=True)
class Inner:
    """The scope with a number inside a node that has scopes."""

    node: Expr
    number: int


Place = Expr | Inner


@dataclass
class _Graph:
    """Who uses whom, through the scopes in between.

    Attributes:
        order: Nodes and scopes, each after what it uses.
        users: What uses each, in the order in which it is met.
    """

    order: list[Place] = field(default_factory=list)
    users: dict[Place, list[Place]] = field(default_factory=dict)

    def enter(self, root: Expr) -> None:
        """Walk over everything below `root`."""
        self.users[root] = []
        stack: list[tuple[Place, Iterator[Place]]] = [(root, iter(_uses(root)))]
        while stack:
            place, pending = stack[-1]
            below = next(pending, None)
            if below is None:
                stack.pop()
                self.order.append(place)
                if stack:
                    self.users[place].append(stack[-1][0])
            elif below in self.users:
                self.users[below].append(place)
            else:
                self.users[below] = []
                stack.append((below, iter(_uses(below))))


def _uses(place: Place) -> tuple[Place, ...]:
    if isinstance(place, Inner):
        return _inside(place)
    if isinstance(place, Call):
        return (place.op, *place.args)
    if isinstance(place, If):
        return (place.cond, Inner(place, 0), Inner(place, 1))
    if isinstance(place, Function):
        return () if place.attrs.get("Primitive") else (Inner(place, 0),)
    if isinstance(place, Let):
        return (Inner(place, 0),)
    if isinstance(place, Match):
        return (place.data, *(Inner(place, number) for number in range(len(place.clauses))))
    return children(place)


def _inside(place: Inner) -> tuple[Expr, ...]:
    node = place.node
    if isinstance(node, If):
        return (node.false_branch if place.number else node.true_branch,)
    if isinstance(node, Function):
        return (node.body,)
    if isinstance(node, Let):
        return (node.var, node.value, node.body)
    if isinstance(node, Match):
        return (tuple(node.clauses)[place.number].rhs,)
    raise TypeError(f"{node!r} has no scope inside")


def find_scopes(root: Expr) -> tuple[dict[Place, Scope], set[Expr]]:
    """Return the scope of each node, and the nodes that must be bound in theirs.

    Those are the nodes that are met first in a scope further inside than the one they belong to;
    names are none of them.
    """
    graph = _Graph()
    graph.enter(root)
    scopes: dict[Place, Scope] = {}
    lifted: set[Expr] = set()
    for place in reversed(graph.order):
        users = graph.users[place]
        scope = scopes[users[0]] if users else Scope(None)
        for user in users[1:]:
            scope = scope.meet(scopes[user])
        if isinstance(place, Inner):
            scopes[place] = Scope(scope)
            continue
        scopes[place] = scope
        named = isinstance(place, (Op, Var, GlobalVar, Constructor))
        if users and scope is not scopes[users[0]] and not named:
            lifted.add(place)
    return scopes, lifted


def lifted_nodes(root: Expr) -> set[Expr]:
    """Return the nodes below `root` that break basic-block normal form, none where it holds."""
    return find_scopes(root)[1]
