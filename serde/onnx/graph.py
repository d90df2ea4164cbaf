"""The walk over Relay into an ONNX graph."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any as AnyValue

import numpy as np
import onnx
from onnx import helper, numpy_helper

from serde.converters import ConverterTable
from serde.errors import ConverterBug, TypeInferenceError, Unsupported
from serde.onnx.versions import CHANGES, Change
from serde.relay.dims import Any, Dim, FloorDiv, SymDim, symbol
from serde.relay.expr import Call, Constant, Expr, Tuple, TupleGetItem
from serde.relay.model import RelayModel
from serde.relay.registry import OpDef
from serde.relay.types import TensorType, TupleType, Type
from serde.relay.visit import post_order, use_counts
from serde.report import Report
from serde.weights import Array, Weight, numpy_dtype

__all__ = ["ExportContext", "GraphBuilder", "Value", "export_function", "tensor_type_proto"]

BIASED = {
    "nn.conv1d": "data_layout",
    "nn.conv2d": "data_layout",
    "nn.conv3d": "data_layout",
    "nn.conv1d_transpose": "data_layout",
    "nn.conv2d_transpose": "data_layout",
    "nn.conv3d_transpose": "data_layout",
    "nn.dense": None,
}
"""Operators whose ONNX form adds a bias, with the attribute that tells the channel axis."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the ONNX graph.

    Attributes:
        name: Its name there.
        type: Its Relay type, where it stands for a Relay expression.
        data: Its value, where it is a constant of the graph.
    """

    name: str
    type: TensorType | None = None
    data: Array | None = field(default=None, compare=False)


def tensor_type_proto(name: str, type_: TensorType) -> onnx.ValueInfoProto:
    """Return the declaration of a tensor; a symbolic dimension keeps its name."""
    dims = [
        dim if isinstance(dim, int) else None if isinstance(dim, Any) else str(dim)
        for dim in type_.shape
    ]
    element = helper.np_dtype_to_tensor_dtype(numpy_dtype(type_.dtype))
    return helper.make_tensor_value_info(name, element, dims)


class GraphBuilder:
    """Collects the nodes of one graph, under names that occur once.

    Args:
        version: Version of the operator set that is written.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self.weights: dict[str, Weight] = {}
        self.value_types: dict[str, TensorType] = {}
        self._names: set[str] = set()
        self._next: Counter[str] = Counter()
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Value] = {}

    def reserve(self, name: str) -> str:
        """Take and return `name`, or the first of ``name_1``, ``name_2``... that is free."""
        unique = name
        while unique in self._names:
            self._next[name] += 1
            unique = f"{name}_{self._next[name]}"
        self._names.add(unique)
        return unique

    def is_free(self, name: str) -> bool:
        """Whether nothing is called `name`."""
        return name not in self._names

    def constant(self, data: Array, name: str = "const") -> Value:
        """Return a constant of the graph; equal ones are one."""
        key = (data.dtype.str + data.dtype.name, data.shape, data.tobytes())
        if key not in self._constants:
            value = Value(self.reserve(name), TensorType(data.shape, data.dtype), data)
            self.initializers[value.name] = numpy_helper.from_array(
                np.ascontiguousarray(data).reshape(data.shape), value.name
            )
            self._constants[key] = value
        return self._constants[key]

    def add(
        self,
        op: str,
        inputs: Sequence[Value | None],
        outputs: int,
        attrs: Mapping[str, AnyValue],
        source: str,
    ) -> tuple[Value, ...]:
        """Append a node and return its outputs.

        Raises:
            Unsupported: The operator does not exist in the version that is written.
            ConverterBug: The node does not have the form of that version.
        """
        _check_form(op, len(inputs), outputs, attrs, self.version)
        name = self.reserve(source or op)
        plain = f"{name}_output"
        names = [self.reserve(plain if outputs == 1 else f"{plain}{i}") for i in range(outputs)]
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        given = {key: value for key, value in attrs.items() if value is not None}
        node = helper.make_node(
            op, ["" if x is None else x.name for x in inputs], names, name=name, **given
        )
        self.nodes.append(node)
        return tuple(Value(each) for each in names)


def _check_form(
    op: str, inputs: int, outputs: int, attrs: Mapping[str, AnyValue], version: int
) -> None:
    """Compare a node with the form of the operator that is in force."""
    changes = CHANGES.get(op)
    if changes is None:
        raise ConverterBug(f"{op} is no operator of ONNX")
    known = sorted(changes)
    index = bisect_right(known, version)
    if index == 0 or changes[known[index - 1]] is Change.REMOVED:
        raise Unsupported(f"ONNX has {op} from version {known[0]} on, the target is {version}")
    schema = onnx.defs.get_schema(op, known[index - 1], "")
    unknown = sorted(
        name for name, value in attrs.items() if value is not None and name not in schema.attributes
    )
    if unknown:
        raise ConverterBug(f"{op}-{known[index - 1]} has no attribute {unknown[0]}")
    if not schema.min_input <= inputs <= schema.max_input:
        raise ConverterBug(f"{op}-{known[index - 1]} does not take {inputs} inputs")
    if not schema.min_output <= outputs <= schema.max_output:
        raise ConverterBug(f"{op}-{known[index - 1]} does not give {outputs} outputs")


class ExportContext:
    """What a converter to ONNX may reach.

    Attributes:
        version: Version of the operator set that is written.
        result: Relay type of what the converter must return.
    """

    def __init__(
        self,
        builder: GraphBuilder,
        symbols: Mapping[str, tuple[Value, int]],
        used_once: frozenset[str],
    ) -> None:
        self.version = builder.version
        self.result: Type = TensorType(())
        self._builder = builder
        self._symbols = symbols
        self._used_once = used_once
        self._source = ""
        self._lengths: dict[str, Value] = {}

    def enter(self, source: str, result: Type) -> None:
        """Turn to the node called `source`, whose Relay type is `result`."""
        self._source = source
        self.result = result

    def emit(self, op: str, *inputs: Value | None, **attrs: AnyValue) -> Value:
        """Append a node with one output; an attribute that is None is left out."""
        return self._builder.add(op, inputs, 1, attrs, self._source)[0]

    def emit_tuple(
        self, op: str, *inputs: Value | None, outputs: int, **attrs: AnyValue
    ) -> tuple[Value, ...]:
        """Append a node with several outputs."""
        return self._builder.add(op, inputs, outputs, attrs, self._source)

    def reserve(self, name: str) -> str:
        """Take and return a name of the graph, for the names inside a body of it."""
        return self._builder.reserve(name)

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
        """Return the Relay type of a value.

        Raises:
            ConverterBug: The value is a converter's own and has none.
        """
        if x.type is None:
            raise ConverterBug(f"{self._source}: {x.name} has no Relay type")
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
        key = str(dim)
        if key not in self._lengths:
            self._lengths[key] = self._symbolic_length(dim)
        return self._lengths[key]

    def _symbolic_length(self, dim: SymDim) -> Value:
        if dim.name is not None:
            if dim.name not in self._symbols:
                raise Unsupported(f"no input shows the dimension {dim.name}")
            value, axis = self._symbols[dim.name]
            shape = self.emit("Shape", value)
            return self.emit("Gather", shape, self.ints([axis]), axis=0)
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


def export_function(
    model: RelayModel, table: ConverterTable, builder: GraphBuilder, report: Report
) -> list[Value]:
    """Emit the nodes of ``main`` and return its outputs; gaps go into `report`.

    Names of inputs and weights are kept. A name of `model`'s outputs that none
    of these has is reserved for the output.
    """
    main = model.main
    values: dict[Expr, Value | tuple[Value, ...] | None] = {}
    symbols: dict[str, tuple[Value, int]] = {}
    for param in main.params:
        if not isinstance(param.type, TensorType):
            raise ConverterBug(f"parameter {param.name_hint} is {param.type!r}")
        value = Value(builder.reserve(param.name_hint), param.type)
        values[param] = value
        if param.name_hint in model.params:
            builder.weights[value.name] = model.params[param.name_hint]
        for axis, dim in enumerate(param.type.shape):
            if isinstance(dim, SymDim) and dim.name is not None:
                symbols.setdefault(dim.name, (value, axis))
    names = [_output_name(name, builder) for name in model.meta.outputs]
    uses = use_counts(main.body)
    used_once = frozenset(p.name_hint for p in main.params if uses.get(p) == 1)
    context = ExportContext(builder, symbols, used_once)
    biases = _fused_biases(uses)
    skipped = {call for call, _bias in biases.values()}
    for node in post_order(main.body):
        if node in values or node in skipped or isinstance(node, OpDef):
            continue
        values[node] = _export_node(node, values, biases, table, context, builder, report)
    result = values[main.body]
    if result is None or report.issues:
        return []
    outputs = result if isinstance(result, tuple) else (result,)
    return _named_outputs(outputs, names, builder)


def _output_name(name: str, builder: GraphBuilder) -> str:
    free = name if builder.is_free(name) else f"{name}_output"
    return builder.reserve(free)


def _named_outputs(
    outputs: Sequence[Value], names: Sequence[str], builder: GraphBuilder
) -> list[Value]:
    """Give the outputs their names: a node's result by renaming it, anything else by Identity."""
    produced = {name for node in builder.nodes for name in node.output}
    renamed: dict[str, str] = {}
    result = []
    for value, name in zip(outputs, names, strict=True):
        if value.name in produced and value.name not in renamed:
            renamed[value.name] = name
        else:
            source = replace(value, name=renamed.get(value.name, value.name))
            node = helper.make_node("Identity", [source.name], [name], name=builder.reserve(name))
            builder.nodes.append(node)
        result.append(replace(value, name=name))
    for node in builder.nodes:
        for names_of in (node.input, node.output):
            for place, each in enumerate(names_of):
                if each in renamed:
                    names_of[place] = renamed[each]
    return result


def _fused_biases(uses: Mapping[Expr, int]) -> dict[Expr, tuple[Call, Expr]]:
    """Return the additions of a bias that their only producer's ONNX form includes."""
    found: dict[Expr, tuple[Call, Expr]] = {}
    for node in uses:
        if not isinstance(node, Call) or not isinstance(node.op, OpDef):
            continue
        if node.op.name != "nn.bias_add":
            continue
        producer = node.args[0]
        if not isinstance(producer, Call) or not isinstance(producer.op, OpDef):
            continue
        if producer.op.name not in BIASED or uses[producer] != 1:
            continue
        layout = BIASED[producer.op.name]
        type_ = producer.type
        if not isinstance(type_, TensorType) or (layout is None and type_.rank != 2):
            continue
        channel = producer.attrs[layout].index("C") if layout else 1
        if node.attrs["axis"] % type_.rank == channel:
            found[node] = (producer, node.args[1])
    return found


def _export_node(
    node: Expr,
    values: Mapping[Expr, Value | tuple[Value, ...] | None],
    biases: Mapping[Expr, tuple[Call, Expr]],
    table: ConverterTable,
    context: ExportContext,
    builder: GraphBuilder,
    report: Report,
) -> Value | tuple[Value, ...] | None:
    """Return the values of one expression, or None where it could not be exported."""
    if isinstance(node, Constant):
        return builder.constant(node.data)
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
        report.add(kind, name, "has no counterpart in an ONNX graph")
        return None
    call, extra = (node, ()) if node not in biases else (biases[node][0], (biases[node][1],))
    operands = [values[argument] for argument in (*call.args, *extra)]
    if not isinstance(call.op, OpDef) or node.type is None:
        raise ConverterBug(f"{name}: {node!r} is not typed")
    label = call.op.name
    try:
        converter, attrs = table.bind_export(call, context.version)
        if any(operand is None for operand in operands):
            return None
        absent = [
            None if operand == () and declared.optional else operand
            for operand, declared in zip(
                operands, (*call.op.operands, *call.op.operands[: len(extra)]), strict=True
            )
        ]
        context.enter(name or label.rsplit(".", 1)[-1], node.type)
        result = converter.function(context, *absent, **attrs)
    except (Unsupported, TypeInferenceError) as error:
        hint = error.hint if isinstance(error, Unsupported) else None
        report.add(label, name or label, str(error), hint)
        return None
    except ConverterBug:
        raise
    except Exception as error:
        raise ConverterBug(
            f"onnx: {name} ({label}, opset {context.version}): {type(error).__name__}: {error}"
        ) from error
    return _typed(result, node.type, builder)


def _typed(
    result: Value | Sequence[Value], type_: Type, builder: GraphBuilder
) -> Value | tuple[Value, ...]:
    """Note the Relay types of a converter's results."""
    if isinstance(result, Value):
        if not isinstance(type_, TensorType):
            raise ConverterBug(f"{result.name}: expected {type_!r}")
        builder.value_types.setdefault(result.name, type_)
        return replace(result, type=type_)
    if not isinstance(type_, TupleType) or len(type_.fields) < len(result):
        raise ConverterBug(f"{len(result)} results for {type_!r}")
    typed = []
    for value, each in zip(result, type_.fields, strict=False):
        typed.append(_typed(value, each, builder))
    return tuple(value for value in typed if isinstance(value, Value))
