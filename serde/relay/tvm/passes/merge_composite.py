"""Composite functions of what matches the patterns of a target."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any as AnyValue, ClassVar

from serde.core.records import dataclass
from serde.relay.ir import Expr, Function, IRModule, infer_module
from serde.relay.transform.base import Pass, is_marked
from serde.relay.tvm.dataflow_pattern.patterns import DFPattern
from serde.relay.tvm.dataflow_pattern.rewriting import partition

__all__ = ["MergeComposite"]


def _accept(_match: Expr) -> bool:
    return True


@dataclass(frozen=True, init=False)
class MergeComposite(Pass):
    """Move what matches patterns into functions with the attribute ``Composite``.

    Patterns are tried in order, each on the whole of what the ones before it left; nothing inside
    a function made from a pattern is matched again. Functions of the module that an external
    compiler runs stay as they are.

    Args:
        pattern_table: Pairs of the name of a function and its pattern, or triples with a function
            that gets the last node of a match, typed, and says whether it is taken.
    """

    name: ClassVar[str] = "MergeComposite"

    pattern_table: tuple[tuple[AnyValue, ...], ...]

    def __init__(self, pattern_table: Iterable[tuple[AnyValue, ...]]) -> None:
        object.__setattr__(self, "pattern_table", tuple(tuple(each) for each in pattern_table))

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Match every pattern in every function; types are found after each."""
        given = mod
        mod = infer_module(mod)[0]
        changed = False
        for entry in self.pattern_table:
            found = self._match(mod, *entry)
            if found is not mod:
                mod, changed = infer_module(found)[0], True
        return (mod, True) if changed else (given, False)

    def _match(
        self, mod: IRModule, composite: str, pattern: DFPattern, check: AnyValue = _accept
    ) -> IRModule:
        functions = {}
        for variable, function in mod.functions.items():
            functions[variable] = function
            if not is_marked(function):
                result = partition(pattern, function, {"Composite": composite}, check)
                functions[variable] = result if isinstance(result, Function) else function
        same = all(functions[variable] is mod.functions[variable] for variable in functions)
        return mod if same else mod.with_functions(functions, checked=False)
