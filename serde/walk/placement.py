"""Which nodes of a Relay expression belong into which branch of its conditionals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from serde.relay.ir.expr import Expr, If
from serde.relay.ir.visit import children, post_order

__all__ = ["Scope", "place"]


@dataclass(eq=False, slots=True)
class Scope:
    """A branch of a conditional, or the whole expression.

    Attributes:
        parent: The scope around it; None around the whole.
        depth: How many there are around it.
        nodes: What lies in it, operands first.
        branches: Scopes of both branches of each conditional that lies in it.
    """

    parent: Scope | None = None
    depth: int = 0
    nodes: list[Expr] = field(default_factory=list)
    branches: dict[If, tuple[Scope, Scope]] = field(default_factory=dict)

    def inner(self) -> Scope:
        """Return a new scope inside this one."""
        return Scope(self, self.depth + 1)

    def common(self, other: Scope) -> Scope:
        """Return the innermost scope around both."""
        one: Scope | None = self
        two: Scope | None = other
        while one is not two and one is not None and two is not None:
            deep, shallow = (one, two) if one.depth >= two.depth else (two, one)
            one, two = deep.parent, shallow
        return one if one is not None else self


def place(root: Expr) -> Scope:
    """Return the scope of a whole expression, with those inside it.

    A node that one branch alone needs lies in that branch; one that several need lies in the
    innermost scope around all of them.
    """
    whole = Scope()
    order: Sequence[Expr] = post_order(root)
    scopes: dict[Expr, Scope] = {root: whole}
    for node in reversed(order):
        here = scopes[node]
        below = children(node)
        places = [here] * len(below)
        if isinstance(node, If):
            here.branches[node] = here.inner(), here.inner()
            places[1:] = here.branches[node]
        for child, scope in zip(below, places, strict=True):
            known = scopes.get(child)
            scopes[child] = scope if known is None else known.common(scope)
    for node in order:
        scopes[node].nodes.append(node)
    return whole
