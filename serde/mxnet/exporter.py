"""The walk over Relay into MXNet's graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any as AnyValue
from typing import Final

import numpy as np

from serde.converters import ConverterTable
from serde.errors import ConverterBug, TypeInferenceError, Unsupported
from serde.mxnet.builder import GraphBuilder, Value
from serde.mxnet.model import COMPUTED, DIMS_KEY, DTYPES, Graph
from serde.mxnet.scopes import Scope, place
from serde.relay.biases import fused_biases
from serde.relay.dims import Dim, SymDim
from serde.relay.expr import Call, Constant, Expr, Function, If, Tuple, TupleGetItem, Var, astuple
from serde.relay.model import RelayModel
from serde.relay.registry import OpDef
from serde.relay.transform.fold_constant import FoldConstant
from serde.relay.transform.legalize import decompose
from serde.relay.types import TensorType, TupleType, Type
from serde.relay.visit import post_order, use_counts
from serde.report import Report
from serde.weights import Array, numpy_dtype

__all__ = ["ExportContext", "export_function"]

Values = dict[Expr, Value | tuple[Value, ...] | None]

MAX_LEVEL: Final = 30
"""Subgraphs inside each other: MXNet reads their JSON text recursively."""


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A graph inside a node.

    Attributes:
        graph: The graph.
        captured: What it takes from around it, by the name of its variable.
    """

    graph: Graph
    captured: Mapping[str, Value]

    @property
    def variables(self) -> list[str]:
        """Names of its variables in MXNet's order."""
        return [node.name for node in self.graph.variables]


class ExportContext:
    """What a converter to MXNet may reach.

    Attributes:
        result: Relay type of what the converter must return.
        np_shape: Whether MXNet runs the graph with NumPy's shapes. If not, what is a scalar in
            Relay has one axis of length 1 in MXNet.
    """

    def __init__(
        self,
        builder: GraphBuilder,
        np_shape: bool,
        table: ConverterTable,
        report: Report,
        level: int = 0,
    ) -> None:
        self.result: Type = TensorType(())
        self.np_shape = np_shape
        self.level = level
        self._report = report
        self._builder = builder
        self._table = table
        self._source = ""

    @property
    def source(self) -> str:
        """Name of the node that is converted."""
        return self._source

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

    def result_types(self) -> tuple[TensorType, ...]:
        """Return the types of the tensors that the converter must return."""
        fields = self.result.fields if isinstance(self.result, TupleType) else (self.result,)
        return tuple(field for field in fields if isinstance(field, TensorType))

    def typed(self, x: Value, type_: TensorType) -> Value:
        """Return a value of the converter's own with its Relay type."""
        return replace(x, type=type_)

    def emit_with_bodies(
        self,
        op: str,
        inputs: Sequence[Value],
        bodies: Sequence[Subgraph],
        outputs: int,
        **attrs: AnyValue,
    ) -> tuple[Value, ...]:
        """Append a node with subgraphs."""
        graphs = tuple(body.graph for body in bodies)
        return self._builder.add(op, inputs, outputs, attrs, self._source, graphs)

    def subgraph(
        self,
        names: Sequence[str],
        types: Sequence[TensorType],
        write: Callable[[ExportContext, Sequence[Value]], Sequence[Value]],
        count: int,
    ) -> Subgraph:
        """Return a graph of its own of variables called `names`.

        Args:
            names: What its variables are called.
            types: Relay types of the variables.
            write: Emits the nodes, given the context inside and the variables, and returns what
                the graph yields.
            count: How much it yields.

        Raises:
            Unsupported: There are too many inside each other.
        """
        if self.level >= MAX_LEVEL:
            raise Unsupported(f"more than {MAX_LEVEL} loops and conditionals inside each other")
        heads = [f"out{place}" for place in range(count)]
        inner = GraphBuilder(self._table, heads, np_shape=self.np_shape, outer=self._builder)
        own = [
            inner.variable(name, type_, None, {}) for name, type_ in zip(names, types, strict=True)
        ]
        context = ExportContext(inner, self.np_shape, self._table, self._report, self.level + 1)
        context.enter("", self.result)
        graph = inner.finish([*write(context, own)])
        return Subgraph(graph, dict(inner.captured))

    def captured(self, x: Value) -> Value:
        """Return the variable that stands for a value of the graph around this one."""
        return self._builder.capture(x)

    def write_body(
        self, body: Function, params: Sequence[Value | tuple[Value, ...]]
    ) -> tuple[Value, ...]:
        """Write a body of a loop here and return what it yields.

        Raises:
            Unsupported: MXNet cannot say some of it; the report tells what.
        """
        values: Values = dict(zip(body.params, params, strict=True))
        found = _export_scope(place(body.body), body.body, values, self._table, self, self._report)
        if found is None:
            raise Unsupported("its body cannot be written")
        return found if isinstance(found, tuple) else (found,)

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
        """Return the number that a constant of rank 0 is, None for all else.

        An integer that is no float64 is left to be a tensor.
        """
        if x.data is None or x.data.ndim or x.data.dtype == np.bool_:
            return None
        number = float(x.data)
        return number if x.data.dtype.kind == "f" or int(number) == int(x.data) else None

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

    def spell(self, build: Callable[..., Expr], *operands: Value) -> Value:
        """Write the Relay expression that `build` makes of the operands.

        Raises:
            Unsupported: MXNet lacks an operator of it.
        """
        result = self.spell_tuple(build, *operands)
        if not isinstance(result, Value):
            raise ConverterBug(f"{self._source}: expected one tensor, found {len(result)}")
        return result

    def spell_tuple(
        self, build: Callable[..., Expr], *operands: Value
    ) -> Value | tuple[Value, ...]:
        """Write an expression of one tensor or several; see :meth:`spell`."""
        given = [
            Var(f"x{place}", self.type(x)) if x.data is None else Constant(x.data)
            for place, x in enumerate(operands)
        ]
        free = [each for each in given if isinstance(each, Var)]
        function = FoldConstant().transform(Function(free, astuple(build(*given))))
        values: Values = {
            param: x
            for param, x in zip(
                function.params, (x for x in operands if x.data is None), strict=True
            )
        }
        source, result = self._source, self.result
        written = self._written(function.body, values)
        self.enter(source, result)
        return written

    def _written(self, body: Expr, values: Values) -> Value | tuple[Value, ...]:
        """Write `body`, whose leaves have `values`."""
        source = self._source
        for node in post_order(body):
            if node in values or isinstance(node, OpDef):
                continue
            done = _structural(node, values, self)
            if done is None:
                done = self._called(node, values, source)
            values[node] = done
        found = values[body]
        if found is None:
            raise ConverterBug(f"{source}: {body!r} has no value")
        return found

    def _called(self, node: Expr, values: Values, source: str) -> Value | tuple[Value, ...]:
        if not isinstance(node, Call) or not isinstance(node.op, OpDef) or node.type is None:
            raise ConverterBug(f"{source}: {node!r} is no call of an operator")
        if node.op.decompose is not None and not self._table.can_export(node, 1):
            return self._written(decompose(node), values)
        _require_computed(node.type)
        converter, attrs = self._table.bind_export(node, 1)
        operands = _present(node.op, [values[argument] for argument in node.args])
        self.enter(source, node.type)
        return _typed(converter.function(self, *operands, **attrs), node.type)

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
        if type_.dtype not in COMPUTED:
            report.add("null", param.name_hint, f"MXNet computes no {type_.dtype}")
        hidden = {} if weight is not None else _declaration(type_)
        values[param] = builder.variable(param.name_hint, type_, weight, hidden)
    context = ExportContext(builder, np_shape, table, report)
    result = _export_scope(place(main.body), main.body, values, table, context, report)
    if result is None or report.issues:
        return []
    return list(result) if isinstance(result, tuple) else [result]


class _Captures(Values):
    """Values inside a subgraph; what is missing is taken from around it."""

    def __init__(self, outer: Values, context: ExportContext) -> None:
        super().__init__()
        self._outer = outer
        self._context = context

    def __missing__(self, node: Expr) -> Value | tuple[Value, ...] | None:
        found = self._outer[node]
        if isinstance(found, Value):
            found = self._context.captured(found)
        elif found is not None:
            found = tuple(self._context.captured(each) for each in found)
        self[node] = found
        return found


def _export_scope(
    scope: Scope,
    root: Expr,
    values: Values,
    table: ConverterTable,
    context: ExportContext,
    report: Report,
) -> Value | tuple[Value, ...] | None:
    """Export what lies in a scope and return the values of `root`."""
    biases = fused_biases(use_counts(root), dense_rank=None) if scope.parent is None else {}
    skipped = {call for call, _bias in biases.values()}
    for node in scope.nodes:
        if node in values or node in skipped or isinstance(node, OpDef):
            continue
        if isinstance(node, If):
            values[node] = _export_if(node, scope.branches[node], values, table, context, report)
        else:
            values[node] = _export_node(node, values, biases, table, context, report)
    return values[root]


def _export_if(
    node: If,
    branches: tuple[Scope, Scope],
    values: Values,
    table: ConverterTable,
    context: ExportContext,
    report: Report,
) -> Value | tuple[Value, ...] | None:
    """Return what a conditional gives: each branch becomes a subgraph."""
    condition = values[node.cond]
    name = node.span.source_name if node.span is not None else ""
    if not isinstance(condition, Value) or node.type is None:
        return None
    try:
        _require_computed(node.type)
        context.enter(name or "cond", node.type)
        kinds = context.result_types()
        if context.np_shape:
            return _chosen(node, branches, condition, values, table, context, report)
        number = context.cast(condition, "float32")
        decides = context.subgraph(["condition"], [context.type(number)], _same, 1)
        bodies = [decides]
        for scope, root in zip(branches, (node.true_branch, node.false_branch), strict=True):

            def write(
                inner: ExportContext, _: Sequence[Value], scope: Scope = scope, root: Expr = root
            ) -> Sequence[Value]:
                found = _export_scope(scope, root, _Captures(values, inner), table, inner, report)
                if found is None:
                    raise Unsupported("a branch cannot be written")
                return found if isinstance(found, tuple) else (found,)

            bodies.append(context.subgraph([], [], write, len(kinds)))
        results = emit_cond(context, number, bodies, len(kinds))
    except (Unsupported, TypeInferenceError) as error:
        report.add("If", name or "If", str(error), getattr(error, "hint", None))
        return None
    return _typed(results if isinstance(node.type, TupleType) else results[0], node.type)


def _chosen(
    node: If,
    branches: tuple[Scope, Scope],
    condition: Value,
    values: Values,
    table: ConverterTable,
    context: ExportContext,
    report: Report,
) -> Value | tuple[Value, ...] | None:
    """Compute both branches and choose: MXNet runs no ``_cond`` with NumPy's shapes."""
    source, kinds = context.source, context.result_types()
    pair = []
    for scope, root in zip(branches, (node.true_branch, node.false_branch), strict=True):
        found = _export_scope(scope, root, values, table, context, report)
        if found is None:
            return None
        pair.append(found if isinstance(found, tuple) else (found,))
    if node.type is None:
        raise ConverterBug(f"{source}: {node!r} is not typed")
    context.enter(source, node.type)
    results = tuple(
        replace(context.emit("_npi_where", condition, one, two), type=kind)
        for one, two, kind in zip(*pair, kinds, strict=True)
    )
    return results if isinstance(node.type, TupleType) else results[0]


def _same(_: ExportContext, variables: Sequence[Value]) -> Sequence[Value]:
    return variables


def emit_cond(
    ctx: ExportContext, condition: Value, bodies: Sequence[Subgraph], outputs: int
) -> tuple[Value, ...]:
    """Emit a conditional; each subgraph says where among the inputs its variables are."""
    inputs = [condition]
    locations = []
    for body in bodies:
        own = []
        for name in body.variables:
            value = body.captured.get(name, condition)
            if value not in inputs:
                inputs.append(value)
            own.append(inputs.index(value))
        locations.append(own)
    return ctx.emit_with_bodies(
        "_cond",
        inputs,
        bodies,
        outputs,
        num_args=len(inputs) + 3,
        num_outputs=outputs,
        cond_input_locs=str(locations[0]),
        then_input_locs=str(locations[1]),
        else_input_locs=str(locations[2]),
    )


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


def _structural(
    node: Expr, values: Values, context: ExportContext
) -> Value | tuple[Value, ...] | None:
    """Return the values of a constant, a tuple or one of its fields, where there are any."""
    if isinstance(node, Constant):
        return context.const(node.data)
    if isinstance(node, Tuple):
        fields = [values[item] for item in node.fields]
        flat = tuple(item for item in fields if isinstance(item, Value))
        return flat if len(flat) == len(fields) else None
    if isinstance(node, TupleGetItem):
        source = values[node.tuple_value]
        return source[node.index] if isinstance(source, tuple) else None
    return None


def _export_node(
    node: Expr,
    values: Values,
    biases: Mapping[Expr, tuple[Call, Expr]],
    table: ConverterTable,
    context: ExportContext,
    report: Report,
) -> Value | tuple[Value, ...] | None:
    """Return the values of one expression, or None where it could not be exported."""
    if isinstance(node, (Constant, Tuple, TupleGetItem)):
        return _structural(node, values, context)
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
