"""Apple's messages of layers that were made here; their weights stay where they are."""

from __future__ import annotations

import functools
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core.weights import ArrayWeight, Weight
from serde.coreml.neuralnetwork.layers import Network, Parameter, held_array, held_shape
from serde.coreml.neuralnetwork.message_view import snake_case
from serde.coreml.neuralnetwork.parameters import QuantizedWeight
from serde.io.messages import INLINE_BYTES
from serde.relay.ir import TensorType, Var
from serde.relay.run.computed import ComputedWeight

__all__ = ["NetworkMessages"]

_WEIGHTS = "CoreML.Specification.WeightParams"


class NetworkMessages:
    """Writes networks into messages.

    Args:
        half: Whether weights of float32 are stored as float16.

    Attributes:
        arrays: Large values by the path of their message.
    """

    def __init__(self, *, half: bool) -> None:
        self.arrays: dict[str, Weight] = {}
        self._half = half

    def write(self, network: Network, message: AnyValue, path: str) -> None:
        """Write layers into a message of a network.

        Args:
            network: The layers.
            message: The message.
            path: Where it is in the model.

        Raises:
            Unsupported: A constant is one that float32 does not hold.
        """
        for index, layer in enumerate(network.layers):
            target = message.layers.add(name=layer.name, input=layer.inputs, output=layer.outputs)
            for type_ in layer.types:
                dims = [dim if isinstance(dim, int) else -1 for dim in held_shape(type_.shape)]
                target.outputTensor.add(rank=len(dims), dimValue=dims)
            part = getattr(target, layer.kind)
            part.SetInParent()
            self._fill(part, layer.fields, f"{path}.layers[{index}].{layer.kind}")

    def _fill(self, message: AnyValue, fields: dict[str, AnyValue], path: str) -> None:
        """Set the fields of a message; networks and weights within it are written and stored."""
        known = _fields_of(message.DESCRIPTOR)
        for name, value in fields.items():
            if value is None:
                continue
            field = known[name]
            where = f"{path}.{field.name}"
            if isinstance(value, Network):
                inner = getattr(message, field.name)
                inner.SetInParent()
                self.write(value, inner, where)
            elif isinstance(value, Parameter):
                self._store(getattr(message, field.name), value, where)
            elif isinstance(value, dict) and field.message_type.GetOptions().map_entry:
                _fill_map(getattr(message, field.name), value)
            elif isinstance(value, dict):
                inner = getattr(message, field.name)
                inner.SetInParent()
                self._fill(inner, value, where)
            elif isinstance(value, list) and field.message_type is not None:
                for index, each in enumerate(value):
                    self._fill(getattr(message, field.name).add(), each, f"{where}[{index}]")
            elif isinstance(value, list):
                getattr(message, field.name).extend(value)
            elif field.enum_type is not None:
                setattr(message, field.name, field.enum_type.values_by_name[value].number)
            else:
                setattr(message, field.name, value)

    def _store(self, message: AnyValue, parameter: Parameter, path: str) -> None:
        """Write values into a ``WeightParams``, or note where they are."""
        message.SetInParent()
        weight = parameter.weight
        if isinstance(weight, QuantizedWeight):
            linear = weight.linear(parameter.axis)
            if linear is not None:
                message.quantization.numberOfBits = 8
                message.quantization.linearQuantization.scale.extend(linear[0].tolist())
                message.quantization.linearQuantization.bias.extend(linear[1].tolist())
                self._keep(message, weight.bytes_without_sign(), path)
                return
        self._keep(message, self._to_stored_dtype(weight), path)

    def _to_stored_dtype(self, weight: Weight) -> Weight:
        """Return a weight in the dtype that it is stored in: float32 or float16."""
        wanted = "float16" if self._half and weight.dtype == "float32" else "float32"
        if weight.dtype in ("float16", wanted):
            return weight
        if isinstance(weight, ArrayWeight) and wanted == "float32":
            return ArrayWeight(held_array(weight.array()))
        values = Var("values", TensorType(weight.shape, weight.dtype))
        return ComputedWeight(relay.cast(values, wanted), {values: weight})

    def _keep(self, message: AnyValue, weight: Weight, path: str) -> None:
        if weight.nbytes >= INLINE_BYTES:
            self.arrays[path] = weight.reshaped((weight.size,))
            return
        array = np.ascontiguousarray(weight.array())
        if weight.dtype == "float32":
            message.floatValue.extend(array.reshape(-1).tolist())
        elif weight.dtype == "float16":
            message.float16Value = array.tobytes()
        else:
            message.rawValue = array.tobytes()


def _fill_map(target: AnyValue, values: dict[str, AnyValue]) -> None:
    """Set the parameters of a custom layer, each by the kind that it is of."""
    for name, value in values.items():
        if isinstance(value, bool):
            target[name].boolValue = value
        elif isinstance(value, int) and abs(value) < 2**31:
            target[name].intValue = value
        elif isinstance(value, int):
            target[name].longValue = value
        elif isinstance(value, float):
            target[name].doubleValue = value
        else:
            target[name].stringValue = value


@functools.cache
def _fields_of(descriptor: AnyValue) -> dict[str, AnyValue]:
    """Return the fields of a message by their names, and by these in snake case."""
    found = {field.name: field for field in descriptor.fields}
    return {snake_case(name): field for name, field in found.items()} | found
