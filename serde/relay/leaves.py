"""Types and names of the tensors that a tuple of tuples unfolds to."""

from __future__ import annotations

from collections.abc import Sequence

from serde.errors import Unsupported
from serde.relay.types import TensorType, TupleType, Type

__all__ = ["holds_tensors", "leaf_names", "leaf_types", "output_names"]


def leaf_types(type_: Type | None) -> list[TensorType]:
    """Return the types of the tensors of a tuple of tuples, in order.

    Raises:
        Unsupported: A function is among them.
    """
    found: list[TensorType] = []
    pending = [type_]
    while pending:
        item = pending.pop()
        if isinstance(item, TupleType):
            pending.extend(reversed(item.fields))
        elif isinstance(item, TensorType):
            found.append(item)
        else:
            raise Unsupported(f"expected tensors, found a value of type {item!r}")
    return found


def holds_tensors(type_: Type | None) -> bool:
    """Whether a value of this type is tensors alone, no function among them."""
    try:
        leaf_types(type_)
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
