"""Modules: named functions with an entry called ``main``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as AnyValue

from serde.errors import RelayError
from serde.relay.ir import hooks
from serde.relay.ir.expr import Expr, Function, GlobalVar
from serde.relay.ir.visit import free_vars

__all__ = ["IRModule"]


class IRModule:
    """Functions by name; ``main`` is the entry.

    Args:
        functions: Functions by :class:`GlobalVar` or by name.
        attrs: Free facts about the module.
        checked: Whether type inference has passed over all of it; its text then shows types.
    """

    __slots__ = ("attrs", "checked", "functions")

    def __init__(
        self,
        functions: Mapping[GlobalVar, Function] | Mapping[str, Function] | None = None,
        attrs: Mapping[str, AnyValue] | None = None,
        *,
        checked: bool = False,
    ) -> None:
        self.functions: dict[GlobalVar, Function] = {}
        self.attrs: dict[str, AnyValue] = dict(attrs or {})
        self.checked = checked
        for key, function in (functions or {}).items():
            variable = GlobalVar(key, function.type) if isinstance(key, str) else key
            if any(known.name_hint == variable.name_hint for known in self.functions):
                raise RelayError(f"two functions are called {variable.name_hint}")
            self.functions[variable] = function

    @classmethod
    def from_expr(
        cls, expr: Expr, functions: Mapping[GlobalVar, Function] | None = None
    ) -> IRModule:
        """Return a module whose ``main`` is `expr`.

        An expression that is not a function becomes the body of one whose
        parameters are its free variables, in order of appearance.
        """
        if not isinstance(expr, Function):
            expr = Function(free_vars(expr), expr)
        return cls({**(functions or {}), GlobalVar("main", expr.type): expr})

    def get_global_var(self, name: str) -> GlobalVar:
        """Return the variable of the function called `name`.

        Raises:
            RelayError: There is no such function.
        """
        for variable in self.functions:
            if variable.name_hint == name:
                return variable
        known = ", ".join(sorted(v.name_hint for v in self.functions)) or "none"
        raise RelayError(f"no function is called {name} (there are: {known})")

    def get_global_vars(self) -> list[GlobalVar]:
        """Return the variables of all functions."""
        return list(self.functions)

    def with_functions(
        self, functions: Mapping[GlobalVar, Function], *, checked: bool | None = None
    ) -> IRModule:
        """Return a module with these functions and the attributes of this one."""
        known = self.checked if checked is None else checked
        return IRModule(functions, self.attrs, checked=known)

    def __getitem__(self, name: str | GlobalVar) -> Function:
        key = self.get_global_var(name) if isinstance(name, str) else name
        return self.functions[key]

    def __contains__(self, name: object) -> bool:
        return any(name in (variable, variable.name_hint) for variable in self.functions)

    def astext(self, show_meta_data: bool = True, *, strict: bool = False) -> str:
        """Return the module's text.

        Args:
            show_meta_data: Whether constants that do not print inline follow at the end.
            strict: Whether the text is legal for TVM 0.18; otherwise it is serde's dialect,
                with named dimensions, extension calls and exact floats.
        """
        printer = hooks.printer()
        text: str = printer.print_module(self, show_meta_data=show_meta_data, strict=strict)
        return text

    def __str__(self) -> str:
        return self.astext(show_meta_data=False)

    def __repr__(self) -> str:
        return f"IRModule({', '.join(sorted(v.name_hint for v in self.functions))})"
