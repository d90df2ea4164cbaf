"""Messages of a NeuralNetwork's layers as their converters see them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any as AnyValue

__all__ = ["Part", "fields_of", "snake_case"]

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def snake_case(name: str) -> str:
    """Return the name of a field as converters have it."""
    return _CAPITAL.sub(r"_\1", name).lower()


@dataclass(frozen=True, slots=True)
class Part:
    """A message within a layer.

    Attributes:
        message: Apple's message.
        path: Where it is in the model, such as ``neuralNetwork.layers[3].convolution.weights``.
    """

    message: AnyValue
    path: str

    def kind(self) -> str:
        """Return the member that is set of a message of which one member is set, or nothing."""
        (oneof,) = self.message.DESCRIPTOR.oneofs
        return str(self.message.WhichOneof(oneof.name) or "")

    def part(self, name: str) -> Part:
        """Return a message within this one; an empty one if it is not set."""
        return Part(getattr(self.message, name), f"{self.path}.{name}")

    def fields(self) -> dict[str, AnyValue]:
        """Return the fields that are set; see :func:`fields_of`."""
        return fields_of(self.message, self.path)


def fields_of(message: AnyValue, path: str) -> dict[str, AnyValue]:
    """Return the fields of a message that are set, by their names in snake case.

    Enumerations are the names of their members, messages are parts.
    """
    found: dict[str, AnyValue] = {}
    for field, value in message.ListFields():
        name = snake_case(field.name)
        where = f"{path}.{field.name}"
        if field.message_type is not None:
            if field.is_repeated:
                found[name] = tuple(Part(each, f"{where}[{i}]") for i, each in enumerate(value))
            else:
                found[name] = Part(value, where)
        elif field.is_repeated:
            found[name] = tuple(value)
        elif field.enum_type is not None:
            member = field.enum_type.values_by_number.get(value)
            found[name] = value if member is None else member.name
        else:
            found[name] = value
    return found
