"""Programs with lets and branches, written in the order in which they run.

Source: ``tvm.relay.ScopeBuilder``.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any as AnyValue

from serde.errors import RelayError
from serde.relay.ir.expr import Expr, If, Let, Var, astuple, var as make_var
from serde.relay.ir.types import Type

__all__ = ["ScopeBuilder"]


class _Scope:
    """The lets of one scope, and the value that it yields once that is known."""

    def __init__(self) -> None:
        self.bindings: list[tuple[Var, Expr]] = []
        self.value: Expr | None = None
        self.branch: tuple[Expr, Expr] | None = None

    def close(self, value: Expr) -> Expr:
        """Return `value` below the lets."""
        for variable, bound in reversed(self.bindings):
            value = Let(variable, bound, value)
        return value


class ScopeBuilder:
    """Builds an expression of lets, branches and a result.

    Example::

        builder = relay.ScopeBuilder()
        with builder.if_scope(cond):
            one = builder.let("one", relay.const(1.0))
            builder.ret(relay.add(x, one))
        with builder.else_scope():
            builder.ret(x)
        function = relay.Function([x, cond], builder.get())
    """

    def __init__(self) -> None:
        self._scopes = [_Scope()]

    def let(self, var: Var | str | tuple[str, Type | str | None], value: AnyValue) -> Var:
        """Bind `value` to a variable and return that.

        Args:
            var: The variable, its name, or its name and its type.
            value: What it stands for.

        Raises:
            TypeError: `var` is none of these.
        """
        if isinstance(var, (tuple, list)):
            if len(var) > 2:
                raise ValueError(f"expected a name and a type, found {len(var)} values")
            variable = make_var(*var)
        elif isinstance(var, str):
            variable = Var(var)
        elif isinstance(var, Var):
            variable = var
        else:
            raise TypeError(f"expected a variable, a name, or a name and a type, found {var!r}")
        self._scopes[-1].bindings.append((variable, astuple(value)))
        return variable

    @contextmanager
    def if_scope(self, cond: Expr) -> Iterator[None]:
        """Open the branch that is taken where `cond` holds.

        Raises:
            RelayError: The branch ends without a result.
        """
        value = yield from self._branch("if_scope")
        if self._scopes[-1].value is not None or self._scopes[-1].branch is not None:
            raise RelayError("this scope has a result already")
        self._scopes[-1].branch = (cond, value)

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """Open the branch that is taken otherwise; the two make the result of this scope.

        Raises:
            RelayError: There is no branch before it, or it ends without a result.
        """
        opened = self._scopes[-1].branch
        if opened is None:
            raise RelayError("else_scope must follow if_scope")
        value = yield from self._branch("else_scope")
        self._scopes[-1].branch = None
        self._scopes[-1].value = If(opened[0], opened[1], value)

    def _branch(self, name: str) -> Generator[None, None, Expr]:
        self._scopes.append(_Scope())
        try:
            yield
        finally:
            scope = self._scopes.pop()
        if scope.value is None:
            raise RelayError(f"{name} ends without a result; call ret()")
        return scope.close(scope.value)

    def ret(self, value: AnyValue) -> None:
        """Let the innermost scope yield `value`.

        Raises:
            RelayError: It yields something already.
        """
        if self._scopes[-1].value is not None:
            raise RelayError("this scope has a result already")
        self._scopes[-1].value = astuple(value)

    def get(self) -> Expr:
        """Return the whole expression.

        Raises:
            RelayError: A scope is open, or the outermost has no result.
        """
        if len(self._scopes) != 1:
            raise RelayError("a scope is still open")
        value = self._scopes[0].value
        if value is None:
            raise RelayError("there is no result; call ret()")
        return self._scopes[0].close(value)
