"""Layers of a NeuralNetwork, and networks of them, before they become Apple's messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core import Array, ArrayWeight, Weight, dataclass, field
from serde.coreml.value import Value
from serde.errors import ConverterBug, Unsupported
from serde.relay.ir import Dim, TensorType

__all__ = [
    "WIDE_INTEGERS", "Fields", "Layer", "Network", "Parameter", "held_array", "held_shape",
    "value_weight",
]  # fmt: skip

_LARGEST = float(np.nextafter(np.float32(2**31), np.float32(0)))
"""The greatest float32 that is an int32, which stands for "to the end"."""

WIDE_INTEGERS = frozenset({"int32", "int64", "uint32", "uint64"})
"""dtypes of whole numbers that float32 may not hold."""

Fields = dict[str, AnyValue]


@dataclass(frozen=True, slots=True)
class Parameter:
    """Values of a ``WeightParams``.

    Attributes:
        weight: The values.
        axis: The axis that scales may go along, where they stay quantised.
    """

    weight: Weight
    axis: int = 0


@dataclass(slots=True)
class Layer:
    """One layer.

    Attributes:
        kind: Its field of Apple's message of a layer.
        name: Its name.
        inputs: Names of its inputs.
        outputs: Names of its outputs.
        fields: Its parameters by the names of the fields in snake case: numbers, names of
            members of enumerations, :class:`Parameter`, :class:`Network`, further fields.
        defines: Names of tensors that networks within it write.
        types: Types of its outputs, where nothing else tells them.
    """

    kind: str
    name: str
    inputs: list[str]
    outputs: list[str]
    fields: Fields
    defines: list[str] = field(default_factory=list)
    types: Sequence[TensorType] = ()

    @property
    def networks(self) -> list[Network]:
        """The networks within it."""
        return [each for each in self.fields.values() if isinstance(each, Network)]


@dataclass(slots=True, eq=False)
class Network:
    """Layers one after the other, in the whole or within a layer.

    Attributes:
        layers: The layers.
        inputs: Names of what it takes, within a layer.
        outputs: Names of what it gives.
    """

    layers: list[Layer] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def reads(self) -> set[str]:
        """Return the names that its layers read, those of networks within them included."""
        found: set[str] = set()
        for layer in self.layers:
            found.update(layer.inputs)
            for inner in layer.networks:
                found |= inner.reads() | set(inner.outputs)
        return found

    def rename(self, names: Mapping[str, str]) -> None:
        """Give tensors other names."""
        for layer in self.layers:
            for listed in (layer.inputs, layer.outputs, layer.defines):
                listed[:] = [names.get(each, each) for each in listed]
            for inner in layer.networks:
                inner.rename(names)
        self.outputs[:] = [names.get(each, each) for each in self.outputs]

    def prune(self, wanted: set[str]) -> None:
        """Drop the layers whose results nothing reads."""
        live, kept = set(wanted), []
        for layer in reversed(self.layers):
            if not live.intersection((*layer.outputs, *layer.defines)):
                continue
            kept.append(layer)
            live.update(layer.inputs)
            live.update(layer.defines)
            for inner in layer.networks:
                inner.prune({*inner.outputs, *layer.defines})
                live |= inner.reads() | set(inner.outputs)
        self.layers[:] = reversed(kept)


def held_shape(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return the shape in which a network holds a tensor: at least one axis."""
    return tuple(shape) or (1,)


def value_weight(value: Value) -> Weight:
    """Return the values of a constant or a weight."""
    if value.weight is not None:
        return value.weight
    if value.data is None:
        raise ConverterBug(f"{value.name} is no constant")
    return ArrayWeight(value.data)


def held_array(data: Array) -> Array:
    """Return a constant in float32.

    Raises:
        Unsupported: It is a whole number that float32 does not hold.
    """
    if data.dtype.kind not in "iu":
        return np.ascontiguousarray(data.astype(np.float32))
    near = np.clip(data.astype(np.float64), -_LARGEST, _LARGEST)
    found = near.astype(np.float32)
    wrong = (found.astype(np.float64) != near) & (np.abs(near) < 2**31 - 2**8)
    if wrong.any():
        raise Unsupported(f"the whole number {data[wrong].flat[0]}, which float32 does not hold")
    return found
