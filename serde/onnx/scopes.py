"""Names of values while an ONNX model is walked, and what a graph needs of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

import onnx

from serde.core.records import dataclass, field
from serde.errors import FormatError
from serde.onnx.undecided import Decisions
from serde.relay.ir.expr import Expr
from serde.walk.scope import Scope as BaseScope

__all__ = [
    "FunctionKey", "NamedNode", "Scope", "domain_name", "needed_values", "node_name", "read_names",
    "sort_nodes",
]  # fmt: skip

FunctionKey = tuple[str, str, str]
"""Domain, name and overload of a model's own function."""


def domain_name(domain: str) -> str:
    """Return the one name of a domain; that of ONNX itself has two."""
    return "" if domain == "ai.onnx" else domain


def node_name(node: onnx.NodeProto) -> str:
    """Return what a node is called in messages: its name, or that of its first output."""
    return node.name or next((each for each in node.output if each), "") or node.op_type


@dataclass(eq=False)
class Scope(BaseScope[str, Expr | None]):
    """The values of one graph or function body by name.

    An input that the caller of a function left out is None; functions see nothing around them.

    Attributes:
        opsets: Version of each operator set in force.
        attributes: What the function was called with.
        functions: The functions whose bodies these are, outermost first.
        decisions: What is known of conditions whose branches differ in rank.
    """

    opsets: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, onnx.AttributeProto] = field(default_factory=dict)
    functions: tuple[FunctionKey, ...] = ()
    decisions: Decisions = field(default_factory=Decisions)

    def resolve(self, value: Expr | None) -> Expr | None:
        """Return what a value is as far as is known here."""
        return self.decisions.resolve(value)


@dataclass(slots=True)
class NamedNode:
    """A node with its names, which protobuf makes anew whenever they are asked for.

    Attributes:
        node: The node.
        inputs: Names of its inputs.
        outputs: Names of its outputs.
        reads: Names that it reads, those that its subgraphs mention included.
        takes: Names that it takes from its graph, those that its subgraphs take included.
    """

    node: onnx.NodeProto
    inputs: list[str]
    outputs: list[str]
    reads: Sequence[str]
    takes: Sequence[str]

    @classmethod
    def of(cls, node: onnx.NodeProto) -> NamedNode:
        """Return a node with its names."""
        inputs, outputs = list(node.input), list(node.output)
        graphs = [g for a in node.attribute for g in ([a.g] if a.HasField("g") else a.graphs)]
        if not graphs:
            return cls(node, inputs, outputs, inputs, inputs)
        reads = list(read_names(node))
        return cls(node, inputs, outputs, reads, [*inputs, *_taken_names(graphs, reads)])


def sort_nodes(nodes: Iterable[onnx.NodeProto], scope: Scope) -> list[NamedNode]:
    """Return nodes so that each comes after those that it reads from, else in their order.

    ONNX asks for this order, runtimes do not; some tools write another.

    Raises:
        FormatError: A value is made twice, or by none, or some nodes wait for each other; a node
            is named.
    """
    found = [NamedNode.of(node) for node in nodes]
    makers: dict[str, int] = {}
    for index, each in enumerate(found):
        for name in filter(None, each.outputs):
            if name in makers or name in scope.values:
                where = _describe_node(each.node, scope)
                raise FormatError(f"{where}: a second value is called {name!r}")
            makers[name] = index
    is_sorted = True
    for index, each in enumerate(found):
        for name in filter(None, each.takes):
            maker = makers.get(name)
            if maker is not None:
                is_sorted = is_sorted and maker < index
            elif not scope.knows(name) and name in each.inputs:
                where = f"{_describe_node(each.node, scope)}: input {name!r}"
                raise FormatError(f"{where} is given by no node, input or initializer")
    if is_sorted:
        return found
    waits = [{makers[name] for name in each.takes if name in makers} for each in found]
    return _sort_topologically(found, waits, scope)


def _sort_topologically(
    nodes: Sequence[NamedNode], waits: Sequence[set[int]], scope: Scope
) -> list[NamedNode]:
    """Return nodes after those whose results they take, otherwise in the order of the file.

    Args:
        nodes: The nodes.
        waits: For each, the indices of the nodes that it takes results of.
        scope: Where they stand, for messages.
    """
    readers: dict[int, list[int]] = {}
    for place, each in enumerate(waits):
        for maker in each:
            readers.setdefault(maker, []).append(place)
    left = [len(each) for each in waits]
    ready = [place for place, count in enumerate(left) if not count]
    found: list[int] = []
    while ready:
        place = heappop(ready)
        found.append(place)
        for reader in readers.get(place, ()):
            left[reader] -= 1
            if not left[reader]:
                heappush(ready, reader)
    if len(found) < len(nodes):
        stuck = next(place for place, count in enumerate(left) if count)
        where = _describe_node(_on_cycle(nodes, waits, left, stuck).node, scope)
        raise FormatError(f"{where}: a cycle, its inputs are made of its own outputs")
    return [nodes[place] for place in found]


def _on_cycle(
    nodes: Sequence[NamedNode], waits: Sequence[set[int]], left: Sequence[int], start: int
) -> NamedNode:
    """Return a node of the cycle that `start` waits for."""
    seen: set[int] = set()
    place = start
    while place not in seen:
        seen.add(place)
        place = min(each for each in waits[place] if left[each])
    return nodes[place]


def _describe_node(node: onnx.NodeProto, scope: Scope) -> str:
    return f"{scope.prefix}{node_name(node)} ({node.op_type})"


def _taken_names(graphs: Sequence[onnx.GraphProto], reads: Iterable[str]) -> list[str]:
    """Return those names of `reads` that the subgraphs of a node do not make themselves."""
    own = {each.name for graph in _all_graphs(graphs) for each in graph.input}
    own |= {each.name for graph in _all_graphs(graphs) for each in graph.initializer}
    own |= {name for graph in _all_graphs(graphs) for each in graph.node for name in each.output}
    return [name for name in reads if name not in own]


def _all_graphs(graphs: Iterable[onnx.GraphProto]) -> Iterator[onnx.GraphProto]:
    """Yield graphs and those inside them."""
    pending = list(graphs)
    while pending:
        graph = pending.pop()
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                pending += [attribute.g] if attribute.HasField("g") else attribute.graphs


def needed_values(nodes: Sequence[NamedNode], outputs: Iterable[str]) -> set[str]:
    """Return the names of all values that bear on `outputs`, of nodes that are sorted."""
    needed = set(outputs)
    needed.discard("")
    for each in reversed(nodes):
        if not needed.isdisjoint(each.outputs):
            needed.update(each.reads)
            needed.discard("")
    return needed


def read_names(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the names that a node reads, those that its subgraphs mention included."""
    pending = [node]
    while pending:
        each = pending.pop()
        yield from each.input
        for attribute in each.attribute:
            graphs = [attribute.g] if attribute.HasField("g") else attribute.graphs
            for graph in graphs:
                yield from (output.name for output in graph.output)
                pending.extend(graph.node)
