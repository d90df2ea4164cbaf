"""Layers of a NeuralNetwork that is being written, in place of operations of MIL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any as AnyValue

import numpy as np

from serde.core.weights import ArrayWeight
from serde.coreml.neuralnetwork.export_context import ExportContext
from serde.coreml.neuralnetwork.layers import (
    WIDE_INTEGERS,
    Fields,
    Layer,
    Network,
    Parameter,
    held_array,
    held_shape,
    value_weight,
)
from serde.coreml.neuralnetwork.parameters import QuantizedWeight
from serde.coreml.value import MAX_RANK, Argument, Builder, Value
from serde.errors import ConverterBug, Unsupported
from serde.relay.ir import Call, TensorType
from serde.walk.converter import Converter
from serde.walk.table import ConverterTable

__all__ = ["MIL_VERSION", "LayerBuilder"]

MIL_VERSION = 15
"""Version of iOS whose operators of MIL become layers: all of its core have layers but two."""


class LayerBuilder(Builder):
    """Collects layers in place of the operations of MIL that are added.

    Args:
        table: Converters of operators of MIL into layers.
        target: Version of iOS that is to run the network.
        says: Whether layers of a target say a call that one operator of MIL does.

    Attributes:
        network: The whole network.
    """

    max_level = 32

    def __init__(
        self, table: ConverterTable, target: int, says: Callable[[Call, int], bool]
    ) -> None:
        self.network = Network()
        super().__init__(MIL_VERSION, self.network)
        self.quantises = self.narrows = True
        self.target = target
        self._table = table
        self._says = says
        self._known: dict[object, str] = {}

    def plain(self, name: str) -> str:
        """Return the name itself, for a network allows any."""
        return name or "value"

    def says(self, node: Call) -> bool:
        """Whether layers say a call that an operator of MIL does."""
        return self._says(node, self.target)

    def made_here(self) -> set[str]:
        """Return the names of what the layers of the present network give."""
        found: set[str] = set()
        for layer in self.block.layers:
            found.update(layer.outputs, layer.defines)
        return found

    def add(
        self,
        op: str,
        inputs: Mapping[str, Argument],
        types: Sequence[TensorType],
        source: str,
        blocks: Sequence[AnyValue] = (),
    ) -> tuple[Value, ...]:
        """Append the layers of an operation and return its outputs.

        Raises:
            Unsupported: No layers of the target do the same.
        """
        converter = self._table.exporter(op, self.target)
        if converter is None:
            later = self._table.exporter(op, MIL_VERSION)
            needed = MIL_VERSION if later is None else later.since
            raise Unsupported(
                f"networks for iOS{self.target} have no layer for {op}",
                hint=f"use minimum_deployment_target=iOS{needed}",
            )
        for type_ in types:
            if type_.rank > MAX_RANK:
                raise Unsupported(f"a tensor of {type_.rank} axes; Core ML has {MAX_RANK} at most")
            if 0 in type_.shape:
                raise Unsupported("a tensor without elements")
        ctx = ExportContext(self, types, source, blocks, self.target)
        operands, attrs = _bind_inputs(converter, inputs, op, self)
        result = converter.run(ctx, operands, attrs)
        found = [result] if isinstance(result, Value) else list(result)
        if len(found) != len(types):
            raise ConverterBug(f"{source} ({op}): {len(found)} results for {len(types)} types")
        return tuple(replace(value, type=type_) for value, type_ in zip(found, types, strict=True))

    def add_custom(
        self,
        class_name: str,
        inputs: Mapping[str, AnyValue],
        parameters: Mapping[str, AnyValue],
        types: Sequence[TensorType],
        source: str,
        order: Sequence[str],
        description: str,
    ) -> tuple[Value, ...]:
        """Append a custom layer, whose parameters are numbers and texts.

        Raises:
            Unsupported: One is a list.
        """
        wrong = [n for n, x in parameters.items() if not isinstance(x, (bool, int, float, str))]
        if wrong:
            raise Unsupported(f"a custom layer of a network has no list as {wrong[0]}")
        names = [*order, *(each for each in inputs if each not in order)]
        flat: list[AnyValue] = []
        for name in names:
            each = inputs.get(name)
            flat += each if isinstance(each, (list, tuple)) else [] if each is None else [each]
        outputs = [self.reserve(source) for _ in types]
        fields = {
            "class_name": class_name,
            "description": description,
            "parameters": dict(parameters),
        }
        given = [self.name_of(each) for each in flat]
        self.append(Layer("custom", outputs[0], given, outputs, fields, types=types))
        return tuple(Value(name, type_) for name, type_ in zip(outputs, types, strict=True))

    def add_unknown(
        self, op: str, inputs: Mapping[str, AnyValue], types: Sequence[TensorType], source: str
    ) -> tuple[Value, ...]:
        """Refuse an operation of MIL that no layer is.

        Raises:
            Unsupported: Always.
        """
        raise Unsupported(f"networks have no layer for {op}, which is an operator of MIL")

    def compress(
        self, op: str, given: Mapping[str, Value | str], type_: TensorType, source: str
    ) -> Value:
        """Return a weight that stays quantised where a layer takes it so.

        Raises:
            Unsupported: It is quantised in another way than linearly.
        """
        if op != "constexpr_affine_dequantize":
            raise Unsupported(f"no weights of networks are made by {op}")
        arrays = {
            name: value_weight(each) for name, each in given.items() if isinstance(each, Value)
        }
        axis = int(arrays["axis"].array().reshape(()))
        quantized = QuantizedWeight(
            arrays["quantized_data"],
            arrays["scale"].array(),
            arrays["zero_point"].array(),
            axis,
            type_.dtype,
        )
        return Value(source, type_, None, quantized)

    def new_block(self, inputs: Sequence[Value]) -> AnyValue:
        """Return a network without layers that takes `inputs`."""
        return Network(inputs=[each.name for each in inputs])

    def append(self, layer: Layer) -> None:
        """Append a layer to the present network."""
        self.block.layers.append(layer)

    def name_of(self, value: Value) -> str:
        """Return the name of a value; a constant is loaded now if nothing has read it yet.

        Raises:
            Unsupported: It is a constant that float32 does not hold.
        """
        if not value.is_known:
            return value.name
        weight = value_weight(value)
        key: object = ("weight", value.name, weight.shape, id(value.weight))
        if value.data is not None:
            data = held_array(value.data)
            key = ("data", data.shape, data.tobytes())
            weight = ArrayWeight(data)
        if key not in self._known:
            if weight.dtype in WIDE_INTEGERS:
                for start, stop in weight.row_ranges():
                    held_array(weight.rows(start, stop))
            shape = [*held_shape(weight.shape)]
            name = self.reserve(value.name)
            fields = {"shape": shape, "data": Parameter(weight)}
            # The whole network sees what is loaded before the layer that is being made.
            self.network.layers.append(Layer("loadConstantND", name, [], [name], fields))
            self._known[key] = name
        return self._known[key]


def _bind_inputs(
    converter: Converter, inputs: Mapping[str, Argument], op: str, builder: LayerBuilder
) -> tuple[list[AnyValue], Fields]:
    """Return the operands and the attributes of a converter among the inputs of an operation."""
    given = {name: each for name, each in inputs.items() if each is not None}
    operands: list[AnyValue] = []
    for name in converter.operands:
        each = given.pop(name, None)
        if each is not None and not _is_value(each):
            each = builder.constant(np.array(each))
        operands.append(each)
    attrs = {}
    for name, each in given.items():
        parameter = converter.attributes.get(name)
        if parameter is None:
            raise ConverterBug(f"{op}: the input {name} has no counterpart among layers")
        if isinstance(each, Value):
            if each.data is None:
                raise Unsupported(f"{op} wants {name} constant")
            listed = each.data.tolist()
            each = tuple(listed) if isinstance(listed, list) else listed
        attrs[name] = parameter.convert(each)
    return operands, attrs


def _is_value(given: AnyValue) -> bool:
    if isinstance(given, (tuple, list)):
        return bool(given) and isinstance(given[0], Value)
    return isinstance(given, Value)
