"""Whether an expression has a form that passes ask for."""

from __future__ import annotations

from serde.relay.ir import Expr, Function, IRModule, Let, Match, TupleWrapper, Var, astuple
from serde.relay.tvm.analysis.variables import parts

__all__ = ["well_formed"]


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
