"""Which functions of a module name which."""

from __future__ import annotations

from serde.relay.ir.expr import GlobalVar
from serde.relay.ir.module import IRModule, callees_first, find_callees

__all__ = ["CallGraph"]


class CallGraph:
    """The functions of a module, and what each of them calls or names, however often.

    Args:
        module: The module.
    """

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self._callees = {each: list(dict.fromkeys(c)) for each, c in find_callees(module).items()}

    def ref_count(self, var: str | GlobalVar) -> int:
        """Return how many functions call or name one, itself among them."""
        return sum(self._find(var) in callees for callees in self._callees.values())

    def global_call_count(self, var: str | GlobalVar) -> int:
        """Return how many functions one calls or names."""
        return len(self._callees[self._find(var)])

    def is_recursive(self, var: str | GlobalVar) -> bool:
        """Whether a function names itself."""
        return self._find(var) in self._callees[self._find(var)]

    def print_var(self, var: str | GlobalVar) -> str:
        """Return a function and what it calls as text."""
        name = self._find(var).name_hint
        callees = self._callees[self._find(var)]
        lines = [f"  call site: <{name}> calls {callee.name_hint}" for callee in callees]
        return "\n".join([f"Call graph node: {name}, #refs = {self.ref_count(name)}", *lines])

    def _find(self, var: str | GlobalVar) -> GlobalVar:
        return self.module.get_global_var(var) if isinstance(var, str) else var

    def __str__(self) -> str:
        """Return all of it, callers first."""
        return "\n\n".join(map(self.print_var, reversed(callees_first(self._callees))))
