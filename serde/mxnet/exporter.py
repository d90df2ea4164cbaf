"""The walk over Relay into MXNet's graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any as AnyValue

import numpy as np

from serde.converters import ConverterTable
from serde.errors import ConverterBug, TypeInferenceError, Unsupported
from serde.mxnet.builder import GraphBuilder, Value
from serde.mxnet.model import COMPUTED, DIMS_KEY, DTYPES
from serde.relay.biases import fused_biases
from serde.relay.dims import Dim, SymDim
from serde.relay.expr import Call, Constant, Expr, Tuple, TupleGetItem
from serde.relay.model import RelayModel
from serde.relay.registry import OpDef
from serde.relay.types import TensorType, TupleType, Type
from serde.relay.visit import post_order, use_counts
from serde.report import Report
from serde.weights import Array, numpy_dtype

__all__ = ["ExportContext", "export_function"]

Values = dict[Expr, Value | tuple[Value, ...] | None]


class ExportContext:
    """What a converter to MXNet may reach.

    Attributes:
        result: Relay type of what the converter must return.
        np_shape: Whether MXNet runs the graph with NumPy's shapes. If not, what is a scalar in
            Relay has one axis of length 1 in MXNet.
    """

    def __init__(self, builder: GraphBuilder, np_shape: bool) -> None:
        self.result: Type = TensorType(())
        self.np_shape = np_shape
        self._builder = builder
        self._source = ""

    def enter(self, source: str, result: Type) -> None:
        """Turn to the node called `source`, whose Relay type is `result`."""
        self._source = source
        self.result = result

    def emit(self, op: str, *inputs: Value | None, **attrs: AnyValue) -> Value:
        """Append a node of which one output is used; an attribute that is None is left out."""
        return self._builder.add(op, inputs, 1, attrs, self._source)[0]

    def emit_tuple(
        self, op: str, *inputs: Value | None, outputs: int, **attrs: AnyValue
    ) -> tuple[Value, ...]:
        """Append a node with several outputs."""
        return self._builder.add(op, inputs, outputs, attrs, self._source)

    def const(self, value: AnyValue, dtype: AnyValue = None) -> Value:
        """Return a constant; it becomes a parameter where a node takes it as an input."""
        data = np.array(value, dtype=None if dtype is None else numpy_dtype(str(np.dtype(dtype))))
        return Value(-1, 0, TensorType(data.shape, data.dtype), data)

    def type(self, x: Value) -> TensorType:
        """Return the Relay type of a value.

        Raises:
            ConverterBug: The value is a converter's own and has none.
        """
        if x.type is None:
            raise ConverterBug(f"{self._source}: a value of its own has no Relay type")
        return x.type

    def result_type(self) -> TensorType:
        """Return the type of the one tensor that the converter must return."""
        if not isinstance(self.result, TensorType):
            raise ConverterBug(f"{self._source}: the result is {self.result!r}")
        return self.result

    def static_shape(self, x: Value) -> tuple[int, ...]:
        """Return the shape of a value whose dimensions are all integers.

        Raises:
            Unsupported: One is symbolic.
        """
        shape = self.type(x).concrete_shape
        if shape is None:
            raise Unsupported(f"needs a fixed shape, found {self.type(x)!r}")
        return shape

    def static_lengths(self, x: Value, axes: Iterable[int]) -> tuple[int, ...]:
        """Return the lengths of some axes of a value, the others being as they may.

        Raises:
            Unsupported: One is symbolic.
        """
        lengths = [self.type(x).shape[axis] for axis in axes]
        fixed = tuple(length for length in lengths if isinstance(length, int))
        if len(fixed) < len(lengths):
            raise Unsupported(f"needs fixed lengths of axes, found {self.type(x)!r}")
        return fixed

    def constant(self, x: Value) -> Array:
        """Return the value of a constant.

        Raises:
            Unsupported: It is computed when the model runs.
        """
        if x.data is None:
            raise Unsupported("needs a constant, found a value computed at run time")
        return x.data

    def scalar(self, x: Value) -> float | None:
        """Return the number that a constant of one element and rank 0 is, None for all else."""
        if x.data is None or x.data.ndim or x.data.dtype == np.bool_:
            return None
        return float(x.data)

    def is_weight(self, x: Value) -> bool:
        """Whether `x` is a parameter of the graph, or a constant, which becomes one."""
        return x.data is not None or self._builder.is_weight(x)

    def emit_bytes(self, op: str, *inputs: Value, **attrs: AnyValue) -> Value:
        """Append a node whose bool operands go as uint8: few of MXNet's operators take bool."""
        narrow = [self.cast(x, "uint8") if self.type(x).dtype == "bool" else x for x in inputs]
        result = self.emit(op, *narrow, **attrs)
        return (
            result
            if self.result_type().dtype != "bool"
            else self.emit("Cast", result, dtype="bool")
        )

    def cast(self, x: Value, dtype: str) -> Value:
        """Return `x` in another dtype of MXNet's."""
        type_ = TensorType(self.type(x).shape, dtype)
        if x.data is not None:
            return self.const(x.data.astype(numpy_dtype(dtype)))
        return replace(self.emit("Cast", x, dtype=dtype), type=type_)

    def reshape(self, x: Value, shape: Sequence[Dim]) -> Value:
        """Return `x` in another shape of the same size, with symbols where one can be inferred.

        Raises:
            Unsupported: More than one length is neither fixed nor that of the same axis.
        """
        if tuple(shape) == self.type(x).shape:
            return x
        type_ = TensorType(shape, self.type(x).dtype)
        fixed = tuple(dim for dim in shape if isinstance(dim, int))
        if x.data is not None and len(fixed) == len(shape):
            return self.const(x.data.reshape(fixed))
        if not shape and not self.np_shape:
            shape = (1,)
        if not shape or 0 in fixed:
            if len(fixed) < len(shape):
                raise Unsupported(f"a shape with open lengths and one of 0: {type_!r}")
            return replace(self.emit("_npx_reshape", x, newshape=fixed), type=type_)
        codes = _reshape_codes(self.type(x).shape, shape)
        return replace(self.emit("Reshape", x, shape=codes), type=type_)


def _reshape_codes(old: Sequence[Dim], new: Sequence[Dim]) -> tuple[int, ...]:
    """Return the codes of MXNet's Reshape: 0 keeps the axis of that place, -1 is inferred."""
    codes = [
        dim if isinstance(dim, int) else 0 if place < len(old) and old[place] == dim else -1
        for place, dim in enumerate(new)
    ]
    if codes.count(-1) > 1:
        raise Unsupported(f"a shape with several open lengths: {', '.join(map(str, new))}")
    return tuple(codes)


def export_function(
    model: RelayModel,
    table: ConverterTable,
    builder: GraphBuilder,
    report: Report,
    *,
    np_shape: bool,
) -> list[Value]:
    """Emit the nodes of ``main`` and return its outputs; gaps go into `report`.

    Names of inputs and weights are kept.
    """
    main = model.main
    values: Values = {}
    for param in main.params:
        type_ = param.type
        if not isinstance(type_, TensorType):
            raise ConverterBug(f"parameter {param.name_hint} is {type_!r}")
        weight = model.params.get(param.name_hint)
        if type_.dtype not in DTYPES:
            report.add("null", param.name_hint, f"MXNet has no {type_.dtype}")
        hidden = {} if weight is not None else _declaration(type_)
        values[param] = builder.variable(param.name_hint, type_, weight, hidden)
    context = ExportContext(builder, np_shape)
    biases = fused_biases(use_counts(main.body), dense_rank=None)
    skipped = {call for call, _bias in biases.values()}
    for node in post_order(main.body):
        if node in values or node in skipped or isinstance(node, OpDef):
            continue
        values[node] = _export_node(node, values, biases, table, context, report)
    result = values[main.body]
    if result is None or report.issues:
        return []
    return list(result) if isinstance(result, tuple) else [result]


def _declaration(type_: TensorType) -> dict[str, str]:
    """Return what is noted on an input: shape (0 or, with scalars, -1 is open) and dtype."""
    hidden = {"__dtype__": str(DTYPES.index(type_.dtype))} if type_.dtype in DTYPES else {}
    shape = type_.concrete_shape
    if shape is not None:
        return {"__shape__": str(shape), **hidden}
    return {
        DIMS_KEY: ",".join(map(_dim_text, type_.shape)),
        **hidden,
    }


def _dim_text(dim: Dim) -> str:
    if isinstance(dim, int):
        return str(dim)
    return (isinstance(dim, SymDim) and dim.name) or "?"


def _export_node(
    node: Expr,
    values: Values,
    biases: Mapping[Expr, tuple[Call, Expr]],
    table: ConverterTable,
    context: ExportContext,
    report: Report,
) -> Value | tuple[Value, ...] | None:
    """Return the values of one expression, or None where it could not be exported."""
    if isinstance(node, Constant):
        return context.const(node.data)
    if isinstance(node, Tuple):
        fields = [values[item] for item in node.fields]
        flat = tuple(item for item in fields if isinstance(item, Value))
        return flat if len(flat) == len(fields) else None
    if isinstance(node, TupleGetItem):
        source = values[node.tuple_value]
        return source[node.index] if isinstance(source, tuple) else None
    name = node.span.source_name if node.span is not None else ""
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        kind = type(node).__name__ if not isinstance(node, Call) else "call of a function"
        report.add(kind, name, "has no counterpart in an MXNet graph")
        return None
    call, extra = (node, ()) if node not in biases else (biases[node][0], (biases[node][1],))
    operands = [values[argument] for argument in (*call.args, *extra)]
    if not isinstance(call.op, OpDef) or node.type is None:
        raise ConverterBug(f"{name}: {node!r} is not typed")
    label = call.op.name
    try:
        _require_computed(node.type)
        converter, attrs = table.bind_export(call, 1)
        if any(operand is None for operand in operands):
            return None
        context.enter(name or label.rsplit(".", 1)[-1], node.type)
        result = converter.function(context, *_present(call.op, operands), **attrs)
    except (Unsupported, TypeInferenceError) as error:
        hint = error.hint if isinstance(error, Unsupported) else None
        report.add(label, name or label, str(error), hint)
        return None
    except ConverterBug:
        raise
    except Exception as error:
        raise ConverterBug(f"mxnet: {name} ({label}): {type(error).__name__}: {error}") from error
    return _typed(result, node.type)


def _present(
    definition: OpDef, operands: Sequence[Value | tuple[Value, ...] | None]
) -> list[Value | tuple[Value, ...] | None]:
    """Return the operands, those that a call leaves out as None."""
    optional = [operand.optional for operand in definition.operands]
    optional += [False] * (len(operands) - len(optional))
    pairs = zip(operands, optional, strict=True)
    return [None if may and operand == () else operand for operand, may in pairs]


def _require_computed(type_: Type) -> None:
    fields = type_.fields if isinstance(type_, TupleType) else (type_,)
    for each in fields:
        if isinstance(each, TensorType) and each.dtype not in COMPUTED:
            raise Unsupported(f"MXNet computes no {each.dtype}")


def _typed(result: Value | Sequence[Value], type_: Type) -> Value | tuple[Value, ...]:
    """Note the Relay types of a converter's results."""
    if isinstance(result, Value):
        if not isinstance(type_, TensorType):
            raise ConverterBug(f"expected {type_!r}, found one value")
        return replace(result, type=type_)
    if not isinstance(type_, TupleType) or len(type_.fields) < len(result):
        raise ConverterBug(f"{len(result)} results for {type_!r}")
    typed = (_typed(value, each) for value, each in zip(result, type_.fields, strict=False))
    return tuple(value for value in typed if isinstance(value, Value))
