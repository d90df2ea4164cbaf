"""What names stand for while a module of Python is read, beside numbers, texts and tuples."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any as AnyValue
from typing import TypeAlias

from serde.torch.source.syntax import Unit

__all__ = ["Class", "Frame", "Function", "Globals", "Held", "Instance", "Items", "Library", "Live", "Value"]

Value: TypeAlias = AnyValue
"""A number, text, None or tuple; one of these classes; a ``Ref`` of what is computed."""


@dataclass(eq=False, slots=True)
class Globals:
    """The names of a module.

    Attributes:
        unit: Where they are defined.
        names: What they stand for.
    """

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
    """A function that is being read.

    Attributes:
        home: Names around it.
        env: Its variables.
        live: Those that are read behind the block that is being read.
        owner: The class whose method it is.
    """

    home: Globals
    env: dict[str, Value]
    live: Live = field(default_factory=lambda: Live())
    owner: Class | None = None

    @property
    def unit(self) -> Unit:
        """The file in which it stands."""
        return self.home.unit


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A function, or a method that is bound to its object.

    Attributes:
        definition: What it does.
        home: Names around it.
        closure: Variables of the function around it.
        this: The object whose method it is.
        owner: The class whose method it is.
    """

    definition: ast.FunctionDef
    home: Globals
    closure: Mapping[str, Value] = field(default_factory=dict)
    this: Instance | None = None
    owner: Class | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Class:
    """A subclass of ``nn.Module``, or of another such class."""

    name: str
    home: Globals
    base: Class | None
    methods: Mapping[str, ast.FunctionDef]
    constants: Mapping[str, Value] = field(default_factory=dict)

    def constant(self, name: str) -> Value:
        """Return what the class assigns to a name; ``...`` for nothing."""
        each: Class | None = self
        while each is not None:
            if name in each.constants:
                return each.constants[name]
            each = each.base
        return ...

    def method(self, name: str) -> tuple[Class, ast.FunctionDef] | None:
        """Return a method with the class that defines it."""
        each: Class | None = self
        while each is not None:
            if name in each.methods:
                return each, each.methods[name]
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
    """What a loop of the graph goes through.

    Attributes:
        count: How many items there are.
        item: Returns the item of an index.
    """

    count: Value
    item: Callable[[Value], Value]
