"""Messages of a NeuralNetwork's layers as their converters see them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any as AnyValue

from serde.core.records import dataclass

__all__ = ["MessageView", "ends_iteration", "fields_of", "layer_outputs", "layers_of", "snake_case"]

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def snake_case(name: str) -> str:
    """Return the name of a field as converters have it."""
    return _CAPITAL.sub(r"_\1", name).lower()


@dataclass(frozen=True, slots=True)
class MessageView:
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

    def submessage(self, name: str) -> MessageView:
        """Return a message within this one; an empty one if it is not set."""
        return MessageView(getattr(self.message, name), f"{self.path}.{name}")

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
                found[name] = tuple(
                    MessageView(each, f"{where}[{i}]") for i, each in enumerate(value)
                )
            else:
                found[name] = MessageView(value, where)
        elif field.is_repeated:
            found[name] = tuple(value)
        elif field.enum_type is not None:
            member = field.enum_type.values_by_number.get(value)
            found[name] = value if member is None else member.name
        else:
            found[name] = value
    return found


def layers_of(network: MessageView) -> list[MessageView]:
    """Return the layers of a network."""
    layers = network.message.layers
    return [MessageView(layer, f"{network.path}.layers[{i}]") for i, layer in enumerate(layers)]


def layer_outputs(layer: MessageView) -> Iterator[str]:
    """Yield the names of what a layer gives, what networks within it give included."""
    yield from layer.message.output
    fields = {"branch": ("ifBranch", "elseBranch"), "loop": ("conditionNetwork", "bodyNetwork")}
    kind = layer.message.WhichOneof("layer")
    for name in fields.get(kind, ()):
        for inner in layers_of(layer.submessage(kind).submessage(name)):
            yield from layer_outputs(inner)


def ends_iteration(layer: AnyValue) -> bool:
    """Whether a layer is a branch in which an iteration of the loop around it may end."""
    if layer.WhichOneof("layer") != "branch":
        return False
    return any(
        each.WhichOneof("layer") in ("loopBreak", "loopContinue") or ends_iteration(each)
        for network in (layer.branch.ifBranch, layer.branch.elseBranch)
        for each in network.layers
    )
