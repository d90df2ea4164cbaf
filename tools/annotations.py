"""Types as the text of a stub, with the imports that the text needs."""

from __future__ import annotations

import ast
import collections.abc
import importlib
import inspect
import math
import types
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any as AnyValue, NewType, TypeVar, Union

import numpy as np

__all__ = ["Names", "default_text", "flattened", "type_hints"]

_RENAMED = {"typing.Any": "AnyValue"}
"""What is imported under another name, because Relay has its own."""

_SHORT = {"numpy": "np"}

_ABSENT = "  # type: ignore[import-not-found,import-untyped,unused-ignore]"
"""Behind the import of a package that users need not have."""


class Names:
    """The names that a stub imports."""

    def __init__(self) -> None:
        self._from: dict[str, set[str]] = {}
        self._modules: set[str] = set()

    def use(self, module: str, name: str) -> str:
        """Return what `name` of `module` is called here, and import it."""
        if module == "builtins":
            return name
        if module in _SHORT:
            self._modules.add(module)
            return f"{_SHORT[module]}.{name}"
        local = _RENAMED.get(f"{module}.{name}", name)
        self._from.setdefault(module, set()).add(name if local == name else f"{name} as {local}")
        return local

    def import_module(self, module: str) -> None:
        """Import a module under its whole name."""
        self._modules.add(module)

    def lines(self) -> list[str]:
        """Return the import statements."""
        whole = [
            f"import {name} as {_SHORT[name]}" if name in _SHORT else f"import {name}{_ABSENT}"
            for name in sorted(self._modules)
        ]
        parts = [
            f"from {module} import {', '.join(sorted(_once(names)))}"
            for module, names in sorted(self._from.items())
        ]
        return [*whole, *parts]

    def text(self, hint: AnyValue) -> str:
        """Return the text of a type."""
        if hint is None or hint is type(None):
            return "None"
        if hint is typing.Any:
            return self.use("typing", "Any")
        if isinstance(hint, TypeVar):
            raise TypeError(f"no stub can say the type variable {hint} yet")
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin in (Union, types.UnionType):
            return " | ".join(dict.fromkeys(self.text(each) for each in args))
        if origin is typing.Literal:
            return f"{self.use('typing', 'Literal')}[{', '.join(repr(each) for each in args)}]"
        if origin is collections.abc.Callable:
            *parameters, result = args
            if parameters == [Ellipsis]:
                inside = "..."
            else:
                flat = parameters[0] if isinstance(parameters[0], list) else parameters
                inside = f"[{', '.join(self.text(each) for each in flat)}]"
            name = self.use("collections.abc", "Callable")
            return f"{name}[{inside}, {self.text(result)}]"
        if origin is not None:
            inside = ", ".join("..." if each is Ellipsis else self.text(each) for each in args)
            return f"{self.text(origin)}[{inside or '()'}]"
        if isinstance(hint, (type, NewType)):
            if isinstance(hint, NewType):
                return self.use(hint.__module__, hint.__name__)
            return self.use(_home(hint), hint.__qualname__)
        raise TypeError(f"no stub can say the type {hint!r}")


def _home(cls: type) -> str:
    """Return the module that a class is known by, which need not be where it is defined."""
    module = cls.__module__
    while "." in module and module.rpartition(".")[2].startswith("_"):
        module = module.rpartition(".")[0]
    return module


def _once(names: set[str]) -> set[str]:
    """Leave out a name that is handed on as well."""
    return {name for name in names if f"{name} as {name}" not in names}


def type_hints(function: AnyValue) -> dict[str, AnyValue]:
    """Return the types of a function, those included that are imported for type checkers only.

    Before 3.11, Python adds None where that is a default; hence a function without any.
    """
    bare = types.FunctionType(function.__code__, function.__globals__, closure=function.__closure__)
    bare.__annotations__ = function.__annotations__
    scope = {**_checked_names(function.__globals__["__file__"]), **function.__globals__}
    return typing.get_type_hints(bare, scope)


@cache
def _checked_names(file: str) -> Mapping[str, AnyValue]:
    """Return what a module imports of serde, wherever in it that is."""
    return {
        alias.asname or alias.name: getattr(importlib.import_module(node.module), alias.name)
        for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("serde.")
        for alias in node.names
        if node.module is not None
    }


def flattened(hint: AnyValue) -> tuple[AnyValue, ...]:
    """Return the members of a union, or the type alone."""
    if typing.get_origin(hint) in (Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def default_text(value: AnyValue) -> str:
    """Return the text of a default; ``...`` where it says nothing by itself."""
    if value is inspect.Parameter.empty:
        raise TypeError("there is no default")
    if isinstance(value, float) and not math.isfinite(value):
        return "..."
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (Mapping, frozenset)) and not value:
        return "{}" if isinstance(value, Mapping) else "()"
    if isinstance(value, tuple):
        items = [default_text(each) for each in value]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if isinstance(value, np.dtype):
        return repr(value.name)
    return "..."
