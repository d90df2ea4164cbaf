"""Values, types and names of the tensors and sequences that a tuple of tuples unfolds to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeVar

from serde.errors import Unsupported
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr, Tuple
from serde.relay.ir.types import SequenceType, TensorType, TupleType, Type

__all__ = [
    "Nested", "as_leaves", "field_dtypes", "holds_values", "known_dtype", "known_shape",
    "leaf_names", "leaf_types", "leaves", "output_names", "value_types",
]  # fmt: skip


T = TypeVar("T")
Nested: TypeAlias = T | tuple["Nested[T]", ...]
"""A tuple of tuples, or what these hold."""


def leaves(values: Nested[T]) -> list[T]:
    """Return what a tuple of tuples holds, in order; of anything else, that itself."""
    found: list[T] = []
    pending = [values]
    while pending:
        item = pending.pop()
        if isinstance(item, tuple):
            pending.extend(reversed(item))
        else:
            found.append(item)
    return found


def as_leaves(exprs: Sequence[Expr]) -> Iterator[Expr]:
    """Yield expressions, of tuples the fields."""
    pending = list(reversed(exprs))
    while pending:
        item = pending.pop()
        if isinstance(item, Tuple):
            pending.extend(reversed(item.fields))
        else:
            yield item


def value_types(type_: Type | None) -> list[TensorType | SequenceType]:
    """Return the types of the tensors and sequences of a tuple of tuples, in order.

    Raises:
        Unsupported: A function is among them.
    """
    found: list[TensorType | SequenceType] = []
    pending = [type_]
    while pending:
        item = pending.pop()
        if isinstance(item, TupleType):
            pending.extend(reversed(item.fields))
        elif isinstance(item, (TensorType, SequenceType)):
            found.append(item)
        else:
            raise Unsupported(f"expected tensors, found a value of type {item!r}")
    return found


def leaf_types(type_: Type | None) -> list[TensorType]:
    """Return the types of the tensors of a tuple of tuples, in order.

    Raises:
        Unsupported: A function or a sequence is among them.
    """
    found: list[TensorType] = []
    for item in value_types(type_):
        if not isinstance(item, TensorType):
            raise Unsupported(f"expected tensors, found a value of type {item!r}")
        found.append(item)
    return found


def known_shape(node: Expr) -> tuple[Dim, ...]:
    """Return the shape of a tensor; () of what is none, or has no type."""
    return node.type.shape if isinstance(node.type, TensorType) else ()


def known_dtype(node: Expr) -> str:
    """Return the dtype of a tensor; "" of what is none, or has no type."""
    return node.type.dtype if isinstance(node.type, TensorType) else ""


def field_dtypes(type_: Type | None) -> set[str]:
    """Return the dtypes of a tensor, or of the tensors that a tuple itself has."""
    fields = type_.fields if isinstance(type_, TupleType) else (type_,)
    return {each.dtype for each in fields if isinstance(each, TensorType)}


def holds_values(type_: Type | None) -> bool:
    """Whether a value of this type is tensors and sequences, no function among them."""
    try:
        value_types(type_)
    except Unsupported:
        return False
    return True


def leaf_names(name: str, type_: Type) -> list[str]:
    """Return a name for each tensor of a type: its path through the tuples after `name`."""
    found: list[str] = []
    pending = [(name, type_)]
    while pending:
        path, item = pending.pop()
        if isinstance(item, TupleType):
            numbered = ((f"{path}_{i}", each) for i, each in enumerate(item.fields))
            pending.extend(reversed(list(numbered)))
        else:
            found.append(path)
    return found


def output_names(names: Sequence[str], type_: Type | None) -> list[str]:
    """Return a name for each tensor of a result: those of tuples inside it are numbered.

    Args:
        names: Names of the fields of the result, or its own.
        type_: Its type.

    Raises:
        ValueError: There is not one name for each field.
    """
    types = type_.fields if isinstance(type_, TupleType) else (type_,)
    found: list[str] = []
    for name, each in zip(names, types, strict=True):
        found += [name] if each is None else leaf_names(name, each)
    return found
