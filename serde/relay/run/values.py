"""Values that are no tensors: of algebraic data types, and references."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any as AnyValue

from serde.relay.ir.adt import Constructor

__all__ = ["ConstructorValue", "RefValue"]


class ConstructorValue:
    """A value of an algebraic data type.

    Args:
        tag: Number of the constructor.
        fields: What it was given.
        constructor: The constructor.
    """

    __slots__ = ("constructor", "fields", "tag")

    def __init__(self, tag: int, fields: Iterable[AnyValue], constructor: Constructor) -> None:
        self.tag = tag
        self.fields: tuple[AnyValue, ...] = tuple(fields)
        self.constructor = constructor

    def __repr__(self) -> str:
        return f"ConstructorValue({self.constructor.name_hint}, {len(self.fields)} fields)"


class RefValue:
    """A reference.

    Args:
        value: What it holds.
    """

    __slots__ = ("value",)

    def __init__(self, value: AnyValue) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "RefValue"
