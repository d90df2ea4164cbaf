"""What a walk into Relay has met: the nodes as the source has them, for those who show a model.

Each node is kept with its name, its attributes and where what it reads comes from, by the names
that the source gives to values; so a node that changes nothing, of which nothing is left in Relay,
stands between its neighbours all the same. A model with gaps does not become Relay, yet its walk
goes on to the end. Nothing is kept where nobody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any as AnyValue, Final

from serde.core.records import dataclass, field
from serde.relay.ir.expr import Constant, Expr, Var
from serde.walk.holes import Holes

__all__ = [
    "Trace", "TracedGraph", "TracedNode", "note_node", "note_read", "tracing", "tracing_graph",
]  # fmt: skip

_MOST_HOLES: Final = 64
"""Results of a gap that are told apart; a file may claim any number."""


@dataclass(eq=False, slots=True)
class TracedNode:
    """A node of a source as the walk has met it.

    Attributes:
        op: Its operator, as the format calls it.
        name: What it is called, with the graphs around it.
        inputs: What it reads; None for what is left out.
        attributes: Its attributes as the file has them.
        results: What stands for its results: holes where it was not converted.
        operands: What the operator calls its inputs, as far as it does.
        sources: For each input the node that gives it and the number of that node's result; None
            for what no node gives.
        values: Names of its results.
        graphs: The graphs inside it by name, such as the branches of a conditional.
    """

    op: str
    name: str
    inputs: Sequence[Expr | None]
    attributes: Mapping[str, AnyValue]
    results: Sequence[Expr]
    operands: Sequence[str] = ()
    sources: Sequence[tuple[TracedNode, int] | None] = ()
    values: Sequence[str] = ()
    graphs: Mapping[str, TracedGraph] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class TracedGraph:
    """A graph of a source as the walk has met it.

    Attributes:
        nodes: The nodes, in its order.
        outputs: Names of its outputs, what stands for them, and the nodes that give them.
    """

    nodes: list[TracedNode] = field(default_factory=list)
    outputs: list[tuple[str, Expr, tuple[TracedNode, int] | None]] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Trace:
    """What a walk has met.

    Attributes:
        main: The graph of the model.
    """

    main: TracedGraph = field(default_factory=TracedGraph)
    _given: dict[tuple[object, Hashable], tuple[TracedNode, int]] = field(default_factory=dict)
    _open: list[_Reading] = field(default_factory=list)


_TRACE: ContextVar[Trace | None] = ContextVar("trace", default=None)


@contextmanager
def tracing() -> Iterator[Trace]:
    """Yield what walks inside the body of a ``with`` statement enter their nodes into."""
    trace = Trace()
    token = _TRACE.set(trace)
    try:
        yield trace
    finally:
        _TRACE.reset(token)


@contextmanager
def tracing_graph(scope: object, prefix: str) -> Iterator[_Reading | None]:
    """Yield what the nodes of one graph are entered into; None where nobody asks.

    Args:
        scope: The scope of the graph.
        prefix: What names of its nodes begin with; empty for that of the model.
    """
    trace = _TRACE.get()
    if trace is None:
        yield None
        return
    reading = _Reading(trace, scope)
    if trace._open:
        trace._open[-1].graphs[prefix.rstrip("/").rpartition("/")[2]] = reading.graph
    elif not prefix:
        trace.main = reading.graph
    trace._open.append(reading)
    try:
        yield reading
    finally:
        trace._open.pop()


@dataclass(eq=False, slots=True)
class _Reading:
    """State of reading one graph.

    Attributes:
        trace: What it is entered into.
        scope: Its scope.
        graph: What has been read of it.
        notes: What converters have noted since the node began that is being converted.
        reads: The values that it has asked for, with the nodes that give them.
        graphs: The graphs inside it; one that is read several times counts as at the last time.
    """

    trace: Trace
    scope: object
    graph: TracedGraph = field(default_factory=TracedGraph)
    notes: list[TracedNode] = field(default_factory=list)
    reads: list[tuple[Expr, tuple[TracedNode, int] | None]] = field(default_factory=list)
    graphs: dict[str, TracedGraph] = field(default_factory=dict)

    def begin(self) -> None:
        """A node begins."""
        self.notes, self.reads, self.graphs = [], [], {}

    def end(
        self, op: str, name: str, outputs: Sequence[Hashable], values: Sequence[AnyValue]
    ) -> None:
        """A node has been converted: find what it was by what was noted of it."""
        noted = [each for each in self.notes if each.name == name]
        results = [part for value in values for part in _expressions(value)]
        if noted:
            node = noted[-1]
        else:
            node = TracedNode(op, name, [value for value, _ in self.reads], {}, results)
        if not node.inputs and all(isinstance(each, (Constant, Var)) for each in node.results):
            return  # a value of the file, which stands at its readers
        left = list(self.reads)
        node.sources = [_taken(each, left) for each in node.inputs]
        node.values = [str(each) for each in outputs if isinstance(each, str) and each]
        node.graphs = self.graphs
        self.graph.nodes.append(node)
        for index, output in enumerate(outputs):
            self.trace._given[self.scope, output] = node, index

    def finish(self, names: Sequence[Hashable], values: Sequence[AnyValue]) -> None:
        """The graph has been read; what was asked for since the last node are its outputs."""
        left = list(self.reads)
        for name, value in zip(names, values, strict=True):
            for each in _expressions(value)[:1]:
                shown = name if isinstance(name, str) else ""
                self.graph.outputs.append((shown, each, _taken(each, left)))


def _taken(
    value: Expr | None, left: list[tuple[Expr, tuple[TracedNode, int] | None]]
) -> tuple[TracedNode, int] | None:
    """Take the first read of a value from the list, and return the node that gives it."""
    for index, (each, source) in enumerate(left):
        if each is value:
            del left[index]
            return source
    return None


def _expressions(value: AnyValue) -> list[Expr]:
    if isinstance(value, Expr):
        return [value]
    if isinstance(value, Holes):
        return list(islice(value, _MOST_HOLES))
    parts = value if isinstance(value, (list, tuple)) else ()
    return [each for each in parts if isinstance(each, Expr)]


def note_read(scope: object, name: Hashable, value: AnyValue, result: int = 0) -> None:
    """Enter what is asked for by name, if anybody asks.

    Args:
        scope: The scope that the name is defined in.
        name: The name.
        value: What it stands for.
        result: Which of the results, where one name stands for all of a node.
    """
    trace = _TRACE.get()
    if trace is None or not trace._open:
        return
    known = trace._given.get((scope, name))
    for index, each in enumerate(_expressions(value)):
        source = None if known is None else (known[0], known[1] + result + index)
        trace._open[-1].reads.append((each, source))


def note_node(
    op: str,
    name: str,
    inputs: Sequence[Expr | None],
    attributes: Mapping[str, AnyValue],
    results: Sequence[Expr],
    operands: Callable[[], Sequence[str]] = tuple,
) -> Sequence[Expr]:
    """Enter a node, if anybody asks, and return its results; of a gap, each hole made once."""
    trace = _TRACE.get()
    if trace is None or not trace._open:
        return results
    known = list(islice(results, _MOST_HOLES))
    node = TracedNode(op, name, tuple(inputs), attributes, known, operands())
    trace._open[-1].notes.append(node)
    return Holes(len(results), known) if isinstance(results, Holes) else results
