"""Values that are no tensors: of algebraic data types, and references."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any as AnyValue

from serde.errors import RelayError
from serde.relay.ir import RefCreate, RefRead, RefWrite, Var
from serde.relay.ir.adt import (
    Clause,
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
)

__all__ = ["ConstructorValue", "RefValue", "apply_reference", "choose_clause", "construct"]


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


def construct(constructor: Constructor, fields: Sequence[AnyValue]) -> ConstructorValue:
    """Return the value that a constructor makes of its fields.

    Raises:
        RelayError: It has another number of fields.
    """
    if len(fields) != len(constructor.inputs):
        expected = f"expected {len(constructor.inputs)} fields, found {len(fields)}"
        raise RelayError(f"{constructor!r}: {expected}")
    return ConstructorValue(constructor.tag, fields, constructor)


def choose_clause(node: Match, value: AnyValue) -> tuple[int, dict[Var, AnyValue]]:
    """Return the number of the first clause that a value matches, and what it binds.

    Raises:
        RelayError: None of them does.
    """
    for number, clause in enumerate(node.clauses):
        bound = _bind(clause, value)
        if bound is not None:
            return number, bound
    raise RelayError(f"{node!r}: no clause matches {value!r}")


def _bind(clause: Clause, value: AnyValue) -> dict[Var, AnyValue] | None:
    bound: dict[Var, AnyValue] = {}
    pending: list[tuple[Pattern, AnyValue]] = [(clause.lhs, value)]
    while pending:
        pattern, here = pending.pop()
        if isinstance(pattern, PatternVar):
            bound[pattern.var] = here
        elif isinstance(pattern, PatternConstructor):
            if not isinstance(here, ConstructorValue) or here.tag != pattern.constructor.tag:
                return None
            pending.extend(zip(pattern.parts, here.fields, strict=True))
        elif isinstance(pattern, PatternTuple):
            if not isinstance(here, tuple) or len(here) != len(pattern.parts):
                return None
            pending.extend(zip(pattern.parts, here, strict=True))
    return bound


def apply_reference(node: RefCreate | RefRead | RefWrite, operands: Sequence[AnyValue]) -> AnyValue:
    """Make, read or write a reference, and return what that yields.

    Raises:
        RelayError: What is read or written is no reference.
    """
    if isinstance(node, RefCreate):
        return RefValue(operands[0])
    reference = operands[0]
    if not isinstance(reference, RefValue):
        raise RelayError(f"{node!r}: expected a reference, found {reference!r}")
    if isinstance(node, RefRead):
        return reference.value
    reference.value = operands[1]
    return ()
