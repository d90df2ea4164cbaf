"""What nodes ask of modules that stand above them.

``a + b`` makes a call and ``mod.astext()`` prints, but the registry of operators and the printer
are built upon the nodes. The package, which knows all its modules, tells where these are, and they
are loaded when they are asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any as AnyValue, Final

__all__ = [
    "call", "highlighting", "parser", "printer", "provide", "showing", "standard",
    "support_level", "type_args",
]  # fmt: skip

_PROVIDED: Final[dict[str, str]] = {}


def provide(modules: Mapping[str, str]) -> None:
    """Tell the full names of modules by what nodes call them."""
    _PROVIDED.update(modules)


def _module(name: str) -> AnyValue:
    return importlib.import_module(_PROVIDED[name])


def call(name: str, /, *operands: AnyValue, **attrs: AnyValue) -> AnyValue:
    """Build a call of an operator, as the registry does."""
    return _module("registry").call(name, *operands, **attrs)


def highlighting() -> AnyValue:
    """Return the module that makes HTML of text."""
    return _module("highlighting")


def parser() -> AnyValue:
    """Return the module that reads text."""
    return _module("parser")


def printer() -> AnyValue:
    """Return the module that writes text."""
    return _module("printer")


def showing() -> AnyValue:
    """Return the module that makes HTML of models."""
    return _module("showing")


def standard() -> AnyValue:
    """Return the module with the text of TVM's own library."""
    return _module("standard")


def support_level(name: str) -> int:
    """Return the level that TVM gives an operator."""
    level: int = _module("support_levels").support_level(name)
    return level


def type_args(node: AnyValue) -> AnyValue:
    """Return what the type parameters of a called function stand for."""
    return _module("generic").type_args(node)
