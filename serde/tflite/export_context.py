"""What a converter from Relay to TFLite may reach: tensors of a graph, and operators in order."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any as AnyValue, Final, Literal

import numpy as np

from serde.core import ArrayWeight, Weight, numpy_dtype
from serde.errors import ConverterBug, Unsupported
from serde.relay.ir import Expr, SequenceType, TensorType, Type, Var, value_types
from serde.relay.run.computed import ComputedWeight
from serde.tflite.graph import GraphScope, Value
from serde.tflite.model import Operator, Quantization, Subgraph, Tensor
from serde.tflite.versions import KERNEL_TYPES, MOVING_CODES, POSITIONS
from serde.walk import export_context as walk
from serde.walk.table import ConverterTable

__all__ = ["ExportContext", "Value"]

DTYPES: Final = frozenset(
    ("bool", "float32", "int16", "int32", "int64", "int8", "uint8", "int4", "uint32")
)
"""Types of elements that graphs compute."""

_MOST_AXES: Final = 8

_BY_SCALE: Final = MOVING_CODES - {"PAD"} | {"CAST", "DEQUANTIZE", "QUANTIZE"}
"""Operators for which it is right that an operand has a scale; PAD puts the number 0 around it."""


class ExportContext(walk.ExportContext[Value]):
    """What a converter from Relay to TFLite may reach.

    Attributes:
        weights: Weights by name.
        inner: Graphs that are written already; the main one will be in front of them.
    """

    scope: GraphScope

    def __init__(self, table: ConverterTable) -> None:
        super().__init__(table, 1, GraphScope())
        self.weights: dict[str, Weight] = {}
        self.inner: list[Subgraph] = []
        self._computed = set[str]()

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors of the present graph so far."""
        return self.scope.tensors

    @property
    def operators(self) -> list[Operator]:
        """Its operators so far."""
        return self.scope.operators

    def enter(self, source: str, result: Type) -> None:
        """Turn to the node called `source`, whose Relay type is `result`.

        Raises:
            Unsupported: TFLite has no such tensors.
        """
        super().enter(source, result)
        for each in value_types(result):
            self.require(each)

    def require(self, type_: TensorType | SequenceType) -> None:
        """Refuse a type that TFLite has not.

        Raises:
            Unsupported: It is a sequence, or its elements or number of axes are beyond it.
        """
        if not isinstance(type_, TensorType):
            raise Unsupported("TFLite has no sequences of tensors")
        if type_.dtype not in DTYPES:
            raise Unsupported(f"TFLite computes no {type_.dtype}")
        if type_.rank > _MOST_AXES:
            raise Unsupported(f"TFLite has at most {_MOST_AXES} axes, found {type_!r}")

    def emit(self, op: str, *inputs: Value | None, **options: AnyValue) -> Value:
        """Append an operator of one result, of the type of the node."""
        return self.append(op, inputs, [self.result_type()], options)[0]

    def emit_as(
        self, type_: TensorType, op: str, *inputs: Value | None, **options: AnyValue
    ) -> Value:
        """Append an operator of one result of another type."""
        return self.append(op, inputs, [type_], options)[0]

    def state(self, type_: TensorType, first: Value | None) -> Value:
        """Return a variable tensor, to which the graph gives its first value in every run.

        A concatenation of one copies in all of LiteRT's engines; without a value it is zeros.
        """
        if first is None:
            zero = self.const(0, type_.dtype)
            made = self.emit_as(type_, "FILL", self.shape(type_.shape), zero)
        else:
            made = self.emit_as(type_, "CONCATENATION", first, axis=0)
        self.tensors[made.number] = replace(self.tensors[made.number], is_variable=True)
        return made

    def emit_codes(self, x: Value, made: Quantization) -> Value:
        """Append what makes codes of numbers."""
        found = self.emit("QUANTIZE", x)
        self.tensors[found.number] = replace(self.tensors[found.number], quantization=made)
        return found

    def codes(self, x: Value, given: Quantization | None) -> Value:
        """Return a tensor as codes of numbers, or as integers; a copy of one that has been used."""
        number = self.number(x)
        found = self.tensors[number].quantization
        if (found and found.key) == (given and given.key):
            return x
        if number in self.scope.seen:
            x = self.copy(x)
            number = x.number
        self.tensors[number] = replace(self.tensors[number], quantization=given)
        return x

    def emit_tuple(
        self, op: str, *inputs: Value | None, outputs: int = 0, **options: AnyValue
    ) -> tuple[Value, ...]:
        """Append an operator of several results, of the types of the node."""
        types = self.result_types()
        return self.append(op, inputs, types[:outputs] if outputs else types, options)

    def append(
        self,
        op: str,
        inputs: Sequence[Value | None],
        types: Sequence[TensorType],
        options: dict[str, AnyValue],
    ) -> tuple[Value, ...]:
        """Append an operator of results of some types."""
        self._require_kernel(op, [self.type(each) for each in inputs if each is not None])
        if op not in _BY_SCALE:
            inputs = [each and self.codes(each, None) for each in inputs]
        given = tuple(-1 if each is None else self.number(each) for each in inputs)
        while given and given[-1] == -1:
            given = given[:-1]
        for each in types:
            self.require(each)
        scope = self.scope
        made = tuple(scope.add(self.source or op.lower(), each) for each in types)
        self.operators.append(Operator(op, 1, given, made, options))
        scope.seen.update(given, made)
        if op in _BY_SCALE & MOVING_CODES:
            scale = self.tensors[given[0]].quantization
            for number in made:
                self.tensors[number] = replace(self.tensors[number], quantization=scale)
        return tuple(Value(i, each, home=scope) for i, each in zip(made, types, strict=True))

    def _require_kernel(self, op: str, types: Sequence[TensorType]) -> None:
        """Refuse types that LiteRT's kernels do not compute."""
        known = KERNEL_TYPES.get(op)
        if known is None or not types:
            return
        given = types[POSITIONS.get(op, 0)].dtype
        if given not in known:
            raise Unsupported(f"{op} takes {' and '.join(known)}; found {given}")

    def number(self, x: Value) -> int:
        """Return the number of a tensor; a constant or weight gets one when it is first taken."""
        scope = self.scope
        if x.number >= 0:
            return scope.number(x)
        if x.weight is not None:
            key: Hashable = x.weight
            name, weight = x.weight, self.weights[x.weight]
        elif x.data is not None:
            key = (x.data.dtype.str, x.data.shape, x.data.tobytes())
            name, weight = f"{self.source}/const", ArrayWeight(np.array(x.data, order="C"))
        else:
            raise ConverterBug(f"{self.source}: a value that nothing gives")
        if key not in scope.stored:
            scope.stored[key] = scope.add(name, TensorType(weight.shape, weight.dtype), weight)
        return scope.stored[key]

    def graph_inputs(self, types: Iterable[TensorType], name: str) -> list[Value]:
        """Declare inputs of the present graph."""
        scope = self.scope
        return [Value(scope.add(name, each), each, home=scope) for each in types]

    def copy(self, x: Value) -> Value:
        """Write the elements of a tensor again."""
        type_ = self.type(x)
        if type_.concrete_shape is not None:
            return self.emit_as(type_, "RESHAPE", x, self.ints(type_.concrete_shape))
        return self.emit_as(type_, "RESHAPE", x, self.shape_of(x))

    def shape_of(self, x: Value) -> Value:
        """Write what reads the lengths of a tensor, as int32."""
        rank = self.type(x).rank
        return self.emit_as(TensorType((rank,), "int32"), "SHAPE", x, out_type=2)

    def outputs(self, values: Sequence[Value], names: Sequence[str] = ()) -> list[int]:
        """Return numbers of outputs: what is none of an operator, or one twice, is copied."""
        made = {i for each in self.operators for i in each.outputs}
        found = list[int]()
        for index, value in enumerate(values):
            number = self.number(value)
            if number not in made or number in found:
                number = self.copy(value).number
            if names:
                self.tensors[number] = replace(self.tensors[number], name=names[index])
            found.append(number)
        return found

    def close(self, graph: Subgraph) -> int:
        """Keep a graph that is written, and return its number in the file."""
        self.inner.append(graph)
        return len(self.inner)

    def const(self, value: AnyValue, dtype: AnyValue = None) -> Value:
        """Return a constant of the graph."""
        data = np.array(value, dtype=None if dtype is None else numpy_dtype(str(np.dtype(dtype))))
        return Value(-1, TensorType(data.shape, data.dtype.name), data)

    def ints(self, values: Sequence[int]) -> Value:
        """Return a vector of int32."""
        return self.const(np.array(list(values), np.int32).reshape(-1))

    def computed_weight(self, root: Expr, values: Mapping[Expr, Value]) -> Value | None:
        """Return the weight that an expression of constants and weights alone is."""
        if not all(each.is_known for each in values.values()):
            return None
        sources = {
            leaf: self.weights[value.weight]
            for leaf, value in values.items()
            if isinstance(leaf, Var) and value.weight is not None
        }
        weight = ComputedWeight(root, sources)
        base = next((x.weight for x in values.values() if x.weight is not None), "constant")
        once = base in self.used_once and base not in self._computed
        name = base if once else f"{base}_{len(self.weights)}"
        self._computed.add(base)
        self.weights[name] = weight
        return Value(-1, TensorType(weight.shape, weight.dtype), weight=name)

    # Lengths: vectors of one int32.

    def symbol_length(self, name: str) -> Value:
        """Return a vector of one int32 for a symbol."""
        scope, value, axis = self.symbols.find(name, self.scope)
        with self.inside(scope):
            key = value.home, value.number, axis
            return self.once(key, lambda: self.axis_length(value, axis))

    def lengths(self, values: Sequence[int]) -> Value:
        """Return a constant vector of int32."""
        return self.ints(values)

    def axis_length(self, x: Value, axis: int) -> Value:
        """Write what reads the length of an axis."""
        one = TensorType((1,), "int32")
        parts = self.ints([axis]), self.ints([axis + 1]), self.ints([1])
        return self.emit_as(one, "STRIDED_SLICE", self.shape_of(x), *parts)

    def join_lengths(self, parts: Sequence[Value]) -> Value:
        """Write the concatenation of vectors of one int32."""
        count = sum(int(np.prod(self.static_shape(each))) for each in parts)
        return self.emit_as(TensorType((count,), "int32"), "CONCATENATION", *parts, axis=0)

    def combine_lengths(
        self, operator: Literal["mul", "add", "floor_div"], one: Value, other: Value
    ) -> Value:
        """Write the product, the sum or the quotient of two lengths."""
        op = {"mul": "MUL", "add": "ADD", "floor_div": "FLOOR_DIV"}[operator]
        return self.emit_as(TensorType((1,), "int32"), op, one, other)
