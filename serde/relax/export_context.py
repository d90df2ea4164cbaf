"""What a converter from Relay to Relax may reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any as AnyValue, Literal

import numpy as np

from serde.core.weights import Array, Weight, dtype_name, numpy_dtype
from serde.errors import ConverterBug, SerdeError, Unsupported
from serde.relax.dynamic import (
    ELEMENTWISE,
    REDUCTIONS,
    broadcast_lengths,
    make_fallback,
    make_spread,
    open_lengths,
)
from serde.relax.framework import Framework
from serde.relax.live import to_tensor
from serde.relax.symbols import Symbols
from serde.relax.values import Block, Names, Value, plain_name, require_tensor
from serde.relay.ir import Any, Dim, SequenceType, TensorType
from serde.walk import export_context as walk
from serde.walk.table import ConverterTable

__all__ = ["Block", "ExportContext", "Symbols", "Value"]


class ExportContext(walk.ExportContext[Value]):
    """What a converter from Relay to Relax may reach.

    Operands of :meth:`emit` and :meth:`emit_te` are values; attributes are Python's. A length is
    an integer or an expression of TIR (:meth:`dim`).

    Args:
        table: The converters.
        framework: TVM.

    Attributes:
        framework: Likewise.
        builder: The builder that holds the module.
        names: Names of parameters.
    """

    scope: Block
    symbols: Symbols

    def __init__(self, table: ConverterTable, framework: Framework) -> None:
        super().__init__(table, 1, Block())
        self.framework = framework
        self.symbols = Symbols(framework, of_model=True)
        self.builder = framework.relax.BlockBuilder()
        self.names = Names()

    # What converters call.

    def emit(self, op: str, *operands: AnyValue, **attributes: AnyValue) -> Value:
        """Write the call of an operator of Relax that gives one tensor.

        Args:
            op: Its builder, as in ``relax.op``: ``"nn.relu"``.
            operands: Its arguments: values, sequences of them, and what else the builder takes.
            attributes: Further arguments by name.

        Raises:
            Unsupported: TVM refuses the call.
        """
        made = self.bind(self.apply(op, *operands, **attributes))
        if op in ELEMENTWISE and self.framework.type_of(made.expr).shape is None:
            self.scope.bindings.pop()
            made = self.bind(self.apply(op, *self.spread(operands), **attributes))
        if op in REDUCTIONS:
            over = open_lengths(op, self.extents(operands[0]), attributes)
            fallback = make_fallback(self.framework, op)
            made = self.emit_te(fallback, made, *over) if over else made
        return made

    def emit_tuple(
        self, op: str, *operands: AnyValue, outputs: int, **attributes: AnyValue
    ) -> tuple[Value, ...]:
        """Write the call of an operator that gives a tuple; see :meth:`emit`."""
        return self.bind_tuple(self.apply(op, *operands, **attributes), outputs)

    def emit_te(
        self, function: Callable[..., AnyValue], *operands: AnyValue, **attributes: AnyValue
    ) -> Value:
        """Write a tensor that a function of tensor expressions computes.

        Args:
            function: Takes tensors of ``tvm.te``, such as those of ``tvm.topi`` do. Its name is
                that of the function in the module.
            operands: What it takes: values, sequences of them, and numbers.
            attributes: Further arguments by name.

        Raises:
            Unsupported: TVM refuses the computation.
        """
        return self.bind(self._te_call(function, operands, attributes))

    def emit_te_tuple(
        self,
        function: Callable[..., AnyValue],
        *operands: AnyValue,
        outputs: int,
        **attributes: AnyValue,
    ) -> tuple[Value, ...]:
        """Write several tensors that a function of tensor expressions computes."""
        return self.bind_tuple(self._te_call(function, operands, attributes), outputs)

    def spread(self, operands: Sequence[Value]) -> list[Value]:
        """Return operands that broadcast against each other, spread over their common shape."""
        shapes = [self.extents(each) for each in operands]
        wanted = self.wide(broadcast_lengths(self.framework, shapes))
        first, *others = operands
        function = make_spread(self.framework)
        spread = [self.emit_te(function, first, wanted)]
        if others:  # Lengths that are chosen from others would double from node to node.
            spread = [self._name_lengths(spread[0])]
            named = self.wide(self.extents(spread[0]))
            spread += [self.emit_te(function, each, named) for each in others]
        return spread

    def _name_lengths(self, x: Value) -> Value:
        """Return a value of which every length is an integer or a variable."""
        tir, found = self.framework.tir, self.framework.type_of(x.expr)
        lengths = [
            each if isinstance(each, (tir.IntImm, tir.Var)) else self.symbols.new_length()
            for each in found.shape.values
        ]
        wanted = self.framework.TensorType(lengths, found.dtype)
        return self._cast(x, wanted)

    def with_lengths(self, x: Value, lengths: Sequence[AnyValue]) -> Value:
        """Return a value whose lengths are those given, which is checked when the model runs.

        Nothing is written where that is known.
        """
        pairs = zip(self.extents(x), lengths, strict=True)
        if all(self.framework.are_equal(own, wanted) for own, wanted in pairs):
            return x
        dtype = self.framework.type_of(self.expr(x)).dtype
        return self._cast(x, self.framework.TensorType(self.wide(lengths), dtype))

    def _cast(self, x: Value, wanted: AnyValue) -> Value:
        """Bind a value to a variable of a type, which is checked when the model runs.

        What TVM knows of the shape is forgotten before: it takes both for equations, of which
        its passes may find no end.
        """
        relax = self.framework.relax
        expr = self.expr(x)
        known = self.framework.type_of(expr)
        open_ = self.framework.TensorType(None, wanted.dtype, ndim=len(wanted.shape.values))
        for type_ in [open_, wanted] if known.shape is not None else [wanted]:
            variable = relax.Var(plain_name(self._source or "lv"), type_)
            self.scope.bindings.append(relax.MatchCast(variable, expr, type_))
            expr = variable
        return Value(expr, x.type)

    def apply(self, op: str, *operands: AnyValue, **attributes: AnyValue) -> AnyValue:
        """Return the call of an operator, which is not bound to a variable yet."""
        builder: AnyValue = self.framework.relax.op
        for part in op.split("."):
            builder = getattr(builder, part)
        given = [self.argument(each) for each in operands]
        named = {name: self.argument(each) for name, each in attributes.items()}
        return self._checked(lambda: builder(*given, **named))

    def bind(self, expr: AnyValue, name: str = "") -> Value:
        """Bind an expression of one tensor to a variable.

        Args:
            expr: An expression of Relax whose arguments are variables and constants.
            name: What the variable is called, if not after the node that is converted.

        Raises:
            Unsupported: TVM refuses it.
        """
        framework = self.framework
        expr = self._checked(lambda: self.builder.normalize(expr))
        hint = plain_name(name or self._source or "lv")
        variable = framework.relax.Var(hint, framework.type_of(expr))
        self.scope.bindings.append(framework.relax.VarBinding(variable, expr))
        return Value(variable)

    def bind_tuple(self, expr: AnyValue, outputs: int) -> tuple[Value, ...]:
        """Bind an expression of a tuple, and its fields, to variables."""
        whole = self.bind(expr)
        item = self.framework.relax.TupleGetItem
        return tuple(self.bind(item(whole.expr, index)) for index in range(outputs))

    def argument(self, given: AnyValue) -> AnyValue:
        """Return what a builder of Relax takes for an argument of a converter."""
        if isinstance(given, Value):
            return self.expr(given)
        if isinstance(given, (list, tuple)):
            return [self.argument(each) for each in given]
        return given

    def expr(self, x: Value) -> AnyValue:
        """Return the expression that a value is."""
        if x.expr is not None:
            return x.expr
        if x.data is None:
            raise ConverterBug(f"{self.source}: a value that is neither written nor constant")
        if not x.data.size:  # TVM does not read them when it loads what it has compiled.
            shape = self.shape_expr(x.data.shape)
            return self.emit("zeros", shape, dtype_name(x.data.dtype)).expr
        return self.framework.relax.const(self.to_tensor(x.data), dtype_name(x.data.dtype))

    def to_tensor(self, data: Array) -> AnyValue:
        """Return an array as a tensor of TVM, copied.

        Raises:
            Unsupported: TVM has no such elements.
        """
        return self._checked(lambda: self.framework.tvm.runtime.tensor(np.asarray(data, order="C")))

    def share_weight(self, weight: Weight) -> AnyValue:
        """Return a weight as a tensor of TVM, in the only memory that it takes.

        Raises:
            Unsupported: TVM has no such elements.
        """
        return self._checked(lambda: to_tensor(self.framework, weight))

    def const(self, value: AnyValue, dtype: AnyValue = None) -> Value:
        """Return a constant."""
        data = np.asarray(value, None if dtype is None else numpy_dtype(str(np.dtype(dtype))))
        return Value(None, TensorType(data.shape, dtype_name(data.dtype)), data)

    # Shapes.

    def dim(self, dim: Dim) -> AnyValue:
        """Return a length for an argument: an integer, or an expression of TIR.

        Raises:
            Unsupported: It is anonymous, or no value has shown its symbol.
        """
        found = self.symbols.length(dim, self.scope)
        if found is None:
            raise Unsupported(f"nothing shows the length {dim} before it is needed")
        return found

    def dims(self, dims: Sequence[Dim]) -> list[AnyValue]:
        """Return lengths for an argument; see :meth:`dim`."""
        return [self.dim(each) for each in dims]

    def shape_expr(self, dims: Sequence[Dim]) -> AnyValue:
        """Return a shape of Relax; see :meth:`dim`."""
        return self.framework.relax.ShapeExpr(self.wide(self.dims(dims)))

    def wide(self, dims: Sequence[AnyValue]) -> list[AnyValue]:
        """Return lengths as numbers of 64 bits, which shapes of Relax have."""
        wide = self.framework.tir.IntImm
        return [wide("int64", each) if isinstance(each, int) else each for each in dims]

    def relax_type(self, type_: TensorType, *, define: bool = False) -> AnyValue:
        """Return a Relay type as one of Relax.

        Args:
            type_: The type.
            define: Whether what has the type shows symbols that nothing has shown before: a
                parameter, or the result of a cast.
        """
        if define:
            lengths = self.symbols.declare(type_.shape, self.scope)
            return self.framework.TensorType(self.wide(lengths), type_.dtype)
        found = [self.symbols.length(each, self.scope) for each in type_.shape]
        if any(each is None for each in found):
            return self.framework.TensorType(None, type_.dtype, ndim=type_.rank)
        return self.framework.TensorType(self.wide(found), type_.dtype)

    def typed(self, x: Value, type_: TensorType | SequenceType) -> Value:
        """Return a value with its Relay type, cast to it where TVM knows less of the shape.

        Raises:
            ConverterBug: It is of another type.
            Unsupported: It is a sequence, or has elements that TVM does not compute.
        """
        type_ = require_tensor(type_)
        if x.expr is None or x.type == type_:
            return replace(x, type=type_)
        found = self.framework.type_of(x.expr)
        self.symbols.read(self.scope, type_, found)
        if self._fits(found, type_):
            return replace(x, type=type_)
        return replace(self._cast(x, self.relax_type(type_, define=True)), type=type_)

    def _fits(self, found: AnyValue, type_: TensorType) -> bool:
        """Whether TVM knows of a result all that its Relay type says."""
        said = f"{self._source}: expected {type_!r}, found {found}"
        if str(found.dtype) != type_.dtype or found.ndim not in (type_.rank, -1):
            raise ConverterBug(said)
        if found.shape is None:
            return False
        known = True
        for own, dim in zip(found.shape.values, type_.shape, strict=True):
            length = getattr(own, "value", own)
            if isinstance(dim, int) and isinstance(length, int):
                if length != dim:
                    raise ConverterBug(said)
                continue
            wanted = self.symbols.length(dim, self.scope)
            if wanted is None:
                known = known and isinstance(dim, Any)
            elif isinstance(dim, int) or not self.framework.are_equal(own, wanted):
                known = False
        return known

    def extents(self, x: Value) -> list[AnyValue]:
        """Return the lengths of a value's axes, anonymous ones too, for arguments.

        They are integers, or expressions of TIR.

        Raises:
            ConverterBug: TVM does not know them; it does of every operand.
        """
        if x.expr is None and x.data is not None:
            return list(x.data.shape)
        found = self.framework.type_of(self.expr(x))
        if found.shape is None:
            raise ConverterBug(f"{self.source}: a value of its own has no shape")
        return [getattr(each, "value", each) for each in found.shape.values]

    def named_shape(self, x: Value) -> tuple[Dim, ...]:
        """Return the shape of a value, in which anonymous lengths have symbols, for arithmetic.

        What is computed of it can be given to :meth:`dims`.
        """
        shape = self.type(x).shape
        if not any(isinstance(each, Any) for each in shape):
            return shape
        pairs = zip(shape, self.extents(x), strict=True)
        return tuple(
            self.symbols.name_length(own, self.scope) if isinstance(dim, Any) else dim
            for dim, own in pairs
        )

    def read_shape(self, x: Value) -> list[AnyValue]:
        """Return what a vector of integers holds, for arguments that are lengths.

        Args:
            x: The vector, whose own length is fixed.

        Returns:
            Integers where it is a constant, else variables of TIR that it gives when the model
            runs.
        """
        if x.data is not None:
            return [int(each) for each in x.data]
        relax = self.framework.relax
        wide = x if self._dtype(x) == "int64" else self.emit("astype", x, "int64")
        (count,) = self.extents(x)
        variables = [self.symbols.new_length() for _ in range(count)]
        if not variables:
            return []
        whole = self.bind(relax.op.tensor_to_shape(self.expr(wide)))
        type_ = self.framework.ShapeType(variables)
        shape = relax.Var(plain_name(self._source or "shape"), type_)
        self.scope.bindings.append(relax.MatchCast(shape, whole.expr, type_))
        return variables

    def _dtype(self, x: Value) -> str:
        return str(self.framework.type_of(self.expr(x)).dtype)

    # Lengths as tensors.

    def shape(self, dims: Sequence[Dim]) -> Value:
        """Return a vector of int64 that holds `dims`."""
        if all(isinstance(dim, int) for dim in dims):
            return self.lengths([dim for dim in dims if isinstance(dim, int)])
        made = self.emit("shape_to_tensor", self.shape_expr(dims))
        return replace(made, type=TensorType((len(dims),), "int64"))

    def length(self, dim: Dim) -> Value:
        """Return a vector of one int64 that holds `dim`."""
        return self.shape([dim])

    def lengths(self, values: Sequence[int]) -> Value:
        """Return a constant vector of lengths."""
        return self.const(np.asarray(values, np.int64))

    def axis_length(self, x: Value, axis: int) -> Value:
        """Return a vector of one int64 that holds the length of an axis."""
        return self.shape([self.type(x).shape[axis]])

    def join_lengths(self, parts: Sequence[Value]) -> Value:
        """Write the concatenation of vectors of one integer."""
        return self.emit("concat", parts, axis=0)

    def combine_lengths(
        self, operator: Literal["mul", "add", "floor_div"], one: Value, other: Value
    ) -> Value:
        """Write the product, the sum or the quotient of two lengths, which are not negative."""
        names = {"mul": "multiply", "add": "add", "floor_div": "floor_divide"}
        return self.emit(names[operator], one, other)

    def symbols_inside(self, parent: walk.SymbolTable[Value] | None) -> Symbols:
        """Return a new table of symbols, in which those of `parent` are seen."""
        if parent is not None and not isinstance(parent, Symbols):
            raise ConverterBug(f"{self.source}: the symbols of another format")
        return Symbols(self.framework, parent)

    # Functions.

    def sequence(self, scope: Block, results: Sequence[Value]) -> AnyValue:
        """Return what is bound in a scope as an expression: one result, or a tuple of several."""
        relax = self.framework.relax
        exprs = [self.expr(each) for each in results]
        body = exprs[0] if len(exprs) == 1 else relax.Tuple(exprs)
        return relax.SeqExpr([relax.BindingBlock(scope.bindings)], body)

    def function(
        self,
        params: Sequence[AnyValue],
        scope: Block,
        results: Sequence[Value],
        attributes: Mapping[str, AnyValue],
    ) -> AnyValue:
        """Return a function of Relax whose nodes are written.

        Args:
            params: Its variables.
            scope: What is bound in it.
            results: What it gives.
            attributes: Its attributes.
        """
        body = self._checked(lambda: self.builder.normalize(self.sequence(scope, results)))
        made = self.framework.relax.Function(params, body)
        for name, value in attributes.items():
            made = made.with_attr(name, value)
        return self._checked(lambda: self.builder.normalize(made))

    def _te_call(
        self,
        function: Callable[..., AnyValue],
        operands: Sequence[AnyValue],
        attributes: Mapping[str, AnyValue],
    ) -> AnyValue:
        given = [self.argument(each) for each in operands]
        named = {name: self.argument(each) for name, each in attributes.items()}
        call = self.framework.call_te
        return self._checked(lambda: call(self.builder, function, given, named))

    def _checked(self, build: Callable[[], AnyValue]) -> AnyValue:
        """Return what TVM builds."""
        try:
            return build()
        except (SerdeError, OSError, MemoryError):
            raise
        except Exception as error:
            if not self.framework.has_raised(error):
                raise  # The function that computes a tensor has failed by itself.
            told = self.framework.last_line(error)
            raise Unsupported(f"TVM refuses it: {told}") from error
