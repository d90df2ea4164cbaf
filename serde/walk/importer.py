"""The walk over a model into Relay: what is the same in every format.

A format says by a handful of methods how its graphs are read: which nodes there are, what they
give, and how one of them is handed to its converter. Names, scopes, gaps, subgraphs, functions of
loops and the finished model are the business of the walk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any as AnyValue, Generic, Protocol, TypeVar

from serde.core import Report, budget, counting, dataclass
from serde.errors import FormatError, OptionError, TypeInferenceError, Unsupported, raise_if_refused
from serde.relay.ir import Constant, DimLike, Expr, Foreign, Function, TensorType, Var
from serde.walk.assembly import Assembly, closed_over
from serde.walk.fallback import ImportFallback
from serde.walk.holes import Hole, Holes, Incomplete, Placeholder, require_countable
from serde.walk.import_context import ImportContext
from serde.walk.inputs import bind_inputs, check_names, fixed_value, missing_shapes_text
from serde.walk.scope import Scope
from serde.walk.table import ConverterTable
from serde.walk.tracing import note_node, tracing_graph

__all__ = ["Graph", "ImportWalk", "Node"]


SourceT = TypeVar("SourceT")


@dataclass(slots=True)
class Node(Generic[SourceT]):
    """A node of a model as the walk sees it.

    Attributes:
        op: Its operator, for messages.
        name: What it is called in its graph.
        outputs: Names of the values that it gives; "" for one that nothing reads.
        source: The node as the format has it.
    """

    op: str
    name: str
    outputs: Sequence[Hashable]
    source: SourceT


@dataclass(slots=True)
class Graph(Generic[SourceT]):
    """A graph of a model as the walk sees it.

    Attributes:
        inputs: Names of its inputs.
        nodes: The nodes to convert, each after those that it reads from. They are asked for one
            after the other, once the inputs have their values.
        outputs: Names of its outputs.
    """

    inputs: Sequence[Hashable]
    nodes: Iterable[Node[SourceT]]
    outputs: Sequence[Hashable]


class Named(Protocol):
    """An input as a model declares it."""

    @property
    def name(self) -> str:
        """Its name."""


GraphT = TypeVar("GraphT")
ScopeT = TypeVar("ScopeT", bound=Scope[AnyValue, AnyValue])


class ImportWalk(ABC, Generic[GraphT, SourceT, ScopeT]):
    """State of one conversion into Relay, and the walk itself.

    Attributes:
        report: Filled with gaps.
        assembly: What has been made of the model.
        fallback: What is done with operators that nobody knows.
    """

    def __init__(
        self, report: Report, assembly: Assembly, fallback: ImportFallback | None = None
    ) -> None:
        self.report = report
        self.assembly = assembly
        self.fallback = ImportFallback() if fallback is None else fallback

    # What a format says.

    @abstractmethod
    def declare(
        self, entry: AnyValue, shape: Sequence[DimLike] | None, dtype: str | None, scope: ScopeT
    ) -> Var | None:
        """Return the variable for an input of the model, and define its name.

        Args:
            entry: The input.
            shape: Its shape, if the caller gives one.
            dtype: Its dtype, if the caller gives one.
            scope: The scope of the main graph.

        Returns:
            The variable; None where nobody tells the shape.

        Raises:
            OptionError: The shape contradicts what is declared.
            Unsupported: Relay has no such input.
        """

    @abstractmethod
    def read(self, graph: GraphT, scope: ScopeT) -> Graph[SourceT]:
        """Return a graph as the walk sees it, and define what it holds itself, as its weights."""

    @abstractmethod
    def convert(self, node: Node[SourceT], scope: ScopeT, label: str) -> Sequence[AnyValue]:
        """Return the values that a node gives, as :meth:`call` makes them.

        Args:
            node: The node.
            scope: Where it finds its inputs.
            label: Its name with the graphs around it.
        """

    # The walk.

    def inputs(
        self,
        entries: Iterable[Named],
        scope: ScopeT,
        shapes: Mapping[str, Sequence[DimLike]],
        dtypes: Mapping[str, str],
        *,
        weights: Collection[str] = (),
        unused: Collection[str] = (),
        fixed: Mapping[str, AnyValue] = MappingProxyType({}),
    ) -> list[Var]:
        """Make a variable of every input that has no fixed value.

        Args:
            entries: The inputs, weights that are declared like them included.
            scope: The scope of the main graph.
            shapes: The shapes that the caller gives.
            dtypes: The dtypes that the caller gives.
            weights: Names that are weights.
            unused: Names of what would be inputs if a result depended on them.
            fixed: Values that the caller fixes.

        Raises:
            FormatError: Two inputs have one name, or one has none.
            OptionError: An option names no input, or an input's shape is missing.
            UnsupportedModelError: Relay has no such inputs.
        """
        declared = list(entries)
        check_names([each.name for each in declared], scope.source)
        declared = [each for each in declared if each.name not in weights]
        names = [each.name for each in declared]
        shapes, dtypes = bind_inputs(names, shapes, dtypes, weights=weights, unused=unused)
        bind_inputs(names, fixed, {})
        found, missing = [], []
        for each, name in zip(declared, names, strict=True):
            try:
                variable = self.declare(each, shapes.get(name), dtypes.get(name), scope)
                if variable is not None:
                    require_countable(variable.type)
            except Unsupported as error:
                self.report.add("input", name, error.reason, error.hint)
                continue
            except TypeInferenceError as error:
                raise FormatError(f"input {name}: {error}") from error
            if variable is None:
                missing.append(name)
                continue
            self.assembly.take(name)
            if name in fixed:
                self._fix(variable, fixed[name], scope)
            else:
                found.append(variable)
        if missing:
            raise OptionError(self.missing_text(missing))
        raise_if_refused(self.report)
        return found

    def _fix(self, variable: Var, given: AnyValue, scope: ScopeT) -> None:
        """Have a constant stand for an input."""
        name, type_ = variable.name_hint, variable.type
        if not isinstance(type_, TensorType):
            raise OptionError(f"fix_inputs: {name} is no tensor")
        array = fixed_value(name, given, type_.shape, type_.dtype)
        self.assembly.fixed[name] = array
        value = Constant(array, variable.span)
        scope.values |= {key: value for key, each in scope.values.items() if each is variable}

    def missing_text(self, names: Sequence[str]) -> str:
        """Return what to say of inputs that nobody tells the shape of."""
        return missing_shapes_text(names)

    def run(self, graph: Graph[SourceT], scope: ScopeT) -> list[AnyValue]:
        """Convert the nodes of a graph and return its outputs.

        Raises:
            LimitError: With those of graphs that are read several times, there are too many.
        """
        left, count = budget(), counting("nodes")
        with tracing_graph(scope, scope.prefix) as trace:
            for node in graph.nodes:
                label = f"{scope.prefix}{node.name}"
                left.draw("nodes", 1, f"{label}: what graphs hold, read wherever they are used,")
                if trace is not None:
                    trace.begin()
                values = self.convert(node, scope, label)
                if len(values) < len(node.outputs):
                    values = self._fill_with_holes(node, values, label)
                if trace is not None:
                    trace.end(node.op, label, node.outputs, values)
                for name, value in zip(node.outputs, values, strict=False):
                    if name != "":
                        self.bind(node, name, value, scope)
                count(1)
            if trace is not None:
                trace.begin()
            found = [self.output(name, scope) for name in graph.outputs]
            if trace is not None:
                trace.finish(graph.outputs, found)
        return found

    def bind(self, node: Node[SourceT], name: Hashable, value: AnyValue, scope: ScopeT) -> None:
        """Give a value that a node gives its name."""
        scope.define(name, value)

    def _fill_with_holes(
        self, node: Node[SourceT], values: Sequence[AnyValue], label: str
    ) -> list[AnyValue]:
        """Return values with holes for the outputs that are missing, and record the first."""
        missing = range(len(values), len(node.outputs))
        for index in [i for i in missing if node.outputs[i] != ""][:1]:
            self.report.add(node.op, label, f"output {index} is used but not converted")
        return [*values, *(Hole() for _ in missing)]

    def output(self, name: AnyValue, scope: ScopeT) -> AnyValue:
        """Return an output of a graph.

        Raises:
            FormatError: Nothing gives it.
        """
        value = scope.find(name) if name != "" else None
        if value is None:
            raise scope.fault(f"output {name!r} is given by no node or input")
        return value

    def call(
        self,
        table: ConverterTable,
        ctx: ImportContext,
        op: str,
        inputs: Sequence[Expr | None],
        attributes: Mapping[str, AnyValue],
        *,
        names: Sequence[str] = (),
        foreign: Callable[[], Foreign] | None = None,
    ) -> Sequence[Expr]:
        """Return what the converter of an operator makes of a node, folded.

        Args:
            table: The format's converters.
            ctx: What the converter may reach.
            op: The operator.
            inputs: What the node reads.
            attributes: Its attributes as the file has them.
            names: What users may call the operator, if not `op`.
            foreign: Says what the node is, where it may be kept without a converter.
        """
        found = self._converted(table, ctx, op, inputs, attributes, names, foreign)

        def operands() -> Sequence[str]:
            converter = table.importer(op, ctx.version)
            return () if converter is None else converter.operands

        return note_node(op, ctx.node, inputs, attributes, found, operands)

    def _converted(
        self,
        table: ConverterTable,
        ctx: ImportContext,
        op: str,
        inputs: Sequence[Expr | None],
        attributes: Mapping[str, AnyValue],
        names: Sequence[str],
        foreign: Callable[[], Foreign] | None,
    ) -> Sequence[Expr]:
        own = self.fallback.converter(*(names or (op,))) if self.fallback.any else None
        keep = own is None and foreign is not None and self.fallback.keep
        if keep and foreign is not None and table.importer(op, ctx.version) is None:
            return self.keep(ctx, foreign, inputs)
        found = table.run_import(ctx, op, inputs, attributes, self.report, own)
        if isinstance(found, Holes):
            return found
        fold = self.assembly.fold
        try:
            return [each if isinstance(each, Placeholder) else fold(each) for each in found]
        except TypeInferenceError as error:  # values that are known contradict each other
            self.report.add(op, ctx.node, str(error))
            ctx.contradicted = True
            return Holes(ctx.outputs)

    def keep(
        self,
        ctx: ImportContext,
        foreign: Callable[[], Foreign],
        inputs: Sequence[Expr | None],
        names: Sequence[str] = (),
    ) -> Sequence[Expr]:
        """Return the results of a node that is kept as it is, or holes for a gap.

        Args:
            ctx: Of the node.
            foreign: Says what the node is.
            inputs: What it reads.
            names: What else the user may call the node.
        """
        try:
            node = foreign()
        except Unsupported as error:
            self.report.add("serde.foreign", ctx.node, error.reason, error.hint)
            return Holes(max(ctx.outputs, 1))
        return self.fallback.keep_node(ctx, node, inputs, self.report, names)

    # Graphs inside nodes.

    def subgraph(self, graph: GraphT, scope: ScopeT, args: Sequence[Expr]) -> list[Expr]:
        """Return the outputs of a graph for arguments, in a scope made for it.

        Raises:
            Incomplete: Some of its nodes cannot be converted.
        """
        before = len(self.report.issues)
        results = self.evaluate(graph, scope, args)
        if len(self.report.issues) > before or any(isinstance(each, Hole) for each in results):
            raise Incomplete
        return results

    def evaluate(self, graph: GraphT, scope: ScopeT, args: Sequence[AnyValue]) -> list[Expr]:
        """Return the outputs of a graph for arguments, holes where there are gaps."""
        found = self.read(graph, scope)
        if len(args) != len(found.inputs):
            raise scope.fault(f"expected {len(args)} inputs, found {len(found.inputs)}")
        for name, value in zip(found.inputs, args, strict=True):
            scope.define(name, value)
        return self.run(found, scope)

    def closure(
        self, graph: GraphT, scope: ScopeT, params: Sequence[Var], args: Sequence[Expr]
    ) -> tuple[Function, list[Expr]]:
        """Return a graph as a function, and the values of its last parameters."""
        captures = scope.captures = dict[Expr, Var]()
        return closed_over(params, captures, self.joined(self.subgraph(graph, scope, args)))

    def joined(self, results: Sequence[Expr]) -> Sequence[Expr]:
        """Return outputs of a graph as the results of a function."""
        return results
