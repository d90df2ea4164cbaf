"""The walk over an ONNX model into Relay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from typing import Any as AnyValue

import onnx

from serde.assembly import Assembly, closed_over
from serde.converters import Hole, Incomplete
from serde.errors import FormatError, Unsupported
from serde.limits import MAX_EXPANDED_NODES, MAX_SUBGRAPH_DEPTH
from serde.onnx.attributes import attribute_value, resolved
from serde.onnx.context import ImportContext, element_dtype
from serde.onnx.expansion import check_expansion, function_key
from serde.onnx.interface import declare_inputs, graph_meta, opset_versions
from serde.onnx.model import OnnxModel
from serde.onnx.ops import TABLES
from serde.onnx.scopes import (
    FunctionKey,
    Scope,
    check_order,
    domain_name,
    needed_values,
    node_label,
)
from serde.onnx.sparse import SparseWeight
from serde.relay.collection import without_collection
from serde.relay.expr import Constant, Expr, Function, Span, Var
from serde.relay.model import RelayModel
from serde.relay.transform.fold_shape import MAX_VALUES
from serde.report import Report
from serde.weights import Weight

if TYPE_CHECKING:
    from serde.onnx.bridge import OnnxImportOptions

__all__ = ["to_relay"]


_OF_STRINGS = frozenset({"RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"})


@without_collection()
def to_relay(model: OnnxModel, options: OnnxImportOptions, report: Report) -> RelayModel:
    """Return the graph as Relay.

    Nodes that no output needs are checked for their names, and left out.

    Raises:
        FormatError: The graph is not sound.
        OptionError: An option names no input, or an input's shape is missing.
        UnsupportedModelError: Some nodes cannot be converted.
    """
    graph = model.proto.graph
    report.nodes = len(graph.node)
    walk = _Walk(model, report)
    scope = Scope(opset_versions(model.proto, options.source_opset))
    walk.add_initializers(graph, scope, main=True)
    inputs = declare_inputs(graph, scope, options, report)
    kinds = {each.name: each.type.WhichOneof("value") for each in graph.input}
    walk.optionals.update(x for x in inputs if kinds[x.name_hint] == "optional_type")
    outputs = walk.run(graph.node, [output.name for output in graph.output], scope, "the graph")
    report.raise_if_refused()
    meta = graph_meta(model.proto, [each.name_hint for each in inputs], scope.opsets)
    values = {name: value for name, value in scope.values.items() if value is not None}
    return walk.assembly.model(inputs, outputs, meta, values)


class _Walk:
    """State of one conversion.

    Attributes:
        model: What is walked.
        assembly: What has been made of it.
        optionals: The sequences that stand for optional tensors.
    """

    def __init__(self, model: OnnxModel, report: Report) -> None:
        self.model = model
        self._report = report
        graph = model.proto.graph
        inputs = {each.name for each in graph.input} - set(model.weights)
        self.assembly = Assembly(inputs - {each.name for each in graph.initializer})
        self._converted = 0
        self._functions: dict[FunctionKey, onnx.FunctionProto] = {}
        self.optionals: set[Expr] = set()
        for function in model.proto.functions:
            key = (domain_name(function.domain), function.name, function.overload)
            if key in self._functions:
                raise FormatError(f"function {function.name!r} is defined twice")
            self._functions[key] = function
        check_expansion(graph, self._functions)

    def add_initializers(self, graph: onnx.GraphProto, scope: Scope, *, main: bool = False) -> None:
        """Enter the initializers of a graph into its scope."""
        found: dict[str, Weight] = {}
        for tensor in graph.initializer:
            if tensor.data_type == onnx.TensorProto.STRING:
                self._refuse("initializer", f"{scope.prefix}{tensor.name}", tensor.data_type)
                _enter(scope, tensor.name, Hole())
                continue
            if tensor.name in found:
                raise FormatError(f"a second initializer is called {tensor.name!r}")
            found[tensor.name] = self.model.weight(tensor)
        if main:
            found |= {name: w for name, w in self.model.weights.items() if name not in found}
        for sparse in graph.sparse_initializer:
            if sparse.values.name in found:
                raise FormatError(f"a second initializer is called {sparse.values.name!r}")
            found[sparse.values.name] = self._dense(sparse, sparse.values.name)
        for name, weight in found.items():
            _enter(scope, name, self._value(weight, name))

    def _refuse(self, op: str, node: str, code: int) -> None:
        try:
            element_dtype(code)
        except Unsupported as error:
            self._report.add(op, node, error.reason, error.hint)

    def _value(self, weight: Weight, name: str) -> Expr:
        """Return a constant for a scalar or a shape, else a variable."""
        is_shape = len(weight.shape) == 1 and weight.dtype == "int64" and weight.size <= MAX_VALUES
        if not weight.shape or not weight.size or is_shape:
            return Constant(weight.array(), Span(name))
        return self.assembly.variable(weight, name)

    def _dense(self, sparse: onnx.SparseTensorProto, name: str) -> Weight:
        values, indices = (self.model.weight(part) for part in (sparse.values, sparse.indices))
        return SparseWeight(name, tuple(sparse.dims), values, indices)

    def run(
        self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], scope: Scope, what: str
    ) -> list[Expr]:
        """Convert the nodes that bear on `outputs` and return these."""
        if not outputs:
            raise FormatError(f"{what} has no outputs")
        check_order(nodes, scope)
        needed = needed_values(nodes, outputs)
        for node in nodes:
            if any(name and name in needed for name in node.output):
                self._node(node, scope, needed)
        results = []
        for name in outputs:
            value = scope.find(name) if name and scope.knows(name) else None
            if value is None:
                raise FormatError(f"{what}: output {name!r} is given by no node or input")
            results.append(value)
        return results

    def _node(self, node: onnx.NodeProto, scope: Scope, needed: set[str]) -> None:
        """Convert one node and enter its outputs into the scope."""
        self._converted += 1
        if self._converted > MAX_EXPANDED_NODES:
            raise FormatError(f"more than {MAX_EXPANDED_NODES} nodes once functions are expanded")
        label = node_label(node, scope.prefix)
        names = list(node.output)
        while names and names[-1] not in needed:
            names.pop()
        wanted = [bool(name) and name in needed for name in names]
        inputs = [scope.find(name) if name else None for name in node.input]
        while inputs and inputs[-1] is None:
            inputs.pop()
        try:
            attributes = resolved(node.attribute, scope.attributes)
            values = {name: attribute_value(each) for name, each in attributes.items()}
        except FormatError as error:
            raise FormatError(f"{label} ({node.op_type}): {error}") from None
        function = self._functions.get(function_key(node))
        if function is not None:
            results = self._call(function, inputs, attributes, scope, label, wanted)
        else:
            results = self._results(node, inputs, values, scope, label, wanted)
        missing = [i for i, want in enumerate(wanted) if want and i >= len(results)]
        if missing:
            self._report.add(node.op_type, label, f"output {missing[0]} is used but not converted")
            results = [*results, *(Hole() for _ in range(len(wanted) - len(results)))]
        for name, value in zip(names, results, strict=False):
            if name:
                scope.values[name] = value

    def _results(
        self,
        node: onnx.NodeProto,
        inputs: list[Expr | None],
        attributes: Mapping[str, AnyValue],
        scope: Scope,
        label: str,
        wanted: Sequence[bool],
    ) -> list[Expr]:
        """Return the outputs that the operator's converter gives."""
        domain = domain_name(node.domain)
        op = f"{domain}.{node.op_type}" if domain else node.op_type
        holes: list[Expr] = [Hole() for _ in wanted]
        table = TABLES.get(domain)
        if table is None:
            self._report.add(op, label, f"operators of the domain {domain!r} are not read")
            return holes
        if not domain and node.op_type in _OF_STRINGS:
            self._report.add(op, label, "a tensor of strings has no counterpart in Relay")
            return holes
        version = scope.opsets.get(domain)
        if version is None:
            self._report.add(op, label, "the model names no version of its operator set")
            return holes
        around = _Around(self, scope)
        ctx = ImportContext(version, label, wanted, around, declared=len(node.output))
        found = table.run_import(ctx, node.op_type, inputs, attributes, self._report)
        return [each if isinstance(each, Hole) else self.assembly.fold(each) for each in found]

    def _call(
        self,
        function: onnx.FunctionProto,
        inputs: Sequence[Expr | None],
        attributes: Mapping[str, onnx.AttributeProto],
        scope: Scope,
        label: str,
        wanted: Sequence[bool],
    ) -> list[Expr]:
        """Return the outputs of one of the model's own functions."""
        key = (domain_name(function.domain), function.name, function.overload)
        if key in scope.functions:
            raise FormatError(f"{label}: function {function.name!r} calls itself")
        if len(inputs) > len(function.input):
            raise FormatError(
                f"{label}: function {function.name!r} takes {len(function.input)} inputs, "
                f"found {len(inputs)}"
            )
        defaults = {each.name: each for each in function.attribute_proto}
        unknown = sorted(set(attributes) - set(function.attribute) - set(defaults))
        if unknown:
            raise FormatError(f"{label}: {function.name!r} has no attribute {unknown[0]!r}")
        if any(each.HasField("g") or each.graphs for each in attributes.values()):
            self._report.add(function.name, label, "a graph is given to a function")
            return [Hole() for _ in wanted]
        inner = Scope(
            opset_versions(function, None),
            prefix=f"{label}/",
            attributes={**defaults, **attributes},
            functions=(*scope.functions, key),
            depth=_deeper(scope, label),
        )
        given = [*inputs, *[None] * (len(function.input) - len(inputs))]
        for name, value in zip(function.input, given, strict=True):
            _enter(inner, name, value)
        names = [name for name, want in zip(function.output, wanted, strict=False) if want]
        results = self.run(function.node, names, inner, f"{label} ({function.name})")
        found = dict(zip(names, results, strict=True))
        return [found[name] if name in found else Hole() for name in function.output]

    def subgraph(self, graph: onnx.GraphProto, inner: Scope, args: Sequence[Expr]) -> list[Expr]:
        """Return the outputs of a graph inside a scope made for it."""
        what = inner.prefix.rstrip("/")
        if len(args) != len(graph.input):
            raise FormatError(f"{what}: expected {len(args)} inputs, found {len(graph.input)}")
        before = len(self._report.issues)
        self.add_initializers(graph, inner)
        for each, value in zip(graph.input, args, strict=True):
            _enter(inner, each.name, value)
        results = self.run(graph.node, [each.name for each in graph.output], inner, what)
        if len(self._report.issues) > before or any(isinstance(each, Hole) for each in results):
            raise Incomplete
        return results


class _Around:
    """What the converter of one node may reach of the walk."""

    def __init__(self, walk: _Walk, scope: Scope) -> None:
        self._walk = walk
        self._scope = scope
        self.assembly = walk.assembly

    def optionals(self) -> set[Expr]:
        return self._walk.optionals

    def tensor(self, tensor: onnx.TensorProto, name: str) -> Expr:
        element_dtype(tensor.data_type)
        return self.assembly.tensor(self._walk.model.weight(tensor), name, inline=MAX_VALUES)

    def sparse_tensor(self, tensor: onnx.SparseTensorProto, name: str) -> Expr:
        model = self._walk.model
        parts = (model.weight(part) for part in (tensor.values, tensor.indices))
        dense = SparseWeight(name, tuple(tensor.dims), *parts)
        return self.assembly.tensor(dense, name, inline=MAX_VALUES)

    def subgraph(self, graph: onnx.GraphProto, args: Sequence[Expr], label: str) -> list[Expr]:
        return self._walk.subgraph(graph, self._inner(label), args)

    def closure(
        self, graph: onnx.GraphProto, params: Sequence[Var], args: Sequence[Expr], label: str
    ) -> tuple[Function, list[Expr]]:
        inner = self._inner(label)
        captures = inner.captures = dict[Expr, Var]()
        results = self._walk.subgraph(graph, inner, args)
        return closed_over(params, captures, results)

    def _inner(self, label: str) -> Scope:
        scope = self._scope
        return Scope(
            scope.opsets,
            prefix=f"{label}/",
            parent=scope,
            attributes=scope.attributes,
            functions=scope.functions,
            depth=_deeper(scope, label),
        )


def _deeper(scope: Scope, label: str) -> int:
    if scope.depth >= MAX_SUBGRAPH_DEPTH:
        raise FormatError(f"{label}: more than {MAX_SUBGRAPH_DEPTH} subgraphs and functions deep")
    return scope.depth + 1


def _enter(scope: Scope, name: str, value: Expr | None) -> None:
    if not name:
        raise FormatError(f"{scope.prefix}: an input or initializer needs a name")
    if name in scope.values:
        raise FormatError(f"{scope.prefix}{name}: the name is given twice")
    scope.values[name] = value
