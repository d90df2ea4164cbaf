"""What converters to ONNX see: values, their types, and where nodes go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any as AnyValue

import numpy as np
import onnx

from serde.errors import ConverterBug, Unsupported
from serde.onnx.builder import GraphBuilder, Scope, Value, ValueType, without_symbols
from serde.onnx.schemas import takes_dtype
from serde.relay.ir.dims import Any, Dim, FloorDiv, SymDim, symbol
from serde.relay.ir.expr import Function
from serde.relay.ir.leaves import leaf_types, value_types
from serde.relay.ir.types import SequenceType, TensorType
from serde.walk.emission import EmittingContext
from serde.weights import numpy_dtype

__all__ = ["ExportContext", "Subgraph", "SymbolTable", "Value"]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """The body of a loop, its nodes collected.

    Attributes:
        scope: Where they are.
        inputs: Its parameters that are no captures.
        outputs: The tensors that it yields.
        types: Their types.
    """

    scope: Scope
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    types: tuple[ValueType, ...]


@dataclass(slots=True, eq=False)
class SymbolTable:
    """Where the symbols of shapes can be read off.

    Attributes:
        scope: Where the values of `shown` are known.
        parent: The table of what is around.
        shown: For each symbol a value and an axis.
        of_model: Whether the symbols are those of the model's inputs; those of a function may
            have the same names and other lengths, so that no type that is written has them.
    """

    scope: Scope
    parent: SymbolTable | None = None
    shown: dict[str, tuple[Value, int]] = field(default_factory=dict)
    of_model: bool = False

    def public(self, type_: ValueType) -> ValueType:
        """Return a type as it may be written."""
        return type_ if self.of_model else without_symbols(type_)

    def add(self, values: Iterable[Value]) -> None:
        """Note the symbols that the types of `values` show."""
        for value in values:
            shape = value.type.shape if isinstance(value.type, TensorType) else ()
            for axis, dim in enumerate(shape):
                if isinstance(dim, SymDim) and dim.name is not None:
                    self.shown.setdefault(dim.name, (value, axis))

    def find(self, name: str) -> tuple[Scope, Value, int]:
        """Return the innermost value that shows a symbol, with its scope and axis.

        Raises:
            Unsupported: None does.
        """
        table: SymbolTable | None = self
        while table is not None:
            if name in table.shown:
                return (table.scope, *table.shown[name])
            table = table.parent
        raise Unsupported(f"no input shows the dimension {name}")


class ExportContext(EmittingContext[Value]):
    """What a converter to ONNX may reach.

    Attributes:
        version: Version of the operator set that is written.
    """

    def __init__(self, builder: GraphBuilder) -> None:
        super().__init__()
        self.version = builder.version
        self._builder = builder
        self._symbols = SymbolTable(builder.main, of_model=True)
        self._used_once: frozenset[str] = frozenset()
        self._bodies: Mapping[Function, Subgraph | None] = {}

    def turn(
        self,
        symbols: SymbolTable,
        used_once: frozenset[str],
        bodies: Mapping[Function, Subgraph | None],
    ) -> None:
        """Turn to another graph.

        Args:
            symbols: Where symbols can be read off there.
            used_once: Names of weights that nothing else uses.
            bodies: Bodies of loops whose nodes are collected, here and in what follows.
        """
        self._symbols = symbols
        self._used_once = used_once
        self._bodies = bodies

    def emit(self, op: str, *inputs: Value | None, **attrs: AnyValue) -> Value:
        """Append a node with one output; an attribute that is None is left out."""
        return self._builder.add(op, inputs, 1, attrs, self._source)[0]

    def emit_tuple(
        self, op: str, *inputs: Value | None, outputs: int, **attrs: AnyValue
    ) -> tuple[Value, ...]:
        """Append a node with several outputs."""
        return self._builder.add(op, inputs, outputs, attrs, self._source)

    def subgraph(self, function: Function) -> Subgraph:
        """Return what the body of a loop has become."""
        body = self._bodies[function]
        if body is None:
            raise ConverterBug(f"{self._source}: the body of the loop has a gap")
        return body

    def graph(
        self, body: Subgraph, inputs: Sequence[Value], types: Sequence[ValueType]
    ) -> onnx.GraphProto:
        """Return the body of a loop as the attribute of a node.

        Args:
            body: What :meth:`subgraph` returned.
            inputs: Its inputs, as the operator hands them in.
            types: Types of its outputs, as wide as they may be.
        """
        public = self._symbols.public
        declared = [replace(value, type=public(self.value_type(value))) for value in inputs]
        outputs = list(map(public, types))
        return self._builder.graph(body.scope, declared, body.outputs, outputs)

    def input(self, name: str, type_: TensorType) -> Value:
        """Return a new input of a subgraph."""
        return Value(self._builder.reserve(name), type_)

    def result_types(self) -> list[TensorType]:
        """Return the types of all tensors that the converter must return."""
        return leaf_types(self.result)

    def result_value_types(self) -> list[ValueType]:
        """Return the types of all tensors and sequences that the converter must return."""
        return value_types(self.result)

    def reserve(self, name: str) -> str:
        """Take and return a name of the graph, for the names inside a body of it."""
        return self._builder.reserve(name)

    def takes(self, op: str, dtype: str) -> bool:
        """Whether an operator takes a dtype in the version that is written."""
        return takes_dtype(op, self.version, dtype)

    def maker(self, x: Value) -> str | None:
        """Return the operator of the node that gives `x`, None for an input, weight or constant."""
        return self._builder.makers.get(x.name)

    def const(self, value: AnyValue, dtype: AnyValue = None) -> Value:
        """Return a constant of the graph."""
        data = np.array(value, dtype=None if dtype is None else numpy_dtype(str(np.dtype(dtype))))
        return self._builder.constant(data)

    def ints(self, values: Iterable[int]) -> Value:
        """Return a vector of int64."""
        return self._builder.constant(np.array(list(values), dtype=np.int64).reshape(-1))

    def scalar_like(self, x: Value, value: float) -> Value:
        """Return a scalar constant of the dtype of `x`."""
        return self._builder.constant(np.array(value, dtype=numpy_dtype(self.type(x).dtype)))

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
            return self._builder.constant(x.data.reshape(lengths))
        if x.name not in self._builder.weights:
            return self.emit("Reshape", x, self.ints(lengths))
        weights = self._builder.weights
        name = x.name if x.name in self._used_once else self._builder.reserve(x.name)
        weights[name] = weights[x.name].reshaped(lengths)
        return Value(name, TensorType(lengths, self.type(x).dtype))

    def shape(self, dims: Sequence[Dim]) -> Value:
        """Return a vector of int64 that holds `dims`, computed at run time where symbolic.

        Raises:
            Unsupported: A dimension is anonymous, or no input shows its symbol.
        """
        if all(isinstance(dim, int) for dim in dims):
            return self.ints(dim for dim in dims if isinstance(dim, int))
        parts = [self._length(dim) for dim in dims]
        return parts[0] if len(parts) == 1 else self.emit("Concat", *parts, axis=0)

    def _length(self, dim: Dim) -> Value:
        """Return a vector of one int64 that holds `dim`."""
        if isinstance(dim, int):
            return self.ints([dim])
        if isinstance(dim, Any):
            raise Unsupported("needs a length that is not known before the model runs")
        if dim.name is not None:
            return self._shown(dim.name)
        key = ("length", self._symbols, str(dim))
        for scope in self._builder.scope.around():
            if key in scope.known:
                return scope.known[key]
        return self._builder.scope.known.setdefault(key, self._sum(dim))

    def _shown(self, name: str) -> Value:
        """Return the length of an axis, read where every user of the symbol sees it."""
        scope, value, axis = self._symbols.find(name)
        key = ("axis", value.name, axis)
        if key not in scope.known:
            with self._inside(scope):
                shape = self.emit("Shape", value)
                scope.known[key] = self.emit("Gather", shape, self.ints([axis]), axis=0)
        return scope.known[key]

    @contextmanager
    def _inside(self, scope: Scope) -> Iterator[None]:
        """Add nodes to a scope around the present one; what follows there comes after them."""
        present, self._builder.scope = self._builder.scope, scope
        try:
            yield
        finally:
            self._builder.scope = present

    def _sum(self, dim: SymDim) -> Value:
        total: Value | None = None
        for monomial, coefficient in dim.terms:
            term: Value | None = None if coefficient == 1 and monomial else self.ints([coefficient])
            for atom, power in monomial:
                factor = self._atom(atom)
                for _ in range(power):
                    term = factor if term is None else self.emit("Mul", term, factor)
            if term is not None:
                total = term if total is None else self.emit("Add", total, term)
        if total is None:
            raise ConverterBug(f"{self._source}: the dimension {dim} has no terms")
        return total

    def _atom(self, atom: str | FloorDiv) -> Value:
        """Lengths are not negative, so that ONNX's division, which truncates, is the floor."""
        if isinstance(atom, str):
            return self._length(symbol(atom))
        return self.emit("Div", self._length(atom.numerator), self._length(atom.denominator))
