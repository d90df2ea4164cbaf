"""What a page says of two models: what differs, and a verdict for each node of either."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any as AnyValue, Final, TypeAlias

from serde.bridge.summary import TensorSummary
from serde.checking.bisection import Bisection, InnerValue, normalize_name
from serde.checking.difference import ModelDiff, WeightDiff
from serde.core.records import dataclass, field
from serde.viewing.nodes import LONGEST_NAME, Graph, Node, cut_text, shape_text

__all__ = ["Comparison", "Named"]

_MOST_ROWS: Final = 500
_LEAST_NAMED: Final = 0.2
"""Part of the nodes that both models have by name, from which on one that only one has tells."""

_RANK: Final = {"agrees": 0, "differs": 1, "fault": 2}

Verdict: TypeAlias = list[AnyValue]
"""Status, distance, limit, node and name in the other model, and how the nodes differ."""


@dataclass(frozen=True)
class Named:
    """A picture of a model and what its values are called.

    Attributes:
        graph: The picture.
        nodes: The number of the node that gives each value, by its name.
        weights: Names of the weights, in order.
    """

    graph: Graph
    nodes: Mapping[str, int]
    weights: Sequence[str]


@dataclass
class Comparison:
    """What comparing two models has shown.

    Attributes:
        sides: The models.
        difference: What differs between them as Relay; None where one has gaps.
        bisection: How the values inside compare; None where they were not run.
        notes: Why something was not compared.
    """

    sides: tuple[Named, Named]
    difference: ModelDiff | None = None
    bisection: Bisection | None = None
    notes: list[str] = field(default_factory=list)

    def payload(self) -> dict[str, AnyValue]:
        """Return the sentences and tables as values of JSON."""
        lines = [] if self.bisection is None else [self.bisection.sentence]
        tables: list[dict[str, AnyValue]] = []
        if self.difference is not None:
            lines += _lines(self.difference)
            tables += _tables(self.difference)
        if self.bisection is not None:
            tables += _value_table(self.bisection)
        return {"lines": [cut_text(line) for line in (*lines, *self.notes)], "tables": tables}

    def verdicts(self, side: int) -> list[Verdict | None]:
        """Return the verdict of each node of one model; None for a node without one."""
        own, other = self.sides[side], self.sides[1 - side]
        found: list[Verdict | None] = [None] * len(own.graph.nodes)
        self._pair_by_name(found, own, other)
        for value in () if self.bisection is None else self.bisection.values:
            names = (value.name, value.target)
            node, partner = own.nodes.get(names[side]), other.nodes.get(names[1 - side])
            if node is not None:
                verdict = _verdict(value, partner, names[1 - side])
                known = found[node]
                if known is None or _RANK.get(known[0], -1) <= _RANK[verdict[0]]:
                    found[node] = [*verdict, *(known or [])[5:]]
        _mark_outputs(own.graph, found)
        return found

    def weight_notes(self, side: int) -> dict[int, str]:
        """Return how weights of one model differ, by their numbers."""
        numbers = {name: number for number, name in enumerate(self.sides[side].weights)}
        found: dict[int, str] = {}
        for each in () if self.difference is None else self.difference.weights:
            name = each.renamed if side and each.renamed is not None else each.name
            if name in numbers:
                found[numbers[name]] = _weight_text(each, side)
        return found

    def _pair_by_name(self, found: list[Verdict | None], own: Named, other: Named) -> None:
        """Enter, for nodes that both have by name, the other one and what is not the same."""
        partners: dict[str, int] = {}
        for name, number in _node_names(other):
            partners.setdefault(normalize_name(name), number)
        own_names: dict[int, str] = {}
        for name, number in _node_names(own):
            partner = partners.get(normalize_name(name))
            if partner is not None and number not in own_names:
                own_names[number] = name
                text = _node_difference(own.graph.nodes[number], other.graph.nodes[partner])
                status = "changed" if text else ""
                partner_name = other.graph.nodes[partner].name
                found[number] = [status, None, None, partner, partner_name, text]
        operators = [i for i, node in enumerate(own.graph.nodes) if node.kind == "operator"]
        if len(own_names) < _LEAST_NAMED * len(operators):
            return
        for number in operators:
            if found[number] is None and own.graph.nodes[number].name:
                found[number] = ["only", None, None, None, ""]


def _node_names(side: Named) -> Iterator[tuple[str, int]]:
    """Yield each name of a node and its number, nodes' own names first."""
    for number, node in enumerate(side.graph.nodes):
        if node.kind == "operator" and node.name:
            yield node.name, number
    for number, node in enumerate(side.graph.nodes):
        for name in node.values:
            yield name, number


def _node_difference(own: Node, other: Node) -> str:
    """Return what two nodes of one operator have not in common; empty if that is nothing."""
    if own.op != other.op:
        return ""
    theirs = {name: value for name, value, _ in other.attributes}
    parts = [
        f"{name} {value}, there {theirs.get(name, 'absent')}"
        for name, value, _ in own.attributes
        if theirs.get(name) != value
    ]
    return cut_text("; ".join(parts))


def _verdict(value: InnerValue, partner: int | None, name: str) -> Verdict:
    status = "agrees" if value.agrees else "fault" if value.suspect else "differs"
    distance = value.distance if math.isfinite(value.distance) else None
    return [status, distance, value.limit, partner, cut_text(name, LONGEST_NAME)]


def _mark_outputs(graph: Graph, found: list[Verdict | None]) -> None:
    """Give outputs the verdict of what they are given."""
    for number, node in enumerate(graph.nodes):
        if node.kind == "output" and node.operands and node.operands[0].node >= 0:
            verdict = found[node.operands[0].node]
            if verdict is not None and verdict[0] in _RANK:
                found[number] = verdict


def _lines(found: ModelDiff) -> Iterator[str]:
    if found.equal:
        yield "the models are equal: they compute the same by the same names"
    if not found.ordered:
        yield "inputs or outputs: the same names in another order"
    if found.graph is not None:
        yield f"graphs, as Relay: {found.graph}"
    if found.same_weights is not None:
        yield f"weights: {found.same_weights:,} equal, {len(found.weights):,} differ"


def _tables(found: ModelDiff) -> Iterator[dict[str, AnyValue]]:
    ports = [[p.kind, p.name, _port_text(p.left), _port_text(p.right)] for p in found.ports]
    counts = [[name, str(a), str(b)] for name, (a, b) in found.operators.items()]
    weights = [[w.name, _weight_text(w, 0)] for w in found.weights]
    yield from _table("inputs and outputs", ["", "name", "left", "right"], ports)
    yield from _table(f"operators of {found.operator_set}", ["operator", "left", "right"], counts)
    yield from _table("weights that differ", ["weight", "how"], weights)


def _value_table(found: Bisection) -> Iterator[dict[str, AnyValue]]:
    rows = [
        [value.name, value.op, f"{value.distance:.2e}", "at fault" if value.suspect else ""]
        for value in found.values
        if not value.agrees
    ]
    yield from _table("values that differ", ["value", "operator", "distance", ""], rows)


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> Iterator[dict[str, AnyValue]]:
    """Yield a table that has rows, the first of them where there are too many."""
    if rows:
        shown = [[cut_text(cell, LONGEST_NAME) for cell in row] for row in rows[:_MOST_ROWS]]
        yield {"title": title, "columns": list(columns), "rows": shown, "total": len(rows)}


def _port_text(tensor: TensorSummary | None) -> str:
    if tensor is None:
        return "absent"
    return f"{tensor.dtype or 'unknown'} {shape_text(tensor.shape)}"


def _weight_text(weight: WeightDiff, side: int) -> str:
    """Return how a weight differs from that of the other model."""
    other = 1 - side
    if weight.renamed is not None:
        return f"the same bytes are called {weight.name if side else weight.renamed}"
    if weight.max_abs is not None:
        return f"{weight.elements:,} elements differ, by {weight.max_abs:.2e} at most"
    if weight.dtypes[other] is None:
        return "absent in the other model"
    if weight.dtypes[side] is None:
        return "absent in this model"
    return f"{weight.dtypes[other]} {shape_text(weight.shapes[other])} in the other model"
