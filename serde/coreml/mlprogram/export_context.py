"""What a converter from Relay to an ML Program may reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any as AnyValue, Final, Literal

import numpy as np

import serde.relay as relay
from serde.core.weights import Weight, numpy_dtype
from serde.coreml.value import Argument, Builder, Held, Value
from serde.relay.ir import Call, Dim, Expr, TensorType, Var
from serde.relay.run.computed import ComputedWeight
from serde.walk import export_context as walk
from serde.walk.export_context import SymbolTable, Writing
from serde.walk.placement import Scope
from serde.walk.table import ConverterTable

__all__ = ["ExportContext"]

_SINGLE: Final = TensorType((1,), "int32")


class ExportContext(walk.ExportContext[Value]):
    """What a converter to an ML Program may reach.

    Attributes:
        version: Version of iOS whose operators are written.
    """

    def __init__(self, table: ConverterTable, builder: Builder) -> None:
        super().__init__(table, builder.version, Scope())
        self._builder = builder
        self._derived = 0

    @property
    def quantises(self) -> bool:
        """Whether weights may stay quantised."""
        return self._builder.quantises

    @property
    def narrows(self) -> bool:
        """Whether values become integers of 8 and 16 bits."""
        return self._builder.narrows

    def emit(self, op: str, type_: TensorType | None = None, /, **inputs: Argument) -> Value:
        """Append an operation with one output.

        Args:
            op: The operator.
            type_: Type of the output; that of the node's result if left out.
            inputs: Its inputs; numbers and text become constants, None is left out.
        """
        type_ = self.result_type() if type_ is None else type_
        return self._builder.add(op, inputs, [type_], self._source)[0]

    def emit_tuple(
        self, op: str, types: Sequence[TensorType] | None = None, /, **inputs: Argument
    ) -> tuple[Value, ...]:
        """Append an operation with several outputs; those of the node's result if left out."""
        return self._builder.add(op, inputs, types or self.result_types(), self._source)

    def compressed(
        self, op: str, type_: TensorType | None = None, /, **inputs: Value | str | None
    ) -> Value:
        """Append an operation that makes a weight of constants; None is left out.

        Args:
            op: The operator.
            type_: Type of the weight; that of the node's result if left out.
            inputs: Its inputs, constants, weights and texts, which come to lie in it.
        """
        type_ = self.result_type() if type_ is None else type_
        given = {name: each for name, each in inputs.items() if each is not None}
        return self._builder.compress(op, given, type_, self._source)

    def constexpr(
        self, op: str, types: Sequence[tuple[TensorType, int | None]], /, **inputs: Held | None
    ) -> tuple[Value, ...]:
        """Append an operation that unpacks a weight; None is left out.

        Args:
            op: The operator.
            types: Types of what comes out, with the bits of an element that is narrower.
            inputs: Its inputs: constants, weights, and what such operations give.
        """
        given = {name: each for name, each in inputs.items() if each is not None}
        return self._builder.constexpr(op, given, types, self._source)

    def const(self, value: AnyValue, dtype: AnyValue = None) -> Value:
        """Return a constant, written where an operation reads it."""
        return self._builder.constant(np.array(value, dtype and numpy_dtype(dtype)))

    def type(self, x: Value) -> TensorType:
        """Return the Relay type of a value."""
        return x.type

    def cast(self, x: Value, dtype: str) -> Value:
        """Return a value in another dtype."""
        if x.data is not None:
            return self.const(x.data, dtype)
        return self.spell(lambda a: relay.cast(a, dtype), x)

    def inner_symbols(self) -> SymbolTable[Value]:
        """Return the same table: an inner block sees the lengths of what is around it."""
        return self.symbols

    def shape(self, dims: Sequence[Dim]) -> Value:
        """Return a vector of int32 that holds `dims`, computed once where symbolic.

        Raises:
            Unsupported: A dimension is anonymous, or nothing shows its symbol.
        """
        return self.once(tuple(map(str, dims)), partial(super().shape, dims))

    def lengths(self, values: Sequence[int]) -> Value:
        """Return a constant vector of int32."""
        return self.const(np.array(values, np.int32))

    def axis_length(self, x: Value, axis: int) -> Value:
        """Write what reads the length of an axis: a vector of one int32."""
        whole = self.emit("shape", TensorType((x.type.rank,), "int32"), x=x)
        return self.emit("slice_by_size", _SINGLE, x=whole, begin=[axis], size=[1])

    def join_lengths(self, parts: Sequence[Value]) -> Value:
        """Write the concatenation of vectors of one int32."""
        return self.emit("concat", TensorType((len(parts),), "int32"), values=parts, axis=0)

    def combine_lengths(
        self, operator: Literal["mul", "add", "floor_div"], one: Value, other: Value
    ) -> Value:
        """Write the product, the sum or the quotient of two lengths."""
        return self.emit(operator, _SINGLE, x=one, y=other)

    @contextmanager
    def block(self, step: str, inputs: Sequence[Value] = ()) -> Iterator[AnyValue]:
        """Add operations to a block meanwhile.

        Args:
            step: What it is in the present one, such as ``loop_1/body``.
            inputs: What it takes.

        Raises:
            Unsupported: Too many lie inside each other.
        """
        scope = self.scope.inner(step)
        scope.require_level(self._builder.max_level)
        with self.inside(scope), self._builder.inner_block(inputs) as block:
            yield block

    def loop(
        self,
        carried: Sequence[Value],
        types: Sequence[TensorType],
        ask: Callable[[Sequence[Value]], Sequence[Value]],
        turn: Callable[[Sequence[Value]], Writing[Sequence[Value]]],
    ) -> Writing[tuple[Value, ...]]:
        """Append a loop and return its last variables.

        Args:
            carried: The first values of its variables.
            types: Types of the variables in the loop.
            ask: Emits what tells of variables whether to go on, a scalar of bool.
            turn: Emits the next variables; it may have bodies written.
        """
        source = self._source
        variables = self._variables(types)
        with self.block(f"{source}/condition", variables) as condition:
            self._builder.end_block(ask(variables), f"{source}_next")
        variables = self._variables(types)
        with self.block(f"{source}/body", variables) as body:
            following = yield from turn(variables)
            self._builder.end_block(following, f"{source}_next")
        blocks = [condition, body]
        return self._builder.add("while_loop", {"loop_vars": carried}, types, source, blocks)

    def _variables(self, types: Sequence[TensorType]) -> list[Value]:
        return [Value(self._builder.reserve(f"{self._source}_var"), type_) for type_ in types]

    def can_write(self, node: Call) -> bool:
        """Whether the target has an operator for a call."""
        return super().can_write(node) and self._builder.says(node)

    def computed_weight(self, root: Expr, values: Mapping[Expr, Value]) -> Value | None:
        """Return the weight that an expression of constants and weights alone is."""
        if not all(each.is_known for each in values.values()):
            return None
        sources = {
            variable: _as_typed(value.weight, value.type)
            for variable, value in values.items()
            if isinstance(variable, Var) and value.weight is not None
        }
        self._derived += 1
        return self._builder.weight(
            f"{self._source}_{self._derived}", ComputedWeight(root, sources)
        )


def _as_typed(weight: Weight, type_: TensorType) -> Weight:
    """Return a weight in the dtype of its value: a cast between dtypes held alike leaves it be."""
    if weight.dtype == type_.dtype:
        return weight
    held = Var("held", TensorType(weight.shape, weight.dtype))
    return ComputedWeight(relay.cast(held, type_.dtype), {held: weight})
