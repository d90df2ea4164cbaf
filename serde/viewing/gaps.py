"""The picture of a model that cannot be converted: its own nodes, those with gaps marked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any as AnyValue

from serde.relay.ir.expr import Constant, Expr, Var
from serde.report import Issue
from serde.viewing.graph import attribute_rows, constant_text, type_text
from serde.viewing.nodes import LONGEST_NAME, Graph, Node, Operand, cut_text
from serde.walk.tracing import Trace, TracedNode

__all__ = ["read_operators", "read_trace"]


def read_trace(trace: Trace, issues: Sequence[Issue]) -> Graph:
    """Return what a walk has met, each node with what it reads and why it is not converted.

    Args:
        trace: What it has met.
        issues: The gaps.
    """
    graph = Graph()
    reader = _TraceReader(graph, _by_node(issues))
    for traced in trace.nodes:
        reader.read(traced)
    for name, value in trace.outputs:
        reader.read_output(name, value)
    reader.mark_rest(issues)
    return graph


def read_operators(operators: Sequence[str], issues: Sequence[Issue]) -> Graph:
    """Return nodes of which only the operators are known."""
    graph = Graph()
    graph.nodes += [Node(cut_text(op, LONGEST_NAME), category="native") for op in operators]
    _TraceReader(graph, {}).mark_rest(issues)
    return graph


def _by_node(issues: Sequence[Issue]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for issue in issues:
        hint = f" ({issue.hint})" if issue.hint else ""
        found[issue.node].append(cut_text(f"{issue.reason}{hint}"))
    return found


class _TraceReader:
    """State of reading a trace."""

    def __init__(self, graph: Graph, issues: Mapping[str, list[str]]) -> None:
        self._graph = graph
        self._issues = issues
        self._marked: set[str] = set()
        self._given: dict[Expr, Operand] = {}

    def read(self, traced: TracedNode) -> None:
        """Enter a node."""
        node = Node(cut_text(traced.op, LONGEST_NAME), category="native")
        node.name = cut_text(traced.name, LONGEST_NAME)
        node.operands = list(self._operands(traced.inputs))
        values: Mapping[str, AnyValue] = traced.attributes
        node.attributes = attribute_rows(values)
        node.types = [type_text(each.type) for each in traced.results]
        self._mark(node, traced.name)
        number = len(self._graph.nodes)
        self._graph.nodes.append(node)
        for index, result in enumerate(traced.results):
            self._given.setdefault(result, Operand("", number, index))

    def read_output(self, name: str, value: Expr) -> None:
        """Enter an output of the model."""
        node = Node("output", "output", name=cut_text(name, LONGEST_NAME))
        node.types, node.operands = [type_text(value.type)], self._find(value)[:1]
        self._graph.nodes.append(node)

    def _mark(self, node: Node, name: str) -> None:
        reasons = self._issues.get(name)
        if reasons:
            node.kind, node.issues = "unknown", reasons
            self._marked.add(name)

    def mark_rest(self, issues: Sequence[Issue]) -> None:
        """Enter what has gaps and was not met, such as inputs."""
        for issue in issues:
            if issue.node in self._marked:
                continue
            name = cut_text(issue.node, LONGEST_NAME)
            node = Node(cut_text(issue.op, LONGEST_NAME), "unknown", "native", name)
            node.issues = [cut_text(issue.reason)]
            self._graph.nodes.append(node)

    def _operands(self, inputs: Sequence[Expr | None]) -> Iterator[Operand]:
        for place, expr in enumerate(inputs):
            if expr is None:
                continue
            for found in self._find(expr):
                label = str(place)
                yield Operand(label, found.node, found.result, found.weight, found.text)

    def _find(self, expr: Expr) -> list[Operand]:
        """Return what gives an expression: nodes of the trace, inputs, or a constant."""
        found: dict[Operand, None] = {}
        pending, seen = [expr], {expr}
        while pending:
            each = pending.pop()
            if each not in self._given:
                self._enter_leaf(each)
            if each in self._given:
                found[self._given[each]] = None
                continue
            below = [child for child in each.below if child not in seen]
            seen.update(below)
            pending += reversed(below)
        return list(found)

    def _enter_leaf(self, expr: Expr) -> None:
        if isinstance(expr, Constant):
            self._given[expr] = Operand("", text=constant_text(expr.data))
        elif isinstance(expr, Var):
            name = cut_text(expr.name_hint, LONGEST_NAME)
            node = Node("input", "input", name=name, types=[type_text(expr.type)])
            self._graph.nodes.append(node)
            self._given[expr] = Operand("", len(self._graph.nodes) - 1)
