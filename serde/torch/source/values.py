"""What names stand for while a module of Python is read, beside numbers, texts and tuples."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any as AnyValue, TypeAlias

from serde.core.records import dataclass, field
from serde.torch.source.syntax import Unit

__all__ = [
    "Class", "Frame", "Function", "Globals", "Held", "Instance", "Items", "Library", "Live",
    "Value", "is_plain",
]  # fmt: skip

Value: TypeAlias = AnyValue
"""A number, text, None or tuple; one of these classes; a ``Ref`` of what is computed."""


def is_plain(value: Value) -> bool:
    """Whether Python can compute with a value: numbers, texts, None, and tuples of these."""
    if isinstance(value, (tuple, list)):
        return all(map(is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


@dataclass(eq=False, slots=True)
class Globals:
    """The file of a module, and what its names stand for."""

    unit: Unit
    names: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class Live:
    """The variables that are read behind what is being read.

    Attributes:
        names: Some of them.
        last: For each name the place of the last statement of a block that reads it.
        place: Which statement of the block is being read.
        around: Those that are read behind the block.
    """

    names: frozenset[str] = frozenset()
    last: Mapping[str, int] = field(default_factory=dict)
    place: int = 0
    around: Live | None = None

    def __contains__(self, name: str) -> bool:
        each: Live | None = self
        while each is not None:
            if name in each.names or each.last.get(name, -1) > each.place:
                return True
            each = each.around
        return False


@dataclass(eq=False, slots=True)
class Frame:
    """A function that is being read: its module, variables, and the class whose method it is."""

    home: Globals
    env: dict[str, Value] = field(default_factory=dict)
    live: Live = field(default_factory=Live)
    owner: Class | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A function, a method that is bound to ``this``, or one inside another, with its variables."""

    definition: ast.FunctionDef
    home: Globals
    this: Instance | None = None
    owner: Class | None = None
    closure: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class Class:
    """A subclass of ``nn.Module``, or of another such class."""

    name: str
    home: Globals
    base: Class | None
    methods: Mapping[str, ast.FunctionDef]

    def method(self, name: str, this: Instance | None) -> Function | None:
        """Return a method of an object."""
        each: Class | None = self
        while each is not None:
            if name in each.methods:
                return Function(each.methods[name], each.home, this, each)
            each = each.base
        return None


@dataclass(eq=False, slots=True)
class Instance:
    """A module; ``path`` is its place in the model, as soon as it is known."""

    kind: Class
    attributes: dict[str, Value] = field(default_factory=dict)
    path: str = ""


@dataclass(eq=False, slots=True)
class Held:
    """A tensor of the state dictionary; ``name`` is its place there, as soon as it is known."""

    shape: tuple[int, ...]
    dtype: str
    is_state: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class Library:
    """Something of PyTorch's or Python's own, by its full name."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Items:
    """What a loop of the graph goes through: how many items, and what gives that of an index."""

    count: Value
    item: Callable[[Value], Value]
