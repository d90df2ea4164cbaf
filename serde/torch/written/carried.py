"""The functions that a written module carries along, in order."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from serde.core.records import dataclass
from serde.errors import ConverterBug

__all__ = ["Source", "find_function", "find_names", "source_of"]


def source_of(names: Iterable[str]) -> str:
    """Return the definitions of functions, those that they call first.

    Raises:
        ConverterBug: There is no such function.
    """
    return "".join(f"\n\n{text}\n" for text in _in_order(names).values())


def find_names(names: Iterable[str]) -> frozenset[str]:
    """Return the names of functions and of those that they call."""
    return frozenset(_in_order(names))


def _in_order(names: Iterable[str]) -> dict[str, str]:
    """Return the texts of functions by name, those that they call first."""
    order: dict[str, str] = {}
    pending = list(names)[::-1]
    while pending:
        source = find_function(pending[-1])
        missing = [each for each in source.calls if each not in order]
        if source.name in order or not missing:
            order.setdefault(source.name, source.text)
            pending.pop()
        else:
            pending += missing
    return order


@dataclass(frozen=True, slots=True)
class Source:
    """A function as text.

    Attributes:
        name: Its name.
        text: Its definition, without a line break at the end.
        calls: Names of further functions of this package that it uses.
    """

    name: str
    text: str
    calls: tuple[str, ...]


def find_function(name: str) -> Source:
    """Return a function of ``serde.torch.written.functions``.

    Raises:
        ConverterBug: There is none of that name.
    """
    found = _functions().get(name)
    if found is None:
        raise ConverterBug(f"no function for written modules is called {name}")
    return found


@cache
def _functions() -> dict[str, Source]:
    """Read all functions of the package."""
    texts: dict[str, tuple[str, ast.FunctionDef]] = {}
    for path in sorted((Path(__file__).parent / "functions").glob("*.py")):
        if path.name != "__init__.py":
            text = path.read_text(encoding="utf-8")
            for node in ast.parse(text).body:
                if isinstance(node, ast.FunctionDef):
                    texts[node.name] = ast.get_source_segment(text, node) or "", node
    found = {}
    for name, (text, definition) in texts.items():
        used = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
        found[name] = Source(name, text, tuple(sorted(used & texts.keys() - {name})))
    return found
