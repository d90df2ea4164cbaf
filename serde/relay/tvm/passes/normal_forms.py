"""Values bound by lets: all of them, or those that several blocks need."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import ClassVar

from serde.relay.ir import Constructor, Match, OpDef, children, is_absent, post_order, rebuild
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, If, Let, Op, Var
from serde.relay.tvm.passes.scopes import Inner, Scope, find_scopes
from serde.relay.tvm.passes.typed import TypedPass

__all__ = ["ToANormalForm", "ToBasicBlockNormalForm"]

_Visit = Generator["tuple[Expr, Var | None]", Expr, Expr]
"""Asks for what nodes become, and the variable each is to be bound to; returns its own."""


class ToBasicBlockNormalForm(TypedPass):
    """Bind by a let what is shared between blocks, in the innermost block around its uses.

    The body of a function, a branch and a clause are blocks. What one block alone needs stays as
    it is, and so does what is evaluated there before a block inside needs it.
    """

    name: ClassVar[str] = "ToBasicBlockNormalForm"
    opt_level: ClassVar[int] = 1

    def transform(self, function: Function) -> Function:
        """Find the block of each node, then bind."""
        return bind_values(function, every=False)


class ToANormalForm(TypedPass):
    """Bind every value by a let, in the order of evaluation, so that operands are names.

    Calls, tuples, fields, constants, ``if``, ``match`` and functions are bound, each in the
    innermost block around its uses; lets inside the value of a let come before it. Operators'
    operands that must be constants stay, and so does the inside of functions with ``Primitive``.
    :class:`ToGraphNormalForm` is the inverse.
    """

    name: ClassVar[str] = "ToANormalForm"
    opt_level: ClassVar[int] = 1

    def transform(self, function: Function) -> Function:
        """Find the block of each node, then bind."""
        return bind_values(function, every=True)


def bind_values(function: Function, *, every: bool) -> Function:
    """Return a function with its values bound by lets.

    Args:
        function: The function.
        every: Whether all values are bound, not only those that must be.
    """
    result = _Filler(function, every=every).run()
    return result if isinstance(result, Function) else function


class _Filler:
    def __init__(self, root: Expr, *, every: bool) -> None:
        self._root = root
        self._every = every
        self._scopes, self._lifted = find_scopes(root)
        self._done: dict[Expr, Expr] = {}
        self._unbound = {root, *_by_value(root)} if every else set()
        self._count = 0

    def run(self) -> Expr:
        """Visit nodes in the order of evaluation."""
        stack: list[tuple[_Visit, Expr]] = [(self._visit(self._root, None), self._root)]
        answer: Expr | None = None
        while stack:
            visit, node = stack[-1]
            try:
                # A generator just begun, after which the answer is None, takes no other.
                wanted, variable = visit.send(answer)  # type: ignore[arg-type]
            except StopIteration as stop:
                stack.pop()
                answer = self._done.setdefault(node, stop.value)
                continue
            answer = self._known(wanted, variable)
            if answer is None:
                stack.append((self._visit(wanted, variable), wanted))
        return self._scopes[self._root].around(self._done[self._root])

    def _known(self, node: Expr, variable: Var | None) -> Expr | None:
        """Return what a node became before; bound to a variable once more if there is one."""
        found = self._done.get(node)
        if found is not None and variable is not None:
            self._scopes[node].bindings.append((variable, found))
        return found

    def _visit(self, node: Expr, variable: Var | None) -> _Visit:
        if isinstance(node, (Op, GlobalVar, Var, Constructor)) or is_absent(node):
            return self._bind(node, node, variable) if variable is not None else node
        if isinstance(node, Let):
            yield node.value, node.var
            body = yield node.body, None
            inner = self._inner(node, 0)
            if self._every:
                self._scopes[node].take_over(inner)
                return body if variable is None else self._bind(node, body, variable)
            own = deque([(node.var, node.value)])
            same = body is node.body and inner.bindings == own
            return self._place(node, node if same else inner.around(body), variable)
        if isinstance(node, Function) and node.attrs.get("Primitive"):
            return self._place(node, node, variable)
        new = yield from self._rebuild(node)
        return self._place(node, new, variable)

    def _rebuild(self, node: Expr) -> _Visit:
        parts: list[Expr] = []
        bound = _bound_variables(node)
        for child in children(node):
            part = child
            if child not in bound:
                part = yield child, None
            parts.append(part)
        if isinstance(node, If):
            parts[1:] = [self._inner(node, n).around(parts[1 + n]) for n in range(2)]
        elif isinstance(node, Function):
            parts[-1] = self._inner(node, 0).around(parts[-1])
        elif isinstance(node, Match):
            place = 1
            for number, clause in enumerate(node.clauses):
                place += len(clause.variables) + 1
                parts[place - 1] = self._inner(node, number).around(parts[place - 1])
        return rebuild(node, parts) if parts else node

    def _inner(self, node: Expr, number: int) -> Scope:
        return self._scopes[Inner(node, number)]

    def _place(self, node: Expr, new: Expr, variable: Var | None) -> Expr:
        """Return what stands for a node: a variable if it is asked for or needed, else itself."""
        if variable is None:
            wanted = node not in self._unbound if self._every else node in self._lifted
            if not wanted:
                return new
            variable = Var(f"x{self._count}", None, node.span)
            variable.type = new.type
            self._count += 1
        return self._bind(node, new, variable)

    def _bind(self, node: Expr, new: Expr, variable: Var) -> Expr:
        self._scopes[node].bindings.append((variable, new))
        return variable


def _bound_variables(node: Expr) -> set[Expr]:
    """Return the variables that a function or a match binds itself."""
    if isinstance(node, Function):
        return set(node.params)
    if isinstance(node, Match):
        return {variable for clause in node.clauses for variable in clause.variables}
    return set()


def _by_value(root: Expr) -> set[Expr]:
    """Return the constants that operators need as constants."""
    found: set[Expr] = set()
    for node in post_order(root):
        if isinstance(node, Call) and isinstance(node.op, OpDef) and node.op.by_value:
            pairs = zip(node.op.operands, node.args, strict=True)
            found.update(
                argument
                for operand, argument in pairs
                if operand.name in node.op.by_value and isinstance(argument, Constant)
            )
    return found
