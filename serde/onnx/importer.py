"""The walk over an ONNX model into Relay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import onnx

from serde.core import Report, Weight, budget, dataclass, pause_garbage_collection, replace
from serde.errors import FormatError, Unsupported, raise_if_refused
from serde.onnx.attributes import attribute_value, resolve_references
from serde.onnx.elements import element_dtype
from serde.onnx.expansion import check_expansion, function_key
from serde.onnx.import_context import Facts, ImportContext
from serde.onnx.interface import declared_shape, graph_meta, input_dtype, opset_versions
from serde.onnx.model import OnnxModel
from serde.onnx.ops import TABLES
from serde.onnx.schemas import fault_of_node
from serde.onnx.scopes import (
    FunctionKey,
    Scope,
    domain_name,
    needed_values,
    node_name,
    read_names,
    sort_nodes,
)
from serde.onnx.undecided import INPUT_SHAPES_HINT, MAX_SUPPOSED, Undecided, join
from serde.relay.ir import Dim, DimLike, Foreign, RelayModel, SequenceType, SymDim, TensorType, get
from serde.relay.ir.expr import Call, Constant, Expr, Span, Var
from serde.relay.transform.fold_shape import MAX_VALUES
from serde.walk.assembly import Assembly
from serde.walk.fallback import KEEP_HINT, ImportFallback, with_lengths
from serde.walk.holes import Hole
from serde.walk.importer import Graph, ImportWalk, Node
from serde.walk.inputs import check_rank
from serde.walk.table import ConverterTable
from serde.walk.tracing import note_node

if TYPE_CHECKING:
    from serde.onnx.options import OnnxImportOptions

__all__ = ["to_relay"]


_OF_STRINGS = frozenset({"RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"})


@pause_garbage_collection()
def to_relay(model: OnnxModel, options: OnnxImportOptions, report: Report) -> RelayModel:
    """Return the graph as Relay.

    Nodes that no output needs are checked for their names, and left out. Where a decision about
    branches that differ in rank tells the length of a dimension of the inputs, the graph is read
    again with it.

    Raises:
        FormatError: The graph is not sound.
        OptionError: An option names no input, or an input's shape is missing.
        UnsupportedModelError: Some nodes cannot be converted.
    """
    graph = model.proto.graph
    report.nodes = len(graph.node)
    walk = _Walk(model, report, ImportFallback.of("onnx", options))
    walk.facts.narrowed = bool(options.input_shapes)
    scope = Scope(
        opsets=opset_versions(model.proto, options.source_opset), decisions=walk.decisions
    )
    main = walk.read(graph, scope)
    weights = () if options.keep_initializers_as_inputs else scope.values
    shapes, dtypes = options.input_shapes, options.input_dtypes
    inputs = walk.inputs(
        graph.input, scope, shapes, dtypes, weights=weights, fixed=options.fix_inputs
    )
    walk.settle_types(inputs)
    outputs = walk.settled(walk.run(main, scope), graph.output)
    lengths = walk.lengths_decided()
    if lengths:
        report.issues.clear()
        report.fallbacks.clear()
        known = {
            each.name_hint: _with_lengths(each, lengths)
            for each in inputs
            if each not in walk.facts.optionals
        }
        return to_relay(model, replace(options, input_shapes={**shapes, **known}), report)
    raise_if_refused(report)
    walk.fallback.note_unused(report)
    meta = graph_meta(model.proto, [each.name_hint for each in inputs], scope.opsets, report)
    return walk.assembly.model(inputs, outputs, meta, scope.expressions())


@dataclass(slots=True)
class _Step:
    """A node, its inputs, and which of its outputs bear on those of its graph."""

    node: onnx.NodeProto
    inputs: Sequence[str]
    wanted: Sequence[bool]


_SUPPOSED_NODES: Final = 8
"""What reading a node takes while something is supposed: ONNX's own inference reads it, too."""


class _Walk(ImportWalk[onnx.GraphProto, _Step, Scope]):
    """State of one conversion.

    Attributes:
        facts: What is known of the model.
        decisions: What is known of conditions whose branches differ in rank.
    """

    def __init__(self, model: OnnxModel, report: Report, fallback: ImportFallback) -> None:
        graph = model.proto.graph
        inputs = {each.name for each in graph.input} - set(model.weights)
        assembly = Assembly(inputs - {each.name for each in graph.initializer})
        super().__init__(report, assembly, fallback)
        self._declared: dict[str, TensorType] = {}
        self._lengths: dict[str, Dim] = {}
        self.facts = Facts(model)
        self.decisions = self.facts.decisions
        self._functions: dict[FunctionKey, onnx.FunctionProto] = {}
        self._wrong: set[Expr] = set()
        self._wrong_graphs: dict[str, bool] = {}
        for function in model.proto.functions:
            key = (domain_name(function.domain), function.name, function.overload)
            if key in self._functions:
                raise FormatError(f"function {function.name!r} is defined twice")
            self._functions[key] = function
        check_expansion(graph, self._functions)

    def declare(
        self,
        entry: onnx.ValueInfoProto,
        shape: Sequence[DimLike] | None,
        dtype: str | None,
        scope: Scope,
    ) -> Var | None:
        """Return the variable for an input; one that has an initializer loses its value.

        An optional tensor whose shape the caller gives is there; others are sequences of it.
        """
        declared, there = declared_shape(entry.type), shape is not None
        if shape is None:
            shape = declared
        elif declared is not None:
            check_rank(entry.name, shape, declared)
        dtype = dtype or input_dtype(entry.type)
        if shape is None:
            return None
        tensor = TensorType(shape, dtype)
        kind = entry.type.WhichOneof("value")
        if kind == "optional_type" and there:
            kind = "tensor_type"
            self.report.notes.append(f"input {entry.name} is optional, and read as there")
        type_ = tensor if kind == "tensor_type" else SequenceType(tensor)
        variable = Var(entry.name, type_, Span(entry.name))
        scope.values[entry.name] = variable
        if kind == "optional_type":
            self.facts.optionals.add(variable)
        return variable

    def read(self, graph: onnx.GraphProto, scope: Scope) -> Graph[_Step]:
        """Return a graph as the walk sees it, its initializers being defined."""
        self._define_initializers(graph, scope)
        if self.fallback.keep:
            from serde.onnx.foreign import declared_types

            self._declared.update(declared_types([*graph.value_info, *graph.output]))
        inputs, outputs = ([each.name for each in ends] for ends in (graph.input, graph.output))
        return self._graph(inputs, graph.node, outputs, scope)

    def settle_types(self, inputs: Sequence[Var]) -> None:
        """Note what the names of dimensions that inputs declare stand for."""
        if not self.fallback.keep:
            return
        from serde.onnx.foreign import declared_types

        declared = dict(declared_types(self.facts.model.proto.graph.input))
        for each in inputs:
            known = declared.get(each.name_hint)
            if known is not None and isinstance(each.type, TensorType):
                for dim, length in zip(known.shape, each.type.shape, strict=True):
                    if isinstance(dim, SymDim) and dim.name:
                        self._lengths[dim.name] = length
                self._lengths.update(
                    (dim.name, dim)
                    for dim in each.type.shape
                    if isinstance(dim, SymDim) and dim.name
                )

    def _graph(
        self,
        inputs: Sequence[str],
        nodes: Sequence[onnx.NodeProto],
        outputs: Sequence[str],
        scope: Scope,
    ) -> Graph[_Step]:
        if not outputs:
            raise scope.fault("a graph without outputs")
        return Graph(inputs, self._nodes(nodes, outputs, scope), outputs)

    def _nodes(
        self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], scope: Scope
    ) -> Iterator[Node[_Step]]:
        """Yield the nodes that bear on `outputs`, each with those of its outputs that do."""
        left = sort_nodes(nodes, scope)
        needed = needed_values(left, outputs)
        left.reverse()
        while left:  # Each is forgotten once it is read.
            each = left.pop()
            node, names = each.node, each.outputs
            while names and names[-1] not in needed:
                names.pop()
            if names:
                step = _Step(node, each.inputs, [name in needed for name in names])
                yield Node(node.op_type, node_name(node), names, step)

    def _define_initializers(self, graph: onnx.GraphProto, scope: Scope) -> None:
        found: dict[str, Weight] = {}
        for tensor in graph.initializer:
            if tensor.data_type == onnx.TensorProto.STRING:
                self._refuse("initializer", f"{scope.prefix}{tensor.name}", tensor.data_type)
                scope.define(tensor.name, Hole())
                continue
            if tensor.name in found:
                raise FormatError(f"a second initializer is called {tensor.name!r}")
            found[tensor.name] = self.facts.model.weight(tensor)
        if scope.parent is None:
            found |= {name: w for name, w in self.facts.model.weights.items() if name not in found}
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            if name in found:
                raise FormatError(f"a second initializer is called {name!r}")
            found[name] = self.facts.model.sparse_weight(sparse, name)
        for name, weight in found.items():
            scope.define(name, self._value(weight, name))

    def _refuse(self, op: str, node: str, code: int) -> None:
        try:
            element_dtype(code)
        except Unsupported as error:
            self.report.add(op, node, error.reason, error.hint)

    def _value(self, weight: Weight, name: str) -> Expr:
        """Return a constant for a scalar or a shape, else a variable."""
        is_shape = len(weight.shape) == 1 and weight.dtype == "int64" and weight.size <= MAX_VALUES
        if not weight.shape or not weight.size or is_shape:
            return Constant(weight.array(), Span(name))
        return self.assembly.variable(weight, name)

    def convert(self, node: Node[_Step], scope: Scope, label: str) -> Sequence[Expr | None]:
        """Return the outputs of a node."""
        return self._read_node(node.source, scope, label)

    def _read_node(self, step: _Step, scope: Scope, label: str) -> list[Expr]:
        """Return the outputs of a node, read for both values of a condition that it hangs on."""
        condition = self._open_condition(step.node, scope) if self.decisions.any else None
        if condition is None:
            return self._outputs(step, scope, label)
        node, wanted = step.node, step.wanted
        if self.decisions.trying == MAX_SUPPOSED:
            reason = f"hangs on more than {MAX_SUPPOSED} conditions whose branches differ in rank"
            self.report.add(node.op_type, label, reason, INPUT_SHAPES_HINT)
            return [Hole() for _ in wanted]
        cases = []
        for side in (False, True):
            budget().draw(
                "nodes", _SUPPOSED_NODES, f"{label}: reading it for both branches of an if"
            )
            with self.decisions.supposing(condition, side), self._held_back():
                cases.append(self._read_node(step, scope, label))
        no, yes = (any(each in self._wrong for each in case) for case in cases)
        if yes != no:
            self.decisions.decide(condition, no, f"{label} ({node.op_type}) is not sound")
            return cases[no]
        if yes:
            return cases[True]
        pairs = zip(*cases, strict=False)
        return [self.decisions.undecided(condition, yes, no, label) for no, yes in pairs]

    def _open_condition(self, node: onnx.NodeProto, scope: Scope) -> Expr | None:
        """Return a condition that decides what a node reads, in its subgraphs too."""
        values = (scope.find(name) for name in read_names(node) if name and scope.knows(name))
        return next((each.condition for each in values if isinstance(each, Undecided)), None)

    @contextmanager
    def _held_back(self) -> Iterator[None]:
        """Let gaps only count where what is supposed turns out to hold."""
        report, self.report = self.report, Report()
        try:
            yield
        finally:
            self.decisions.hold_back(self.report.issues)
            self.report = report

    def settled(
        self, values: Sequence[Expr], declared: Sequence[onnx.ValueInfoProto]
    ) -> list[Expr]:
        """Return the outputs of the graph; ranks that it declares decide, others are joined."""
        for value, each in zip(values, declared, strict=True):
            shape = declared_shape(each.type)
            if shape is not None:
                fits = partial(_may_have_rank, rank=len(shape))
                why = f"output {each.name} has not the {len(shape)} axes that it declares"
                self.decisions.settle(value, fits, why)
        self.report.issues += self.decisions.gaps()
        self.report.notes += self.decisions.notes
        resolved = [self.decisions.resolve_fully(value) for value in values]
        if self.report.issues:
            return resolved
        try:
            return join(resolved)
        except Unsupported as error:
            open_ = (each for each in resolved if isinstance(each, Undecided))
            where = next((each.span.source_name for each in open_ if each.span is not None), "")
            self.report.add("If", where, error.reason, error.hint)
            return resolved

    def lengths_decided(self) -> dict[str, int]:
        """Return the lengths of named dimensions that the decisions leave no choice of."""
        found: dict[str, int] = {}
        for condition, side in self.decisions.known.items():
            node = condition
            while isinstance(node, Call) and node.op is get("reshape"):
                node = node.args[0]
            if not side or not isinstance(node, Call) or node.op is not get("equal"):
                continue
            pair = [self.assembly.dims(each) for each in node.args]
            flat = [dims[0] for dims in pair if dims is not None and len(dims) == 1]
            names = [dim.name for dim in flat if isinstance(dim, SymDim) and dim.name is not None]
            numbers = [dim for dim in flat if isinstance(dim, int)]
            if names and numbers:
                found[names[0]] = numbers[0]
        return found

    def _outputs(self, step: _Step, scope: Scope, label: str) -> list[Expr]:
        """Return the outputs of a node whose inputs are decided."""
        node, wanted = step.node, step.wanted
        inputs = [scope.find(name) if name else None for name in step.inputs]
        while inputs and inputs[-1] is None:
            inputs.pop()
        try:
            attributes = resolve_references(node.attribute, scope.attributes)
        except FormatError as error:
            raise FormatError(f"{label} ({node.op_type}): {error}") from None
        function = self._functions.get(function_key(node)) if self._functions else None
        if function is not None and not self.fallback.has(*_user_names(node)):
            return self._call(function, inputs, attributes, scope, label, wanted)
        if self.decisions.trying and self._is_wrong(node, inputs, scope, label):
            holes: list[Expr] = [Hole() for _ in wanted]
            self._wrong.update(holes)
            return holes
        results = self._results(node, inputs, attributes, scope, label, wanted)
        if node.op_type == "If" and self._branches_are_wrong(label):
            self._wrong.update(results)
        return results

    def _is_wrong(
        self, node: onnx.NodeProto, inputs: Sequence[Expr | None], scope: Scope, label: str
    ) -> bool:
        """Whether ONNX itself refuses a node for the types of its inputs."""
        if any(each in self._wrong for each in inputs):
            return True
        version = scope.opsets.get(domain_name(node.domain))
        if domain_name(node.domain) or version is None:
            return False
        types = [None if each is None else each.type for each in inputs]
        known = [None if each is None else self.assembly.known(each) for each in inputs]
        reason = fault_of_node(node, version, types, known)
        if reason is not None:
            self.report.add(node.op_type, label, reason, INPUT_SHAPES_HINT)
        return reason is not None

    def _branches_are_wrong(self, label: str) -> bool:
        """Whether every branch of a conditional that was read holds a node that ONNX refuses."""
        found = [self._wrong_graphs.pop(f"{label}/{each}", None) for each in ("then", "else")]
        read = [each for each in found if each is not None]
        return bool(read) and all(read)

    def _results(
        self,
        node: onnx.NodeProto,
        inputs: list[Expr | None],
        attributes: Mapping[str, onnx.AttributeProto],
        scope: Scope,
        label: str,
        wanted: Sequence[bool],
    ) -> list[Expr]:
        """Return the outputs that the operator's converter gives."""
        domain = domain_name(node.domain)
        op = f"{domain}.{node.op_type}" if domain else node.op_type
        table = TABLES.get(domain)
        known = 1 if table is None else _newest(table) if domain else None
        version = scope.opsets.get(domain, known)
        names = _user_names(node) if self.fallback.any else ()
        own = self.fallback.has(*names)
        ctx = ImportContext(version or 1, label, node, wanted, self, scope, self.facts)
        if (
            not own
            and self.fallback.keep
            and (table is None or (version and table.importer(node.op_type, version) is None))
        ):
            kept = self.keep(
                ctx, lambda: self._foreign(node, attributes, version or 1), inputs, node.output
            )
            return list(kept)
        reason = None
        if table is None and not own:
            reason = f"operators of the domain {domain!r} are not read"
        elif not domain and node.op_type in _OF_STRINGS and not own:
            reason = "a tensor of strings has no counterpart in Relay"
        elif version is None:
            reason = "the model names no version of its operator set"
        if reason is not None:
            self.report.add(op, label, reason, KEEP_HINT if table is None else None)
            return list(note_node(op, label, inputs, {}, [Hole() for _ in wanted]))
        try:
            values = {name: attribute_value(each) for name, each in attributes.items()}
        except FormatError as error:
            raise FormatError(f"{label} ({node.op_type}): {error}") from None
        table = TABLES[""] if table is None else table
        results = list(self.call(table, ctx, node.op_type, inputs, values, names=names))
        if ctx.contradicted and self.facts.narrowed:
            self.facts.impossible.add(scope.prefix.rstrip("/"))
        return results

    def _foreign(
        self, node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto], version: int
    ) -> Foreign:
        """Return what a node is that is kept, with the types that the file declares."""
        from serde.onnx.foreign import foreign_node

        given = [self._declared.get(name) for name in node.output]
        results = with_lengths(given, self._lengths)
        return foreign_node(node, attributes, version, results, self.facts.model)

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
            self.report.add(function.name, label, "a graph is given to a function")
            return [Hole() for _ in wanted]
        inner = scope.inner(
            label,
            parent=None,
            opsets=opset_versions(function, None),
            attributes={**defaults, **attributes},
            functions=(*scope.functions, key),
        )
        given = [*inputs, *[None] * (len(function.input) - len(inputs))]
        for name, value in zip(function.input, given, strict=True):
            inner.define(name, value)
        names = [name for name, want in zip(function.output, wanted, strict=False) if want]
        results = self.run(self._graph((), function.node, names, inner), inner)
        found = dict(zip(names, results, strict=True))
        return [found[name] if name in found else Hole() for name in function.output]

    def evaluate(self, graph: onnx.GraphProto, scope: Scope, args: Sequence[Expr]) -> list[Expr]:
        """Return the outputs of a subgraph as far as what is known around it tells them."""
        with self.decisions.inside():
            found = super().evaluate(graph, scope, args)
            results = [self.decisions.resolve_fully(each) for each in found]
        self._wrong_graphs[scope.prefix.rstrip("/")] = any(each in self._wrong for each in results)
        return results

    def joined(self, results: Sequence[Expr]) -> Sequence[Expr]:
        """Return outputs of a subgraph with a conditional for those that are undecided."""
        return join(results)


def _user_names(node: onnx.NodeProto) -> tuple[str, ...]:
    """Return what users call the operator of a node."""
    domain = domain_name(node.domain)
    if not domain:
        return node.op_type, f"ai.onnx::{node.op_type}"
    return f"{domain}::{node.op_type}", f"{domain}.{node.op_type}"


def _newest(table: ConverterTable) -> int:
    """Return the version of a domain that a model names none of, as ONNX Runtime takes it."""
    return max(version for _, version in table.imported())


def _with_lengths(variable: Var, lengths: Mapping[str, int]) -> list[Dim]:
    """Return the shape of an input, of the tensors of a sequence, with lengths for names."""
    type_ = variable.type.element if isinstance(variable.type, SequenceType) else variable.type
    shape = type_.shape if isinstance(type_, TensorType) else ()
    return [
        lengths.get(dim.name, dim) if isinstance(dim, SymDim) and dim.name else dim for dim in shape
    ]


def _may_have_rank(value: Expr, rank: int) -> bool:
    is_open = isinstance(value, Hole)
    return is_open or (isinstance(value.type, TensorType) and value.type.rank == rank)
