"""Which functions of a module refer to which."""

from __future__ import annotations

from collections import Counter

from serde.relay.ir import GlobalVar, IRModule, find_callees

__all__ = ["CallGraph"]


class CallGraph:
    """What each function of a module calls or names, as TVM counts it: each callee once."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self._callees = {var: tuple(dict.fromkeys(u)) for var, u in find_callees(module).items()}
        self._references = Counter(each for used in self._callees.values() for each in used)

    def ref_count(self, var: str | GlobalVar) -> int:
        """Return how many functions refer to one, itself included."""
        return self._references[self._find(var)]

    def global_call_count(self, var: str | GlobalVar) -> int:
        """Return to how many functions one refers, itself included."""
        return len(self._callees[self._find(var)])

    def is_recursive(self, var: str | GlobalVar) -> bool:
        """Whether a function refers to itself."""
        return self._find(var) in self._callees[self._find(var)]

    def print_var(self, var: str | GlobalVar) -> str:
        """Return a function, the number of references to it and what it refers to, as text."""
        found = self._find(var)
        name = found.name_hint
        callees = sorted(each.name_hint for each in self._callees[found])
        sites = "".join([f"  call site: <{name}> calls {callee}\n" for callee in callees])
        return f"Call graph node: {name},  #refs = {self._references[found]}\n{sites}\n"

    def __str__(self) -> str:
        return "".join(map(self.print_var, self._callees))

    def _find(self, var: str | GlobalVar) -> GlobalVar:
        return self.module.get_global_var(var if isinstance(var, str) else var.name_hint)
