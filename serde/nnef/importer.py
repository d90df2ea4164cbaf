"""The walk over a graph of NNEF into Relay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any as AnyValue, Final

import numpy as np

import serde.relay as relay
from serde.core import Report, dtype_name, numpy_dtype, pause_garbage_collection
from serde.errors import TypeInferenceError, Unsupported, raise_if_refused
from serde.nnef.foreign import foreign_node
from serde.nnef.fragments import FRAGMENTS, QUANTIZERS
from serde.nnef.import_context import ImportContext, literal
from serde.nnef.model import NnefModel, Operation, Ref
from serde.nnef.ops import TABLE
from serde.nnef.options import NnefImportOptions
from serde.nnef.quantization import stored_values
from serde.relay.ir import DimLike, Expr, ModelMeta, RelayModel, Span, TensorType, Var, is_float
from serde.walk import Hole, Scope, importer
from serde.walk.assembly import Assembly
from serde.walk.fallback import ImportFallback
from serde.walk.importer import Graph, Node
from serde.walk.inputs import check_rank
from serde.walk.metadata import metadata_facts
from serde.walk.user_converters import check_custom_results

__all__ = ["input_dtype", "scalar_dtype", "to_relay"]

Names = Scope[str, Expr]

INTEGER: Final = "int32"
"""The dtype of integers that no variable stores."""

_DECLARATIONS: Final = frozenset(("external", "variable"))
_TYPED: Final = frozenset(("cast", "constant"))
"""Fragments whose type of elements tells what they compute."""

_KEYWORDS: Final = {"lambda": "lambda_"}
"""Parameters that Python has as words of its own."""


@pause_garbage_collection()
def to_relay(model: NnefModel, options: NnefImportOptions, report: Report) -> RelayModel:
    """Return the graph as Relay.

    Inputs and outputs have the identifiers of the graph, weights the labels of the variables. A
    variable that ``update`` assigns to is a state: an input behind the others, by its identifier,
    whose later value is an output behind the others, by the identifier of the result. A fact
    ``<input>.state`` names that output, and a note in the report where the first value is.

    Raises:
        OptionError: An option names no input.
        UnsupportedModelError: Some operations cannot be converted.
    """
    walk = _Walk(model, options, report)
    scope = Names(source=None if model.path is None else str(model.path))
    report.nodes = sum(each.op not in _DECLARATIONS for each in model.operations)
    graph = walk.read(model, scope)
    entries = [_Input(name, operation) for name, operation in walk.entries().items()]
    given = options.input_shapes, options.input_dtypes
    inputs = walk.inputs(
        entries, scope, *given, weights=walk.weight_names(), fixed=options.fix_inputs
    )
    outputs = walk.run(graph, scope)
    raise_if_refused(report)
    walk.fallback.note_unused(report)
    meta = ModelMeta(
        inputs=tuple(each.name_hint for each in inputs),
        outputs=tuple(map(str, graph.outputs)),
        source_format="nnef",
        source_version="1.0",
        extra={
            "name": model.name,
            **{f"{key}.state": to for key, to in walk.states.items()},
            **metadata_facts(model.metadata.items(), report),
        },
    )
    walk.note_states()
    return walk.assembly.model(inputs, outputs, meta, scope.expressions())


class _Input:
    """An input as the graph declares it."""

    def __init__(self, name: str, operation: Operation) -> None:
        self.name = name
        self.operation = operation


class _Walk(importer.ImportWalk[NnefModel, Operation, Names]):
    """State of one conversion.

    Attributes:
        states: What ``update`` gives for the variables that it assigns to.
    """

    def __init__(self, model: NnefModel, options: NnefImportOptions, report: Report) -> None:
        fallback = ImportFallback.of("nnef", options)
        super().__init__(report, Assembly([*model.inputs, *model.outputs]), fallback)
        self._model = model
        self._custom = options.custom_convert_map
        self._scalar = scalar_dtype(model, options)
        self.states = model.states()

    def entries(self) -> Mapping[str, Operation]:
        """Return the declarations of what becomes an input: externals in order, then states."""
        externals, variables = self._model.externals(), self._model.variables()
        found = {name: externals[name] for name in self._model.inputs}
        return {**found, **{name: variables[name] for name in self.states}}

    def weight_names(self) -> list[str]:
        """Return the identifiers of variables that are no states."""
        return [name for name in self._model.variables() if name not in self.states]

    def declare(
        self, entry: _Input, shape: Sequence[DimLike] | None, dtype: str | None, scope: Names
    ) -> Var:
        """Return the variable for an input, and define its name."""
        declared = entry.operation.attributes["shape"]
        if shape is not None:
            check_rank(entry.name, shape, declared)
        type_ = TensorType(
            declared if shape is None else shape,
            dtype or input_dtype(self._model, entry.operation, self._scalar),
        )
        variable = Var(entry.name, type_, Span(entry.name))
        scope.define(entry.name, self._quantized(entry.name, variable, scope))
        return variable

    def note_states(self) -> None:
        """Tell in the report which inputs are states, and where their first values are."""
        variables = self._model.variables()
        for name, to in self.states.items():
            label = variables[name].attributes["label"]
            self.report.notes.append(
                f"{name} is a state: an input, at first the data of variable {label!r}, and {to} "
                "its later value"
            )

    def _dtype(self, element: str | None) -> str:
        return _element_dtype(element, self._scalar)

    def read(self, graph: NnefModel, scope: Names) -> Graph[Operation]:
        """Return the graph as the walk sees it, and define its variables."""
        for name, operation in graph.variables().items():
            if name not in self.states:
                label = operation.attributes["label"]
                variable = self.assembly.variable(graph.weights[label], label)
                scope.define(name, self._variable(graph, name, label, variable, scope))
        outputs = [*graph.outputs, *self.states.values()]
        return Graph(list(graph.inputs), self._nodes(graph), list(dict.fromkeys(outputs)))

    def _variable(
        self, graph: NnefModel, name: str, label: str, variable: Expr, scope: Names
    ) -> Expr:
        """Return the values of a variable: of codes what they stand for, else quantised ones."""
        if label not in graph.stored_quantized:
            if is_float(graph.weights[label].dtype) and graph.weights[label].dtype != self._scalar:
                variable = relay.cast(variable, self._scalar)
            return self._quantized(name, variable, scope)
        try:
            return stored_values(graph.quantization.get(name), variable, self._scalar)
        except Unsupported as error:
            self.report.add("variable", name, error.reason, error.hint)
            return Hole()

    def _nodes(self, graph: NnefModel) -> Iterator[Node[Operation]]:
        for each in graph.operations:
            if each.op not in _DECLARATIONS:
                names = each.results()
                yield Node(each.op, names[0] if names else each.op, names, each)

    def convert(self, node: Node[Operation], scope: Names, label: str) -> Sequence[Expr]:
        """Return what one operation gives."""
        operation = node.source
        literals: list[Expr] = []
        try:
            operands = [self._operand(each, scope, literals) for each in operation.operands()]
        except Unsupported as error:
            self.report.add(operation.op, label, error.reason, error.hint)
            return [Hole() for _ in node.outputs]
        context = ImportContext(label, len(node.outputs), self._scalar, set(literals), self, scope)
        if operation.op in self._custom:
            attributes = dict(operation.attributes)
            return self._call_custom(operation.op, label, operands, attributes, len(node.outputs))
        own = self.fallback.has(operation.op)
        if operation.op not in FRAGMENTS and self.fallback.keep and not own:
            tensors = ((each.name, scope.find(each.name)) for each in operation.refs())
            values = {name: value for name, value in tensors if value is not None}
            return self._keep(context, operation, values, node.outputs)
        if operation.op not in FRAGMENTS and not own:
            self.report.add(operation.op, label, "a fragment without a body", _hint(operation.op))
            return [Hole() for _ in node.outputs]
        attributes = {
            _KEYWORDS.get(name, name): value for name, value in operation.attributes.items()
        }
        if operation.op in _TYPED:
            attributes["dtype"] = self._dtype(operation.dtype)
        found = self.call(TABLE, context, operation.op, operands, attributes)
        if len(found) != len(node.outputs):
            reason = f"{len(found)} results for {len(node.outputs)} names"
            self.report.add(operation.op, label, reason)
            return [Hole() for _ in node.outputs]
        return found

    def _keep(
        self,
        context: ImportContext,
        operation: Operation,
        values: Mapping[str, Expr],
        outputs: Sequence[AnyValue],
    ) -> Sequence[Expr]:
        """Return the results of a fragment without a body that is kept as it is."""
        try:
            node, inputs = foreign_node(operation, values)
        except Unsupported as error:
            self.report.add(operation.op, context.node, error.reason, error.hint)
            return [Hole() for _ in outputs]
        return self.keep(context, lambda: node, inputs, list(map(str, outputs)))

    def _call_custom(
        self,
        op: str,
        label: str,
        operands: Sequence[Expr],
        attributes: dict[str, AnyValue],
        count: int,
    ) -> Sequence[Expr]:
        """Return what a user's own converter makes of an operation."""
        holes = [Hole() for _ in range(count)]
        if any(isinstance(each, Hole) for each in operands):
            return holes
        try:
            found = self._custom[op](list(operands), attributes)
        except TypeInferenceError as error:
            self.report.add(op, label, str(error))
            return holes
        except Unsupported as error:
            self.report.add(op, label, error.reason, error.hint)
            return holes
        return [self.assembly.fold(each) for each in check_custom_results(op, found, count)]

    def _operand(self, given: AnyValue, scope: Names, literals: list[Expr]) -> Expr:
        """Return a tensor by its name, or a constant for a literal."""
        if isinstance(given, Ref):
            found = scope.find(given.name)
            if found is None:
                raise scope.fault(f"nothing is called {given.name!r}")
            return found
        kind = np.asarray(given).dtype.kind
        dtype = {"b": "bool", "i": INTEGER}.get(kind, self._scalar)
        literals.append(literal(given, dtype))
        return literals[-1]

    def bind(self, node: Node[Operation], name: AnyValue, value: AnyValue, scope: Names) -> None:
        """Give a value its name; where graph.quant says so, it is quantised."""
        super().bind(node, name, self._quantized(name, value, scope), scope)

    def _quantized(self, name: str, value: Expr, scope: Names) -> Expr:
        """Return a tensor with the values that graph.quant lets it have."""
        entry = self._model.quantization.get(name)
        if entry is None or isinstance(value, Hole):
            return value
        attributes = dict(entry.attributes)
        if entry.op in self._custom:
            return self._call_custom(entry.op, name, [value], attributes, 1)[0]
        if entry.op not in QUANTIZERS:
            what = "graph.quant: no quantiser of the standard"
            self.report.add(entry.op, name, what, _hint(entry.op))
            return Hole()
        signature = FRAGMENTS[entry.op]
        operands: list[Expr] = [value]
        literals: list[Expr] = []
        try:
            for each in signature.inputs[1:]:
                operands.append(self._operand(attributes.pop(each.name), scope, literals))
        except Unsupported as error:
            self.report.add(entry.op, name, error.reason, error.hint)
            return Hole()
        context = ImportContext(name, 1, self._scalar, set(literals), self, scope)
        return self.call(TABLE, context, entry.op, operands, attributes)[0]


def _hint(op: str) -> str:
    told = f"converters={{{op!r}: function}} or custom_convert_map={{{op!r}: function}}"
    return f"say what it is: {told}; keep_unknown keeps it"


def input_dtype(model: NnefModel, operation: Operation, scalar: str) -> str:
    """Return the dtype of an input; integers of a state are as wide as they are stored."""
    label = operation.attributes.get("label")
    if operation.dtype != "integer" or label is None or label in model.stored_quantized:
        return _element_dtype(operation.dtype, scalar)
    return model.weights[label].dtype


def _element_dtype(element: str | None, scalar: str) -> str:
    """Return the dtype of elements of a type, where that of scalars is told."""
    return {"integer": INTEGER, "logical": "bool"}.get(element or "", scalar)


def scalar_dtype(model: NnefModel, options: NnefImportOptions) -> str:
    """Return the widest floating dtype of the variables, which holds what the others do.

    Where there are none, the dtype that is asked for all inputs of scalars counts.
    """
    found = {each.dtype for each in model.weights.values() if is_float(each.dtype)}
    if found:
        return dtype_name(np.result_type(*map(numpy_dtype, found)))
    given = options.input_dtypes
    names = [name for name, each in model.externals().items() if each.dtype == "scalar"]
    asked = {given.get(name, given.get("", "float32")) for name in names}
    floats = set(filter(is_float, asked))
    return floats.pop() if len(floats) == 1 else "float32"
