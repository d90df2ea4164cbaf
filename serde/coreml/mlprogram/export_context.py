"""What a converter from Relay to an ML Program may reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.coreml.value import Argument, Builder, Held, Value
from serde.errors import ConverterBug, Unsupported
from serde.relay.ir.dims import Any, Dim, FloorDiv, SymDim, symbol
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.registry import OpDef
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import free_vars, post_order
from serde.relay.run.computed import ComputedWeight
from serde.relay.transform.fold_constant import FoldConstant
from serde.relay.transform.legalize import Legalize
from serde.walk.emission import EmittingContext, structural, with_types
from serde.walk.table import ConverterTable
from serde.weights import numpy_dtype

__all__ = ["ExportContext", "Values", "Written", "typed"]

Written = Value | tuple[Value, ...]
Values = dict[Expr, Written | None]


class ExportContext(EmittingContext[Value]):
    """What a converter to an ML Program may reach.

    Attributes:
        version: Version of iOS whose operators are written.
    """

    def __init__(
        self,
        builder: Builder,
        table: ConverterTable,
        write_body: Callable[[Function, Sequence[Value]], list[Value]],
    ) -> None:
        super().__init__()
        self.version = builder.version
        self._builder = builder
        self._table = table
        self._write_body = write_body
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

    def shape(self, dims: Sequence[Dim]) -> Value:
        """Return a vector of int32 that holds `dims`, computed when the model runs if symbolic.

        Raises:
            Unsupported: A dimension is anonymous, or nothing shows its symbol.
        """
        if all(isinstance(dim, int) for dim in dims):
            return self.const(np.array(dims, np.int32))
        if len(dims) == 1:
            return self.length(dims[0])
        parts = [self.length(dim) for dim in dims]
        vector = TensorType((len(dims),), "int32")
        return self._builder.lengths_of(
            dims, lambda: self.emit("concat", vector, values=parts, axis=0)
        )

    def length(self, dim: Dim) -> Value:
        """Return a vector of one int32 that holds `dim`.

        Raises:
            Unsupported: It is anonymous, or nothing shows its symbol.
        """
        if isinstance(dim, int):
            return self.const(np.array([dim], np.int32))
        if isinstance(dim, Any):
            raise Unsupported("needs a length that is not known before the model runs")
        symbolic = dim
        return self._builder.lengths_of([dim], lambda: self._computed(symbolic))

    def _computed(self, dim: SymDim) -> Value:
        single = TensorType((1,), "int32")
        if dim.name is not None:
            source = self._builder.source_of(dim.name)
            if source is None:
                raise Unsupported(f"needs the length {dim}, which nothing shows")
            value, axis = source
            whole = self.emit("shape", TensorType((value.type.rank,), "int32"), x=value)
            return self.emit("slice_by_size", single, x=whole, begin=[axis], size=[1])
        total: Value | None = None
        for monomial, coefficient in dim.terms:
            term: Value | None = None if coefficient == 1 and monomial else self.length(coefficient)
            for atom, power in monomial:
                factor = self._atom(atom)
                for _ in range(power):
                    term = factor if term is None else self.emit("mul", single, x=term, y=factor)
            if term is not None:
                total = term if total is None else self.emit("add", single, x=total, y=term)
        if total is None:
            raise ConverterBug(f"{self._source}: the dimension {dim} has no terms")
        return total

    def _atom(self, atom: str | FloorDiv) -> Value:
        if isinstance(atom, str):
            return self.length(symbol(atom))
        parts = self.length(atom.numerator), self.length(atom.denominator)
        return self.emit("floor_div", TensorType((1,), "int32"), x=parts[0], y=parts[1])

    def body(self, function: Function, args: Sequence[Value]) -> list[Value]:
        """Write a body, such as that of a loop, where operations are added now.

        Raises:
            Unsupported: Some of it cannot be written; the report tells what.
        """
        source, result = self._source, self.result
        found = self._write_body(function, args)
        self.enter(source, result)
        return found

    def loop(
        self,
        carried: Sequence[Value],
        types: Sequence[TensorType],
        ask: Callable[[Sequence[Value]], Sequence[Value]],
        turn: Callable[[Sequence[Value]], Sequence[Value]],
    ) -> tuple[Value, ...]:
        """Append a loop and return its last variables.

        Args:
            carried: The first values of its variables.
            types: Types of the variables in the loop.
            ask: Emits what tells of variables whether to go on, a scalar of bool.
            turn: Emits the next variables.
        """
        source, blocks = self._source, []
        for write in (ask, turn):
            inputs = [Value(self._builder.reserve(f"{source}_var"), type_) for type_ in types]

            def owned(
                write: Callable[[Sequence[Value]], Sequence[Value]] = write,
                inputs: Sequence[Value] = inputs,
            ) -> Sequence[Value]:
                return [self._builder.own(each, f"{source}_next") for each in write(inputs)]

            blocks.append(self._builder.inner_block(owned, inputs))
        return self._builder.add("while_loop", {"loop_vars": carried}, types, source, blocks)

    def spell(self, build: Callable[..., Expr], *operands: Value) -> Value:
        """Write the Relay expression that `build` makes of the operands.

        Of constants and weights alone it is one itself, evaluated when it is written.

        Raises:
            Unsupported: The target lacks an operator of it.
        """
        given = [
            Var(f"x{place}", x.type) if x.data is None else Constant(x.data)
            for place, x in enumerate(operands)
        ]
        values: Values = dict(zip(given, operands, strict=True))
        root = FoldConstant().fold(build(*given))
        if all(each.is_known for each in operands):
            return self._evaluated(root, dict(zip(given, operands, strict=True)))
        source, result = self._source, self.result
        root = self._legal(root)
        for node in post_order(root):
            if node in values or isinstance(node, OpDef):
                continue
            if isinstance(node, (Constant, Tuple, TupleGetItem)):
                values[node] = structural(node, values, self.const)
                continue
            values[node] = self._spelled(node, values, source)
        self.enter(source, result)
        found = values[root]
        if not isinstance(found, Value):
            raise ConverterBug(f"{source}: expected one tensor")
        return found

    def _legal(self, root: Expr) -> Expr:
        """Return an expression in operators that the target has."""

        def supported(node: Call) -> bool:
            return self._table.can_export(node, self.version) and self._builder.says(node)

        legal = Legalize(supported, self._table.expansion)
        return legal.transform(Function(free_vars(root), root)).body

    def _spelled(self, node: Expr, values: Values, source: str) -> Written:
        """Return the values of a call inside an expression that is spelled out."""
        if not isinstance(node, Call) or not isinstance(node.op, OpDef) or node.type is None:
            raise ConverterBug(f"{source}: {node!r} cannot be spelled")
        try:
            self.enter(source, node.type)
            operands = [values[each] for each in node.args]
            result = self._table.run_export(self, node, operands, self.version)
            return with_types(result, node.type, typed)
        except Unsupported as error:
            raise Unsupported(f"{node.op.name}: {error.reason}", hint=error.hint) from None

    def _evaluated(self, root: Expr, values: Mapping[Expr, Value]) -> Value:
        """Return the constant that an expression of constants and weights is."""
        if isinstance(root, Constant):
            return self.const(root.data)
        if root in values:
            return values[root]
        sources = {
            variable: value.weight
            for variable, value in values.items()
            if isinstance(variable, Var) and value.weight is not None
        }
        self._derived += 1
        return self._builder.weight(
            f"{self._source}_{self._derived}", ComputedWeight(root, sources)
        )


def typed(x: Value, type_: TensorType) -> Value:
    """Return a value with its Relay type."""
    return replace(x, type=type_)
