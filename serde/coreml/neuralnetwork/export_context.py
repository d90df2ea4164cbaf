"""What a converter of an operator of MIL into layers may reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
from serde.core.weights import ArrayWeight
from serde.coreml.neuralnetwork.layers import Layer, Network, Parameter, held_shape, value_weight
from serde.coreml.value import Argument, Builder, Value
from serde.errors import ConverterBug, Unsupported
from serde.relay.ir import Dim, TensorType
from serde.walk.export_context import NodeContext

__all__ = ["ExportContext"]


class ExportContext(NodeContext[Value]):
    """What a converter of an operator of MIL into layers may reach.

    Attributes:
        types: Types of what it must return.
        blocks: The networks of the operation's blocks.
        target: Version of iOS that is to run the network.
    """

    def __init__(
        self,
        builder: Builder,
        types: Sequence[TensorType],
        source: str,
        blocks: Sequence[Network],
        target: int,
    ) -> None:
        super().__init__()
        if types:
            self.enter(source, types[0])
        self._builder = builder
        self.types = tuple(types)
        self.blocks = tuple(blocks)
        self.target = target

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
        self.append(Layer(kind, name, names, outputs, given))
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
        self.append(Layer(kind, name, names, [], dict(fields), list(defines)))

    def copied(self, x: str, name: str) -> Layer:
        """Return a layer that gives a tensor another name."""
        return Layer("copy", self._builder.reserve(f"{name}_copy"), [x], [name], {})

    def append(self, layer: Layer) -> None:
        """Append a layer as it is."""
        self._builder.block.layers.append(layer)

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
        return Parameter(ArrayWeight(allocation.full(length, value, np.float32)))

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
