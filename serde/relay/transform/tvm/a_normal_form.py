"""Every value bound by a let, in the order of evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from serde.relay.ir.adt import Constructor, Match
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, If, Let, Op, Var
from serde.relay.ir.visit import Binding, binding_order, children, rebuild
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.tvm.fusion_graph import OPAQUE_ATTRS, is_absent, parts

__all__ = ["ToANormalForm"]


@dataclass(frozen=True)
class ToANormalForm(FunctionPass):
    """Bind each call, tuple, field, ``if`` and closure by a let, so that operands are names.

    A value that several branches or functions share is bound outside all of them, where it is
    evaluated once. Functions with ``Primitive``, ``Composite``, ``Compiler`` or ``Extern`` stay
    as they are. :class:`ToGraphNormalForm` is the inverse.
    """

    name: ClassVar[str] = "ToANormalForm"

    def transform(self, function: Function) -> Function:
        """Find where each value is needed, then bind it there."""
        if any(key in function.attrs for key in OPAQUE_ATTRS):
            return function
        result = _Binder(function).run()
        return result if isinstance(result, Function) else function


class _Scope:
    """What is evaluated together: the body of a function or a branch of an if."""

    __slots__ = ("bindings", "depth", "parent")

    def __init__(self, parent: _Scope | None) -> None:
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.bindings: list[tuple[Var, Expr]] = []

    def meet(self, other: _Scope) -> _Scope:
        """Return the innermost scope around both."""
        left, right = self, other
        while left is not right:
            if left.depth >= right.depth and left.parent is not None:
                left = left.parent
            elif right.parent is not None:
                right = right.parent
        return left

    def around(self, body: Expr) -> Expr:
        """Return the lets of this scope around its result."""
        for variable, value in reversed(self.bindings):
            body = Let(variable, value, body)
        return body


class _Binder:
    def __init__(self, function: Function) -> None:
        self._root = function
        self._steps = binding_order(function, parts)
        self._scopes: dict[Expr, _Scope] = {function: _Scope(None)}
        self._inner: dict[tuple[Expr, int], _Scope] = {}
        self._values: set[Expr] = set()
        self._done: dict[Expr, Expr] = {}
        self._count = 0
        for step in reversed(self._steps):
            if not isinstance(step, Binding):
                self._place_operands(step)

    def _place_operands(self, node: Expr) -> None:
        """Say in which scope a node needs each of its children."""
        scope = self._scopes[node]
        if isinstance(node, Let):
            self._values.add(node.value)
        for place, child in enumerate(parts(node)):
            inside = isinstance(node, Function) or (isinstance(node, (If, Match)) and place > 0)
            needed = scope
            if inside:
                part = 0 if isinstance(node, Function) else place
                needed = self._inner.setdefault((node, part), _Scope(scope))
            known = self._scopes.get(child)
            self._scopes[child] = needed if known is None else known.meet(needed)

    def run(self) -> Expr:
        """Bind children first."""
        for step in self._steps:
            if isinstance(step, Binding):
                let = step.node
                if isinstance(let, Let):
                    self._scopes[let].bindings.append((let.var, self._done[let.value]))
            else:
                self._done[step] = self._bind(step)
        return self._done[self._root]

    def _bind(self, node: Expr) -> Expr:
        if isinstance(node, (Var, Constant, GlobalVar, Op, Constructor)) or is_absent(node):
            return node
        if isinstance(node, Let):
            return self._done[node.body]
        new = self._rebuilt(node)
        if node is self._root or (isinstance(node, Function) and self._stays(node)):
            return new
        variable = Var(f"x{self._count}", None, node.span)
        variable.type = new.type
        self._count += 1
        self._scopes[node].bindings.append((variable, new))
        return variable

    def _stays(self, node: Function) -> bool:
        """Whether a function is called as it is, or bound by a let that it may name."""
        return node in self._values or any(key in node.attrs for key in OPAQUE_ATTRS)

    def _rebuilt(self, node: Expr) -> Expr:
        below = parts(node)
        done = [self._done[child] for child in below]
        if isinstance(node, Function) and below:
            done[-1] = self._inner[node, 0].around(done[-1])
        elif isinstance(node, If):
            done[1] = self._inner[node, 1].around(done[1])
            done[2] = self._inner[node, 2].around(done[2])
        elif isinstance(node, Match):
            for place, child in enumerate(below):
                if place and (node, place) in self._inner and not isinstance(child, Var):
                    done[place] = self._inner[node, place].around(done[place])
        if isinstance(node, Call) and len(below) != len(children(node)):
            return node
        return rebuild(node, done) if below else node
