"""What a pass is."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final

from serde.core import counting, expect, pause_garbage_collection
from serde.errors import RelayError
from serde.relay.ir import Function, GlobalVar, IRModule, has_kind, map_bodies
from serde.relay.transform.context import PassContext, PassInfo

__all__ = ["FunctionPass", "ModulePass", "Pass", "Sequential", "TvmFunctionPass", "is_marked"]

_FOR_OTHERS: Final = ("Compiler", "SkipOptimization")
"""Attributes of functions that passes leave as they are."""


class Pass(ABC):
    """A named transformation of a module that keeps its meaning.

    Passes with options are frozen dataclasses: these are their fields. The module
    given is not changed, and what comes out satisfies :func:`serde.relay.ir.verify`.

    Attributes:
        name: Name of the pass.
        opt_level: The level of a :class:`PassContext` from which :class:`Sequential` runs it.
        required: Names of passes that :class:`Sequential` runs before it.
    """

    name: ClassVar[str]
    opt_level: ClassVar[int] = 0
    required: ClassVar[Sequence[str]] = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @property
    def info(self) -> PassInfo:
        """Name, level and requirements."""
        return PassInfo(self.opt_level, self.name, self.required)

    @abstractmethod
    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Return the module that results, and whether anything changed; no context is asked."""

    @pause_garbage_collection()
    def __call__(self, mod: IRModule) -> IRModule:
        """Return the module that results, or `mod` where an instrument of the context says so.

        Raises:
            TypeError: `mod` is no module.
        """
        if not isinstance(mod, IRModule):
            hint = "relay.IRModule.from_expr(...) makes one of an expression"
            raise TypeError(f"{self.info.name}: expected a module, found {mod!r}; {hint}")
        context = PassContext.current()
        if not context.before_pass(mod, self.info):
            return mod
        result = self.apply(mod)
        context.after_pass(result, self.info)
        return result

    def apply(self, mod: IRModule) -> IRModule:
        """Return the module that results in the current :class:`PassContext`."""
        return self.run(mod)[0]


class ModulePass(Pass):
    """A pass that looks at a module as a whole."""


class FunctionPass(Pass):
    """A pass that looks at one function at a time: those of the module, and bodies of loops.

    Attributes:
        changes: Names and traits of operators, and classes of nodes, of which a function has
            one or stays as it is; empty where that cannot be told so.
    """

    changes: ClassVar[Sequence[str | type]] = ()

    def concerns(self, function: Function) -> bool:
        """Whether `function` may have something that the pass changes."""
        return not self.changes or has_kind(function, *self.changes)

    def leaves(self, function: Function) -> bool:
        """Whether a function of the module stays as it is; none does where nobody says so."""
        return False

    @abstractmethod
    def transform(self, function: Function) -> Function:
        """Return what `function` becomes; the same object if nothing changes."""

    def transform_body(self, body: Function) -> Function:
        """Return what a function that a call carries becomes; its parameters keep their types."""
        return self.transform(body)

    def _carried_body(self, body: Function) -> Function:
        return self.transform_body(body) if self.concerns(body) else body

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Transform every function, after the bodies it carries."""
        functions: dict[GlobalVar, Function] = {}
        changed = False
        for variable, function in mod.functions.items():
            functions[variable] = function
            if not self.leaves(function):
                new = map_bodies(function, self._carried_body)
                functions[variable] = self.transform(new) if self.concerns(new) else new
            changed |= functions[variable] is not function
        return (mod.with_functions(functions), True) if changed else (mod, False)


class TvmFunctionPass(FunctionPass):
    """A pass of TVM's library: functions for other compilers, and those that ask, stay."""

    def leaves(self, function: Function) -> bool:
        """Whether a function is for another compiler, or asks to stay as it is."""
        return is_marked(function)


def is_marked(function: Function) -> bool:
    """Whether passes of TVM's library leave a function of the module as it is."""
    return any(function.attrs.get(name) for name in _FOR_OTHERS)


class Sequential(Pass):
    """Passes one after another.

    A call runs those that the current :class:`PassContext` enables, and before each what it
    requires; :meth:`run` runs every one.

    Args:
        passes: The passes in order.
        opt_level: Level of the whole.
        name: Name of the whole.
        required: Names of passes that come before.
    """

    def __init__(
        self,
        passes: Sequence[Pass] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(passes, (list, tuple, type(None))):
            raise TypeError(f"passes must be a list of passes, found {passes!r}")
        if not isinstance(required, (list, tuple, type(None))):
            raise TypeError(f"required must be a list of names, found {required!r}")
        self.passes: tuple[Pass, ...] = tuple(passes or ())
        self._info = PassInfo(opt_level, name, tuple(required or ()))

    @property
    def info(self) -> PassInfo:
        """Name, level and requirements."""
        return self._info

    @pause_garbage_collection()
    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Run every pass once, in order."""
        changed, count = False, counting("passes")
        expect("passes", len(self.passes))
        for each in self.passes:
            mod, did = each.run(mod)
            changed |= did
            count(1)
        return mod, changed

    def apply(self, mod: IRModule) -> IRModule:
        """Run the passes that the context enables, and what they require."""
        context = PassContext.current()
        for each in self.passes:
            if context.enables(each.info):
                for name in each.info.required:
                    mod = _by_name(name)(mod)
                mod = each(mod)
        return mod


def _by_name(name: str) -> Pass:
    """Return the pass of a name, with its default options."""
    passes = importlib.import_module("serde.relay.transform")
    found = getattr(passes, name, None)
    if not isinstance(found, type) or not issubclass(found, Pass):
        raise RelayError(f"no pass is called {name}")
    return found()
