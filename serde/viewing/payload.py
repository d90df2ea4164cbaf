"""What a page is told of a model: lists of numbers into tables of texts, so that it stays small."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any as AnyValue, Final

from serde.core.weights import Weight
from serde.viewing.blocks import Group, Item, Leaves, fold
from serde.viewing.nodes import LONGEST_NAME, Graph, Node, cut_text, shape_text
from serde.viewing.statistics import Statistics

__all__ = ["graph_payload", "operator_docs", "weight_rows"]

KINDS: Final = ("operator", "input", "output", "unknown")
GROUP_KINDS: Final = ("scope", "block", "repeat", "section", "body", "function")
_WEIGHT, _TEXT = -1, -2
_DIGITS: Final = 6
_LONGEST_DOC: Final = 600


def graph_payload(graph: Graph, weights: Mapping[str, Weight]) -> dict[str, AnyValue]:
    """Return a graph as values of JSON.

    ``nodes`` has for each: operator, kind, category, name, types, attributes, operands, names of
    values, issues, operators of Relay. An operand is three numbers: label; node, -1 for a weight or
    -2 for a text; result, weight or text.
    ``groups`` has title, kind, key, size and children: nodes, or groups as -1 less their number.

    Args:
        graph: The graph.
        weights: Its weights by name.
    """
    writer = _Writer(list(weights))
    nodes = [writer.node(node) for node in graph.nodes]
    groups, bodies, root = _Grouping(graph, weights).groups()
    return {
        "texts": list(writer.texts),
        "attributes": list(map(list, writer.attributes)),
        "nodes": nodes,
        "groups": groups,
        "bodies": bodies,
        "root": root,
    }


def weight_rows(
    weights: Mapping[str, Weight], statistics: Mapping[str, Statistics], failed: Mapping[str, str]
) -> list[list[AnyValue]]:
    """Return of each weight name, dtype, shape, bytes, and figures or why there are none.

    Args:
        weights: The weights by name.
        statistics: What was measured of them.
        failed: Why something was not measured.
    """
    return [
        _weight_row(name, weight, statistics.get(name), failed.get(name))
        for name, weight in weights.items()
    ]


def operator_docs(operators: Iterable[str], document: Callable[[str], str]) -> dict[str, str]:
    """Return the first paragraph of the documentation of each operator that has any.

    Args:
        operators: Names of operators.
        document: Returns the documentation of one.
    """
    found = {}
    for name in sorted(set(operators)):
        text, _, _ = document(name).strip().partition("\n\n")
        if text:
            found[cut_text(name, LONGEST_NAME)] = cut_text(" ".join(text.split()), _LONGEST_DOC)
    return found


class _Writer:
    """Tables of texts and of attributes by their places, filled as nodes are written."""

    def __init__(self, weights: Sequence[str]) -> None:
        self.texts: dict[str, int] = {}
        self.attributes: dict[tuple[int, ...], int] = {}
        self._weights = {name: number for number, name in enumerate(weights)}

    def text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def node(self, node: Node) -> list[AnyValue]:
        row: list[AnyValue] = [
            self.text(node.op), KINDS.index(node.kind), self.text(node.category),
            self.text(node.name), [self.text(each) for each in node.types],
            self._attribute_row(node.attributes), self._operands(node),
            [self.text(each) for each in node.values], [self.text(each) for each in node.issues],
            [self.text(each) for each in node.parts],
        ]  # fmt: skip
        while len(row) > 7 and not row[-1]:
            row.pop()
        return row

    def _attribute_row(self, attributes: Sequence[tuple[str, str, bool]]) -> int:
        row = tuple(
            number
            for name, value, default in attributes
            for number in (self.text(name), self.text(value), int(default))
        )
        return self.attributes.setdefault(row, len(self.attributes))

    def _operands(self, node: Node) -> list[int]:
        row: list[int] = []
        for each in node.operands:
            label = self.text(each.label)
            if each.node >= 0:
                row += (label, each.node, each.result)
            elif each.weight in self._weights:
                row += (label, _WEIGHT, self._weights[each.weight])
            else:
                row += (label, _TEXT, self.text(each.text))
        return row


class _Grouping:
    """The boxes of a graph, folded."""

    def __init__(self, graph: Graph, weights: Mapping[str, Weight]) -> None:
        self._graph = graph
        self._weights = weights
        self._rows: list[list[AnyValue]] = []
        self._sources: dict[int, dict[int, None]] = defaultdict(dict)

    def groups(self) -> tuple[list[list[AnyValue]], dict[int, list[int]], int]:
        """Return the groups, those inside each node, and the number of the outermost."""
        self._link()
        members: dict[int, list[int]] = defaultdict(list)
        for number, node in enumerate(self._graph.nodes):
            members[node.box].append(number)
        bodies: dict[int, list[int]] = defaultdict(list)
        functions: list[int] = []
        for number, box in list(enumerate(self._graph.boxes))[1:]:
            kind = "function" if box.owner < 0 else "body"
            group = self._row(box.title, kind, -1, self._fold(members[number]))
            (functions if box.owner < 0 else bodies[box.owner]).append(group)
        root = self._row("model", "function", -1, self._fold(members[0]))
        self._rows[root][4] += [-1 - function for function in functions]
        return self._rows, dict(bodies), root

    def _link(self) -> None:
        """Find for each node those beside it that it reads, itself or by what is inside it."""
        nodes, boxes = self._graph.nodes, self._graph.boxes

        @cache
        def chain_of(number: int) -> dict[int, int]:
            chain = {}
            while True:
                box = nodes[number].box
                chain[box] = number
                number = boxes[box].owner
                if number < 0:
                    return chain

        for number, node in enumerate(nodes):
            for operand in node.operands:
                if operand.node < 0:
                    continue
                source = chain_of(operand.node)
                for box, own in chain_of(number).items():
                    if box in source:
                        if source[box] != own:
                            self._sources[own][source[box]] = None
                        break

    def _fold(self, members: Sequence[int]) -> list[Item]:
        nodes = self._graph.nodes
        shown = {m for m in members if nodes[m].kind in ("operator", "unknown")}
        homes = self._homes(members, shown)
        place = {m: at for at, m in enumerate(members)}

        def order(member: int) -> tuple[int, bool, int]:
            return place[homes.get(member, member)], member not in homes, place[member]

        return fold(
            sorted(members, key=order),
            Leaves(
                sources={m: list(self._sources.get(m, ())) for m in members},
                names={m: nodes[homes.get(m, m)].name if m in shown else "" for m in members},
                tokens={m: self._token(nodes[m]) for m in members},
            ),
        )

    def _homes(self, members: Sequence[int], shown: Collection[int]) -> dict[int, int]:
        """Return of nodes that compute from weights alone the one node that reads what they give.

        A weight that is dequantised or cast stands so in the box of the operator that takes it.
        """
        readers: dict[int, set[int]] = defaultdict(set)
        for member in members:
            for source in self._sources.get(member, ()):
                readers[source].add(member)
        alone: set[int] = set()
        for member in members:
            operands = self._graph.nodes[member].operands
            if (
                member in shown
                and operands
                and all(each.node < 0 or each.node in alone for each in operands)
            ):
                alone.add(member)
        homes: dict[int, int] = {}
        for member in reversed(members):
            if member in alone and len(readers[member]) == 1:
                (reader,) = readers[member]
                homes[member] = homes.get(reader, reader)
        return homes

    def _token(self, node: Node) -> Hashable:
        operands = tuple(
            (each.label, each.text, self._weight_type(each.weight), each.node >= 0)
            for each in node.operands
        )
        return (node.op, node.kind, tuple(node.attributes), tuple(node.types), operands)

    def _weight_type(self, name: str) -> Hashable:
        weight = self._weights.get(name)
        return None if weight is None else (weight.shape, weight.dtype)

    def _row(self, title: str, kind: str, key: int, items: Sequence[Item]) -> int:
        """Enter a group and all that it holds; return its number."""
        size = sum(item.size if isinstance(item, Group) else 1 for item in items)
        children: list[int] = []
        for item in items:
            if isinstance(item, Group):
                children.append(-1 - self._row(item.title, item.kind, item.key, item.children))
            else:
                children.append(item)
        text = cut_text(title, LONGEST_NAME)
        self._rows.append([text, GROUP_KINDS.index(kind), key, size, children])
        return len(self._rows) - 1


def _weight_row(
    name: str, weight: Weight, statistics: Statistics | None, failed: str | None
) -> list[AnyValue]:
    """Return name, dtype, shape, bytes, and figures or why there are none."""
    shape = shape_text(weight.shape)
    row: list[AnyValue] = [cut_text(name, LONGEST_NAME), weight.dtype, shape, weight.nbytes]
    if statistics is None:
        return [*row, failed] if failed is not None else row
    low, high = statistics.histogram.edges
    figures = [statistics.low, statistics.high, statistics.mean, statistics.deviation, low, high]
    counts = [statistics.count, statistics.zeros, statistics.nan, statistics.infinite]
    bins = statistics.histogram.counts.tolist()
    return [*row, [*counts, *map(_rounded, figures), int(statistics.sampled), bins]]


def _rounded(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
