"""Whether an expression has a form that passes ask for."""

from __future__ import annotations

from serde.relay.ir import Expr, Function, If, IRModule, Let, Match, Op, TupleWrapper, Var, astuple
from serde.relay.tvm.analysis.variables import parts

__all__ = ["check_basic_block_normal_form", "well_formed"]


def well_formed(expr: Expr | TupleWrapper | IRModule) -> bool:
    """Whether each variable is bound once, and nowhere used outside what binds it.

    Variables that nothing binds may be used anywhere.
    """
    if isinstance(expr, IRModule):
        return all(well_formed(function) for function in expr.functions.values())
    return _Binders().accept(astuple(expr))


class _Binders:
    """Looks at what binds variables, scope by scope; a shared node counts in each scope."""

    def __init__(self) -> None:
        self._open: set[Var] = set()
        self._ever: set[Var] = set()
        self._free: set[Var] = set()

    def accept(self, root: Expr) -> bool:
        """Whether the rules hold below `root`."""
        seen: set[Expr] = set()
        pending: list[Expr | list[Var]] = [root]
        while pending:
            node = pending.pop()
            if isinstance(node, list):
                self._open.difference_update(node)
            elif isinstance(node, Var):
                if not self._use(node):
                    return False
            elif node not in seen:
                seen.add(node)
                binds = _binds(node)
                if not all(self._bind(variable) for variable in binds):
                    return False
                if binds:
                    pending.append(binds)
                below = [each for each in parts(node) if each not in binds]
                pending.extend(reversed(below))
        return True

    def _use(self, variable: Var) -> bool:
        if variable in self._open:
            return True
        self._free.add(variable)
        return variable not in self._ever

    def _bind(self, variable: Var) -> bool:
        if variable in self._ever or variable in self._free:
            return False
        self._open.add(variable)
        self._ever.add(variable)
        return True


def _binds(node: Expr) -> list[Var]:
    """Return the variables that a node binds in what is below it."""
    if isinstance(node, Function):
        return list(node.params)
    if isinstance(node, Match):
        return [variable for clause in node.clauses for variable in clause.variables]
    return [node.var] if isinstance(node, Let) else []


def check_basic_block_normal_form(expr: Expr | TupleWrapper) -> bool:
    """Whether no value that several scopes share is first needed in an inner one of them.

    A scope is the body of a function, a branch, or a let. Where a value is shared by two branches,
    it has to be bound by a let outside of them.
    """
    users, order = _dependencies(astuple(expr))
    scopes: dict[Expr, _Scope] = {}
    for node in reversed(order):
        wanted = [scopes[user].inner(user, part) for user, part in users[node]]
        scopes[node] = wanted[0] if wanted else _Scope(None)
        if not all(scopes[node].encloses(scope) for scope in wanted[1:]):
            return False
    return True


class _Scope:
    """A scope in the tree of scopes; ``jump`` leads far up, so that ancestors are found fast."""

    __slots__ = ("depth", "jump", "parent", "parts")

    def __init__(self, parent: _Scope | None) -> None:
        self.parent: _Scope = parent if parent is not None else self
        self.depth: int = 0 if parent is None else parent.depth + 1
        above = self.parent.jump if parent is not None else self
        even = parent is not None and parent.depth - above.depth == above.depth - above.jump.depth
        self.jump: _Scope = above.jump if even else self.parent
        self.parts: dict[tuple[Expr, int], _Scope] = {}

    def inner(self, node: Expr, part: int) -> _Scope:
        """Return the scope of a part of a node in this scope; part 0 has none of its own."""
        if not part:
            return self
        if (node, part) not in self.parts:
            self.parts[node, part] = _Scope(self)
        return self.parts[node, part]

    def encloses(self, other: _Scope) -> bool:
        """Whether this is `other` or one around it."""
        while other.depth > self.depth:
            other = other.jump if other.jump.depth >= self.depth else other.parent
        return other is self


Users = dict[Expr, list[tuple[Expr, int]]]
"""Of a node: what needs it, and in which part."""


def _dependencies(root: Expr) -> tuple[Users, list[Expr]]:
    """Return the users of each node in the order in which they are met, and nodes in post-order."""
    users: Users = {root: []}
    order: list[Expr] = []
    stack = [(root, _needs(root))]
    while stack:
        node, needs = stack[-1]
        while needs:
            part, child = needs[-1]
            if child not in users:
                users[child] = []
                stack.append((child, _needs(child)))
                break
            users[child].append((node, part))
            needs.pop()
        else:
            order.append(node)
            stack.pop()
    return users, order


def _needs(node: Expr) -> list[tuple[int, Expr]]:
    """Return what a node needs, last first, and in which of its scopes."""
    below = [each for each in parts(node) if not isinstance(each, Op)]
    if isinstance(node, (Function, Let)):
        found = [(1, each) for each in below]
    elif isinstance(node, (If, Match)):
        found = list(enumerate(below))
    else:
        found = [(0, each) for each in below]
    return found[::-1]
