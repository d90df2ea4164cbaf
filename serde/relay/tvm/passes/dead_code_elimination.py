"""Lets that nothing needs, and those that one place needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from serde.core.records import dataclass, field
from serde.relay.ir import Expr, Function, GlobalVar, IRModule, Let, Var, infer_module, map_bodies
from serde.relay.ir.visit import children
from serde.relay.transform.base import ModulePass
from serde.relay.transform.inline_calls import substitute_lets
from serde.relay.tvm.passes.effects import pure_lets

__all__ = ["DeadCodeElimination"]


@dataclass(frozen=True)
class DeadCodeElimination(ModulePass):
    """Drop lets whose variable is not used and whose value has no effect.

    Args:
        inline_once: Whether the value of a variable that is used once stands in its place; not
            inside a function that the variable comes into from outside, which may be called
            more than once.
        ignore_impurity: Whether effects are no reason to keep a let.
    """

    name: ClassVar[str] = "DeadCodeElimination"
    opt_level: ClassVar[int] = 1
    required: ClassVar[Sequence[str]] = ("InferType",)

    inline_once: bool = False
    ignore_impurity: bool = False

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Find out which lets are pure, count uses, then drop and move."""
        typed, inferred = infer_module(mod)
        pure = {} if self.ignore_impurity else pure_lets(typed)
        functions: dict[GlobalVar, Function] = {}
        for variable, function in typed.functions.items():
            functions[variable] = self._clean(map_bodies(function, self._clean_body), pure)
        if all(functions[v] is f for v, f in typed.functions.items()):
            return typed, inferred
        return typed.with_functions(functions), True

    def _clean_body(self, body: Function) -> Function:
        """Clean the body of a loop, whose lets no walk over the module enters."""
        pure = {} if self.ignore_impurity else pure_lets(IRModule({"main": body}))
        return self._clean(body, pure)

    def _clean(self, function: Function, pure: Mapping[Var, bool]) -> Function:
        uses = _Uses(pure, self.ignore_impurity)
        uses.count(function)
        movable = {
            variable: value
            for variable, value in uses.values.items()
            if uses.is_pure(variable) and uses.counts[variable] <= (1 if self.inline_once else 0)
        }
        if not movable:
            return function
        result = substitute_lets(function, movable)
        return result if isinstance(result, Function) else function


@dataclass
class _Uses:
    """How often variables are used, where those that nothing needs do not count.

    Attributes:
        pure: Whether the value of a let has no effect.
        default: The same of a let that is not known.
        values: Value of each variable that a let binds.
        counts: Uses of each; 2 stands for more, and for one inside a function within its let.
    """

    pure: Mapping[Var, bool]
    default: bool
    values: dict[Var, Expr] = field(default_factory=dict)
    counts: dict[Var, int] = field(default_factory=dict)
    _levels: dict[Var, int] = field(default_factory=dict)
    _visits: dict[Expr, int] = field(default_factory=dict)

    def is_pure(self, variable: Var) -> bool:
        """Whether the value of a variable has no effect."""
        return self.pure.get(variable, self.default)

    def count(self, root: Expr) -> None:
        """Count the uses below `root`; what is shared is met twice at most."""
        stack = [(root, 0)]
        while stack:
            node, level = stack.pop()
            self._visits[node] = self._visits.get(node, 0) + 1
            if isinstance(node, Var):
                stack.extend(self._use(node, level))
            elif self._visits[node] <= 2:
                stack.extend(self._below(node, level))

    def _below(self, node: Expr, level: int) -> Iterator[tuple[Expr, int]]:
        if isinstance(node, Let):
            self.values[node.var] = node.value
            self.counts.setdefault(node.var, 0)
            self._levels[node.var] = level
            yield node.body, level
            if not self.is_pure(node.var):
                yield node.value, level
        elif isinstance(node, Function):
            yield node.body, level + 1
        else:
            for child in reversed(children(node)):
                yield child, level

    def _use(self, variable: Var, level: int) -> Iterator[tuple[Expr, int]]:
        if variable not in self.values:
            return
        if self.counts[variable] == 0 and self.is_pure(variable):
            yield self.values[variable], level
        self.counts[variable] += 1 if self._levels[variable] >= level else 2
