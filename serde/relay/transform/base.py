"""What a pass is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from serde.relay.ir.bodies import map_bodies
from serde.relay.ir.expr import Function, GlobalVar
from serde.relay.ir.garbage_collection import pause_garbage_collection
from serde.relay.ir.module import IRModule

__all__ = ["FunctionPass", "Pass", "Sequential"]


class Pass(ABC):
    """A named transformation of a module that keeps its meaning.

    Passes are frozen dataclasses: their options are their fields. The module
    given is not changed, and what comes out satisfies :func:`serde.relay.ir.verify`.
    """

    name: ClassVar[str]

    @abstractmethod
    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Return the module that results, and whether anything changed."""

    @pause_garbage_collection()
    def __call__(self, mod: IRModule) -> IRModule:
        """Return the module that results."""
        return self.run(mod)[0]


class FunctionPass(Pass):
    """A pass that looks at one function at a time: those of the module, and bodies of loops."""

    @abstractmethod
    def transform(self, function: Function) -> Function:
        """Return what `function` becomes; the same object if nothing changes."""

    def transform_body(self, body: Function) -> Function:
        """Return what a function that a call carries becomes; its parameters keep their types."""
        return self.transform(body)

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Transform every function, after the bodies it carries."""
        functions: dict[GlobalVar, Function] = {}
        changed = False
        for variable, function in mod.functions.items():
            functions[variable] = self.transform(map_bodies(function, self.transform_body))
            changed |= functions[variable] is not function
        return (mod.with_functions(functions), True) if changed else (mod, False)


@dataclass(frozen=True)
class Sequential(Pass):
    """Passes one after another."""

    name: ClassVar[str] = "Sequential"

    passes: tuple[Pass, ...]

    def __init__(self, passes: Iterable[Pass]) -> None:
        object.__setattr__(self, "passes", tuple(passes))

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Run every pass once, in order."""
        changed = False
        for each in self.passes:
            mod, did = each.run(mod)
            changed |= did
        return mod, changed
