"""What converters to ONNX see: values, their types, and where nodes go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any as AnyValue, Final, Literal

import numpy as np
import onnx

from serde.core import dataclass, numpy_dtype, replace
from serde.errors import ConverterBug
from serde.onnx.builder import GraphBuilder, GraphScope, Value, ValueType, without_symbols
from serde.onnx.schemas import takes_dtype
from serde.relay.ir import Dim, Function, SequenceType, TensorType
from serde.relay.ir.leaves import leaves, value_types
from serde.walk import export_context as walk
from serde.walk.export_context import Values, Writing
from serde.walk.table import ConverterTable

__all__ = ["MAX_LEVEL", "ExportContext", "Subgraph", "Value"]

MAX_LEVEL: Final = 31
"""Subgraphs inside each other that protobuf, which reads 100 messages deep, leaves room for."""


@dataclass(frozen=True, slots=True)
class Subgraph:
    """The body of a loop, its nodes collected.

    Attributes:
        scope: Where they are.
        inputs: Its parameters that are no captures.
        outputs: The tensors that it yields.
        types: Their types.
    """

    scope: GraphScope
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    types: tuple[ValueType, ...]


class ExportContext(walk.ExportContext[Value]):
    """What a converter to ONNX may reach.

    Attributes:
        version: Version of the operator set that is written.
        scope: The graph that nodes are added to.
    """

    scope: GraphScope

    def __init__(self, table: ConverterTable, builder: GraphBuilder) -> None:
        super().__init__(table, builder.version, builder.main)
        self._builder = builder

    def emit(self, op: str, *inputs: Value | None, **attrs: AnyValue) -> Value:
        """Append a node with one output; an attribute that is None is left out.

        A shape that is known is a constant.
        """
        of = inputs[0].type if op == "Shape" and inputs[0] is not None else None
        if isinstance(of, TensorType) and of.concrete_shape is not None and not attrs:
            return self.ints(of.concrete_shape)
        return self._builder.add(self.scope, op, inputs, 1, attrs, self._source)[0]

    def emit_tuple(
        self, op: str, *inputs: Value | None, outputs: int, **attrs: AnyValue
    ) -> tuple[Value, ...]:
        """Append a node with several outputs."""
        return self._builder.add(self.scope, op, inputs, outputs, attrs, self._source)

    def subgraph(self, body: Function, captures: Sequence[Values[Value]]) -> Writing[Subgraph]:
        """Write the body of a loop, whose last parameters stand for what it captures.

        Raises:
            Unsupported: Too many lie inside each other.
        """
        self._source = self._builder.hold(self._source)
        scope = GraphScope(self.scope, f"{self._source}/body")
        scope.require_level(MAX_LEVEL)
        split = len(body.params) - len(captures)
        inputs = [
            Value(self._builder.reserve(param.name_hint), value_types(param.type)[0])
            for param in body.params[:split]
        ]
        taken = [
            self.with_types(value, param.checked_type)
            for param, value in zip(body.params[split:], captures, strict=True)
        ]
        with self.inside(scope):
            result: Values[Value] = yield from self.body(body, [*inputs, *taken])
        flat, types = tuple(leaves(result)), tuple(value_types(body.body.type))
        return Subgraph(scope, tuple(inputs), flat, types)

    def graph(
        self, body: Subgraph, inputs: Sequence[Value], types: Sequence[ValueType]
    ) -> onnx.GraphProto:
        """Return the body of a loop as the attribute of a node.

        Args:
            body: What :meth:`subgraph` returned.
            inputs: Its inputs, as the operator hands them in.
            types: Types of its outputs, as wide as they may be.
        """
        declared = [replace(value, type=self.public(self.value_type(value))) for value in inputs]
        outputs = list(map(self.public, types))
        return self._builder.graph(body.scope, declared, body.outputs, outputs)

    def public(self, type_: ValueType) -> ValueType:
        """Return a type as it may be written: symbols are those of the model's inputs alone."""
        return type_ if self.symbols.of_model else without_symbols(type_)

    def input(self, name: str, type_: TensorType) -> Value:
        """Return a new input of a subgraph."""
        return Value(self._builder.reserve(name), type_)

    def result_value_types(self) -> list[ValueType]:
        """Return the types of all tensors and sequences that the converter must return."""
        return value_types(self.result)

    def reserve(self, name: str) -> str:
        """Take and return a name of the graph, for the names inside a body of it."""
        return self._builder.reserve(name)

    def typed(self, x: Value, type_: ValueType) -> Value:
        """Return a value with its Relay type."""
        return Value(x.name, type_, x.data)

    def takes(self, op: str, dtype: str) -> bool:
        """Whether an operator takes a dtype in the version that is written."""
        return takes_dtype(op, self.version, dtype)

    def maker(self, x: Value) -> str | None:
        """Return the operator of the node that gives `x`, None for an input, weight or constant."""
        return self._builder.makers.get(x.name)

    def const(self, value: AnyValue, dtype: AnyValue = None) -> Value:
        """Return a constant of the graph."""
        data = np.array(value, dtype=None if dtype is None else numpy_dtype(str(np.dtype(dtype))))
        return self._builder.constant(self.scope, data)

    def ints(self, values: Iterable[int]) -> Value:
        """Return a vector of int64."""
        return self._builder.constant(
            self.scope, np.array(list(values), dtype=np.int64).reshape(-1)
        )

    def scalar_like(self, x: Value, value: float) -> Value:
        """Return a scalar constant of the dtype of `x`."""
        return self._builder.constant(
            self.scope, np.array(value, dtype=numpy_dtype(self.type(x).dtype))
        )

    def type(self, x: Value) -> TensorType:
        """Return the Relay type of a tensor.

        Raises:
            ConverterBug: The value is a converter's own and has none, or it is a sequence.
        """
        type_ = self.value_type(x)
        if isinstance(type_, SequenceType):
            raise ConverterBug(f"{self._source}: {x.name} is a sequence")
        return type_

    def value_type(self, x: Value) -> ValueType:
        """Return the Relay type of a tensor or a sequence.

        Raises:
            ConverterBug: The value is a converter's own and has none.
        """
        if x.type is None:
            raise ConverterBug(f"{self._source}: {x.name} has no Relay type")
        return x.type

    def view(self, x: Value, shape: Sequence[Dim]) -> Value:
        """Return `x` in another shape of the same size: of a weight, without a node."""
        lengths = tuple(dim for dim in shape if isinstance(dim, int))
        if lengths == self.type(x).shape:
            return x
        if len(lengths) < len(shape):
            return self.emit("Reshape", x, self.shape(shape))
        if x.data is not None:
            return self._builder.constant(self.scope, x.data.reshape(lengths))
        if x.name not in self._builder.weights:
            return self.emit("Reshape", x, self.ints(lengths))
        weights = self._builder.weights
        name = x.name if x.name in self.used_once else self._builder.reserve(x.name)
        weights[name] = weights[x.name].reshaped(lengths)
        return Value(name, TensorType(lengths, self.type(x).dtype))

    def symbol_length(self, name: str) -> Value:
        """Return a vector of one int64 for a symbol, read where every user of it sees it."""
        scope, value, axis = self.symbols.find(name, self.scope)
        with self.inside(scope):
            return self.once((value.name, axis), lambda: self.axis_length(value, axis))

    def lengths(self, values: Sequence[int]) -> Value:
        """Return a constant vector of int64."""
        return self.ints(values)

    def axis_length(self, x: Value, axis: int) -> Value:
        """Write what reads the length of an axis: a vector of one int64."""
        return self.emit("Gather", self.emit("Shape", x), self.ints([axis]), axis=0)

    def join_lengths(self, parts: Sequence[Value]) -> Value:
        """Write the concatenation of vectors of one int64."""
        return self.emit("Concat", *parts, axis=0)

    def combine_lengths(
        self, operator: Literal["mul", "add", "floor_div"], one: Value, other: Value
    ) -> Value:
        """Lengths are not negative, so that ONNX's division, which truncates, is the floor."""
        return self.emit({"mul": "Mul", "add": "Add", "floor_div": "Div"}[operator], one, other)
