"""What nodes ask of modules that stand above them.

``a + b`` makes a call and ``mod.astext()`` prints, but the registry of operators and the printer
are built upon the nodes. So they are loaded by name, when they are asked for.
"""

from __future__ import annotations

import importlib
from typing import Any as AnyValue

__all__ = ["call", "highlighting", "parser", "printer", "showing", "standard", "type_args"]


def call(name: str, /, *operands: AnyValue, **attrs: AnyValue) -> AnyValue:
    """Build a call of an operator; see :func:`serde.relay.ir.registry.call`."""
    return importlib.import_module("serde.relay.ir.registry").call(name, *operands, **attrs)


def highlighting() -> AnyValue:
    """Return the module :mod:`serde.relay.text.highlighting`."""
    return importlib.import_module("serde.relay.text.highlighting")


def parser() -> AnyValue:
    """Return the module :mod:`serde.relay.text.parser`."""
    return importlib.import_module("serde.relay.text.parser")


def printer() -> AnyValue:
    """Return the module :mod:`serde.relay.text.printer`."""
    return importlib.import_module("serde.relay.text.printer")


def showing() -> AnyValue:
    """Return the module :mod:`serde.relay.ir.showing`."""
    return importlib.import_module("serde.relay.ir.showing")


def standard() -> AnyValue:
    """Return the module :mod:`serde.relay.standard.texts`."""
    return importlib.import_module("serde.relay.standard.texts")


def type_args(node: AnyValue) -> AnyValue:
    """Return what type parameters stand for; see :func:`serde.relay.ir.generic.type_args`."""
    return importlib.import_module("serde.relay.ir.generic").type_args(node)
