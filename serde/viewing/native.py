"""The picture of a model as its file has it: its own nodes, those with gaps marked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from serde.core.records import replace
from serde.core.report import Issue
from serde.relay.ir import Call, Constant, Expr, OpDef, Var
from serde.viewing.graph import attribute_rows, category_of, constant_text, type_text
from serde.viewing.nodes import LONGEST_NAME, Box, Graph, Node, Operand, cut_text
from serde.walk.holes import Placeholder
from serde.walk.tracing import Trace, TracedGraph, TracedNode

__all__ = ["read_operators", "read_trace"]

_MOST_BELOW: Final = 64
"""Expressions of one node among which its operators of Relay are looked for."""

_TELLING: Final = (
    *("conv", "recurrent", "attention", "linalg", "pool", "norm", "image", "vision"),
    *("qnn", "activation", "random", "control", "reduce", "index", "sequence", "elementwise"),
)
"""Groups of operators, that which says most of a node first."""


def read_trace(
    trace: Trace,
    issues: Sequence[Issue] = (),
    weights: Collection[str] = (),
    constants: Collection[str] = (),
    outputs: Sequence[str] = (),
) -> Graph:
    """Return what a walk has met, each node with what it reads and why it is not converted.

    Args:
        trace: What it has met.
        issues: The gaps.
        weights: Names of the model's weights.
        constants: Names of those of the file that are none, for Relay has them as constants.
        outputs: Names of its outputs, if they are not those of the values.
    """
    reader = _TraceReader(Graph(), issues, weights, constants)
    reader.read_graph(trace.main, 0, outputs)
    reader.mark_rest()
    return reader.graph


def read_operators(operators: Sequence[str], issues: Sequence[Issue]) -> Graph:
    """Return nodes of which only the operators are known."""
    reader = _TraceReader(Graph(), issues)
    reader.graph.nodes += [Node(cut_text(op, LONGEST_NAME), category="native") for op in operators]
    reader.mark_rest()
    return reader.graph


class _TraceReader:
    """State of reading a trace."""

    def __init__(
        self,
        graph: Graph,
        issues: Sequence[Issue],
        weights: Collection[str] = (),
        constants: Collection[str] = (),
    ) -> None:
        self.graph = graph
        self._issues = issues
        self._reasons: dict[str, list[str]] = defaultdict(list)
        for issue in issues:
            hint = f" ({issue.hint})" if issue.hint else ""
            self._reasons[issue.node].append(cut_text(f"{issue.reason}{hint}"))
        self._weights = weights
        self._constants = constants
        self._marked: set[str] = set()
        self._numbers: dict[TracedNode, int] = {}
        self._given: dict[Expr, Operand] = {}

    def read_graph(self, graph: TracedGraph, box: int, outputs: Sequence[str] = ()) -> None:
        """Enter the nodes of a graph and its outputs."""
        for traced in graph.nodes:
            self._read(traced, box)
        names = outputs if len(outputs) == len(graph.outputs) else [n for n, *_ in graph.outputs]
        for name, (_, value, source) in zip(names, graph.outputs, strict=True):
            node = Node("output", "output", name=cut_text(name, LONGEST_NAME), box=box)
            node.types = [type_text(value.type)]
            node.operands = self._find(value, source, box)[:1]
            self.graph.nodes.append(node)

    def _read(self, traced: TracedNode, box: int) -> None:
        node = Node(cut_text(traced.op, LONGEST_NAME), box=box)
        node.name = cut_text(traced.name, LONGEST_NAME)
        node.operands = list(self._operands(traced, box))
        node.attributes = attribute_rows(traced.attributes)
        node.types = [type_text(each.type) for each in traced.results]
        node.values = [cut_text(n, LONGEST_NAME) for n in traced.values if n != traced.name]
        reasons = self._reasons.get(traced.name)
        if reasons:
            node.kind, node.issues = "unknown", reasons
            self._marked.add(traced.name)
        self._numbers[traced] = number = len(self.graph.nodes)
        self.graph.nodes.append(node)
        for title, inner in traced.graphs.items():
            shown = "body" if traced.name.endswith(title) else cut_text(title, LONGEST_NAME)
            self.graph.boxes.append(Box(shown, number))
            self.read_graph(inner, len(self.graph.boxes) - 1)
        node.parts, node.category = self._parts(traced)
        for index, result in enumerate(traced.results):
            self._given.setdefault(result, Operand("", number, index))

    def _parts(self, traced: TracedNode) -> tuple[list[str], str]:
        """Return the operators of Relay that a node has become, and the group it is drawn in."""
        known = {each for each in traced.inputs if each is not None}
        found: dict[str, str] = {}
        pending = [each for each in traced.results if each not in self._given]
        seen = set(pending)
        while pending and len(seen) <= _MOST_BELOW:
            each = pending.pop()
            if isinstance(each, Call) and isinstance(each.op, OpDef):
                found.setdefault(each.op.name, category_of(each.op))
            for child in () if isinstance(each, Placeholder) else each.below:
                if child not in known and child not in seen and child not in self._given:
                    seen.add(child)
                    pending.append(child)
        groups = {"control"} if traced.graphs else set(found.values())
        category = next((each for each in _TELLING if each in groups), "")
        return list(reversed(found)), category or next(iter(groups), "native")

    def mark_rest(self) -> None:
        """Enter what has gaps and was not met, such as inputs."""
        for issue in self._issues:
            if issue.node in self._marked:
                continue
            name = cut_text(issue.node, LONGEST_NAME)
            node = Node(cut_text(issue.op, LONGEST_NAME), "unknown", "native", name)
            node.issues = [cut_text(issue.reason)]
            self.graph.nodes.append(node)

    def _operands(self, traced: TracedNode, box: int) -> Iterator[Operand]:
        names = traced.operands
        sources = traced.sources or [None] * len(traced.inputs)
        for place, (expr, source) in enumerate(zip(traced.inputs, sources, strict=True)):
            if expr is None:
                continue
            beyond = f"{names[-1]}[{place - len(names) + 1}]" if names else str(place)
            label = names[place] if place < len(names) else beyond
            for found in self._find(expr, source, box):
                yield replace(found, label=label)

    def _find(self, expr: Expr, source: tuple[TracedNode, int] | None, box: int) -> list[Operand]:
        """Return what gives an expression: nodes of the trace, inputs, weights or a constant."""
        if source is not None and source[0] in self._numbers:
            return [Operand("", self._numbers[source[0]], source[1])]
        found: dict[Operand, None] = {}
        pending, seen = [expr], {expr}
        while pending:
            each = pending.pop()
            if each not in self._given:
                self._enter_leaf(each, box)
            if each in self._given:
                found[self._given[each]] = None
                continue
            inside = () if isinstance(each, Placeholder) else each.below
            below = [child for child in inside if child not in seen]
            seen.update(below)
            pending += reversed(below)
        return list(found)

    def _enter_leaf(self, expr: Expr, box: int) -> None:
        if isinstance(expr, Constant):
            self._given[expr] = Operand("", text=constant_text(expr.data))
        elif isinstance(expr, Var) and expr.name_hint in self._weights:
            self._given[expr] = Operand("", weight=expr.name_hint)
        elif isinstance(expr, Var):
            name = cut_text(expr.name_hint, LONGEST_NAME)
            if expr.name_hint in self._constants:
                self._given[expr] = Operand("", text=f"{type_text(expr.type)} {name}")
                return
            node = Node("input", "input", name=name, types=[type_text(expr.type)], box=box)
            self.graph.nodes.append(node)
            self._given[expr] = Operand("", len(self.graph.nodes) - 1)
