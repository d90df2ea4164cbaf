"""Layers of a NeuralNetwork that is being written, in place of operations of MIL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from typing import Any as AnyValue

import numpy as np

from serde.coreml.neuralnetwork.quantized import QuantizedWeight
from serde.coreml.value import MAX_RANK, Argument, Builder, Value
from serde.errors import ConverterBug, Unsupported
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call
from serde.relay.ir.types import TensorType
from serde.walk.converter import Converter
from serde.walk.emission import EmittingContext
from serde.weights import Array, ArrayWeight, Weight

if TYPE_CHECKING:
    from serde.walk.table import ConverterTable

__all__ = ["ExportContext", "Layer", "LayerBuilder", "Network", "Parameter", "held_shape"]

MIL_VERSION = 15
"""Version of iOS whose operators of MIL become layers: all of its core have layers but two."""

_LARGEST = float(np.nextafter(np.float32(2**31), np.float32(0)))
"""The greatest float32 that is an int32, which stands for "to the end"."""

_WIDE = frozenset({"int32", "int64", "uint32", "uint64"})
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
    """

    kind: str
    name: str
    inputs: list[str]
    outputs: list[str]
    fields: Fields
    defines: list[str] = field(default_factory=list)

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


class LayerBuilder(Builder):
    """Collects layers in place of the operations of MIL that are added.

    Args:
        table: Converters of operators of MIL into layers.
        target: Version of iOS that is to run the network.
        says: Whether layers of a target say a call that one operator of MIL does.

    Attributes:
        network: The whole network.
    """

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
        ctx = ExportContext(self, types, source, blocks)
        operands, attrs = _bound(converter, inputs, op, self)
        result = converter.function(ctx, *operands, **attrs)
        found = [result] if isinstance(result, Value) else list(result)
        if len(found) != len(types):
            raise ConverterBug(f"{source} ({op}): {len(found)} results for {len(types)} types")
        return tuple(replace(value, type=type_) for value, type_ in zip(found, types, strict=True))

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
            if weight.dtype in _WIDE:
                for start, stop in weight.row_ranges():
                    held_array(weight.rows(start, stop))
            shape = [*held_shape(weight.shape)]
            name = self.reserve(value.name)
            fields = {"shape": shape, "data": Parameter(weight)}
            # The whole network sees what is loaded before the layer that is being made.
            self.network.layers.append(Layer("loadConstantND", name, [], [name], fields))
            self._known[key] = name
        return self._known[key]


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


def _bound(
    converter: Converter, inputs: Mapping[str, Argument], op: str, builder: LayerBuilder
) -> tuple[list[AnyValue], Fields]:
    """Return the operands and the attributes of a converter among the inputs of an operation.

    Raises:
        Unsupported: An attribute is computed.
    """
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


class ExportContext(EmittingContext[Value]):
    """What a converter of an operator of MIL into layers may reach.

    Attributes:
        types: Types of what it must return.
        blocks: The networks of the operation's blocks.
        target: Version of iOS that is to run the network.
    """

    def __init__(
        self,
        builder: LayerBuilder,
        types: Sequence[TensorType],
        source: str,
        blocks: Sequence[Network],
    ) -> None:
        super().__init__()
        if types:
            self.enter(source, types[0])
        self._builder = builder
        self.types = tuple(types)
        self.blocks = tuple(blocks)
        self.target = builder.target

    def type(self, x: Value) -> TensorType:
        """Return the Relay type of a value."""
        return x.type

    def layer(
        self, kind: str, *inputs: Value, of: TensorType | None = None, **fields: AnyValue
    ) -> Value:
        """Append a layer with one output.

        Args:
            kind: Its field of Apple's message of a layer.
            inputs: Its inputs.
            of: Type of the output; that of the operation's first result if left out.
            fields: Its parameters; None is left out.
        """
        return self.layers(kind, inputs, [of or self.result_type()], **fields)[0]

    def layers(
        self,
        kind: str,
        inputs: Sequence[Value],
        types: Sequence[TensorType] | None = None,
        **fields: AnyValue,
    ) -> tuple[Value, ...]:
        """Append a layer with several outputs; those of the operation if left out."""
        names = [self._builder.name_of(each) for each in inputs]
        found = [
            Value(self._builder.reserve(self._source), type_)
            for type_ in (self.types if types is None else types)
        ]
        given = {name: each for name, each in fields.items() if each is not None}
        outputs = [each.name for each in found]
        name = outputs[0] if outputs else self._builder.reserve(self._source)
        self._builder.append(Layer(kind, name, names, outputs, given))
        return tuple(found)

    def writing(
        self, kind: str, inputs: Sequence[Value], defines: Sequence[str], **fields: AnyValue
    ) -> None:
        """Append a layer whose networks write tensors themselves.

        Args:
            kind: Its field of Apple's message of a layer.
            inputs: Its inputs.
            defines: Names of the tensors that are there after it.
            fields: Its parameters.
        """
        names = [self._builder.name_of(each) for each in inputs]
        name = self._builder.reserve(self._source)
        self._builder.append(Layer(kind, name, names, [], dict(fields), list(defines)))

    def copied(self, x: str, name: str) -> Layer:
        """Return a layer that gives a tensor another name."""
        return Layer("copy", self._builder.reserve(f"{name}_copy"), [x], [name], {})

    def append(self, layer: Layer) -> None:
        """Append a layer as it is."""
        self._builder.append(layer)

    def name_of(self, x: Value) -> str:
        """Return the name of a value."""
        return self._builder.name_of(x)

    def reserve(self) -> str:
        """Take and return a name for a tensor."""
        return self._builder.reserve(self._source)

    def emit(self, op: str, type_: TensorType | None = None, /, **inputs: Argument) -> Value:
        """Append the layers of another operator of MIL with one output."""
        type_ = self.result_type() if type_ is None else type_
        return self._builder.add(op, inputs, [type_], self._source)[0]

    def const(self, value: AnyValue, dtype: AnyValue = "float32") -> Value:
        """Return a constant."""
        return self._builder.constant(np.array(value, dtype))

    def parameter(self, x: Value, axis: int = 0) -> Parameter:
        """Return a constant or a weight as values within a layer.

        Args:
            x: The constant.
            axis: The axis that scales may go along, where it stays quantised.

        Raises:
            Unsupported: It is computed when the model runs.
        """
        if not x.is_known:
            raise Unsupported("needs a constant, found a value computed at run time")
        return Parameter(value_weight(x), axis)

    def filled(self, value: float, length: int) -> Parameter:
        """Return one number many times as values within a layer."""
        return Parameter(ArrayWeight(np.full(length, value, np.float32)))

    def since(self, target: int, what: str) -> None:
        """Refuse what only newer systems have.

        Raises:
            Unsupported: The target is older.
        """
        if self.target < target:
            raise self.only_since(target, what)

    def only_since(self, target: int, what: str) -> Unsupported:
        """Return the refusal of what only newer systems have."""
        hint = f"use minimum_deployment_target=iOS{target}"
        return Unsupported(f"networks for iOS{self.target} have no {what}", hint=hint)

    def reshaped(self, x: Value, dims: Sequence[Dim]) -> Value:
        """Return `x` in another shape, of which at most one length is not fixed.

        Raises:
            Unsupported: More are not.
        """
        type_ = TensorType(tuple(dims), x.type.dtype)
        wanted = held_shape(dims)
        if wanted == held_shape(x.type.shape) and all(isinstance(dim, int) for dim in wanted):
            return replace(x, type=type_) if not x.is_known else self._known_as(x, type_)
        open_ = sum(not isinstance(dim, int) for dim in wanted)
        if open_ > 1:
            raise Unsupported(f"a reshape to {list(dims)}, of which several lengths are open")
        codes = [dim if isinstance(dim, int) else -1 for dim in wanted]
        return self.layer("reshapeStatic", x, of=type_, target_shape=codes)

    def _known_as(self, x: Value, type_: TensorType) -> Value:
        shape = type_.concrete_shape
        if shape is None:
            raise ConverterBug(f"{self._source}: a constant of {type_!r}")
        if x.data is not None:
            return Value(x.name, type_, x.data.reshape(shape))
        return Value(x.name, type_, None, value_weight(x).reshaped(shape))
