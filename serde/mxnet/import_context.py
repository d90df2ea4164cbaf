"""Graphs inside a node, as Relay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from serde.errors import Unsupported
from serde.mxnet.aliases import canonical_name
from serde.mxnet.attributes import decode_attribute
from serde.mxnet.model import Entry, Graph, Node
from serde.mxnet.unknown import Completion
from serde.relay.ir.expr import Expr
from serde.relay.ir.types import Type
from serde.report import Report
from serde.walk.table import ConverterTable, Hole
from serde.walk.table import ImportContext as BaseContext

__all__ = ["Completions", "ImportContext", "needed_outputs", "used_inputs"]

Completions = dict[tuple[int, tuple[Type | None, ...]], list[Expr]]
"""Variables of graphs with the lengths that they tell, by graph and types of the variables."""


class ImportContext(BaseContext):
    """What an importer of a node may reach: also the graphs inside the node.

    Args:
        table: The converters.
        node: The node.
        outputs: How many of its outputs are used.
        report: Filled with gaps.
        around: Name of what the node lies in, with a slash behind.
        np_shape: Whether MXNet runs the graph with NumPy's shapes, under which there are scalars.
        completions: What :meth:`completed` has found in the conversion so far. Without it, each
            loop within a loop would double the work.
    """

    def __init__(
        self,
        table: ConverterTable,
        node: Node,
        outputs: int,
        report: Report,
        around: str = "",
        *,
        np_shape: bool = False,
        completions: Completions | None = None,
    ) -> None:
        super().__init__(1, f"{around}{node.name}", outputs)
        self.np_shape = np_shape
        self._completions = {} if completions is None else completions
        self._table = table
        self._subgraphs = node.subgraphs
        self._report = report

    def subgraph(self, index: int, inputs: Sequence[Expr]) -> list[Expr]:
        """Return what a graph inside the node yields of the values of its variables.

        Raises:
            Unsupported: There is no such graph, it has another number of variables, or one of its
                nodes, which the report names, cannot be converted.
        """
        graph = self._graph(index)
        results = self._walk(graph, inputs)
        heads = [results[head.node][head.index] for head in graph.heads]
        if any(isinstance(head, Hole) for head in heads):
            raise Unsupported("a graph inside cannot be converted")
        return heads

    def completed(self, inputs: Sequence[Expr]) -> list[Expr]:
        """Return variables of the first graph inside with the lengths that it tells of them.

        Args:
            inputs: Variables, of which some have a length of 0 for one that is not known.
        """
        if not self._subgraphs:
            return list(inputs)
        graph = self._graph(0)
        key = id(graph), tuple(each.type for each in inputs)
        if key not in self._completions:
            try:
                results = self._walk(graph, inputs, open_ended=True)
            except Unsupported:  # which shows again when the node is converted
                return list(inputs)
            variables = (at for at, node in enumerate(graph.nodes) if node.is_variable)
            self._completions[key] = [results[at][0] for at in variables]
        return self._completions[key]

    def _walk(
        self, graph: Graph, inputs: Sequence[Expr], *, open_ended: bool = False
    ) -> dict[int, Sequence[Expr]]:
        """Return what each node of a graph inside gives."""
        results: dict[int, Sequence[Expr]] = {}
        values = iter(inputs)
        needed = needed_outputs(graph, self._table)
        report = Report() if open_ended else self._report

        def inner(node: Node, outputs: int = 0) -> ImportContext:
            return ImportContext(
                self._table,
                node,
                outputs,
                report,
                f"{self.node}/",
                np_shape=self.np_shape,
                completions=self._completions,
            )

        def convert(place: int) -> Sequence[Expr]:
            node = graph.nodes[place]
            if not self.np_shape:
                walk.complete(node)
            arguments = [
                results[entry.node][entry.index] for entry in used_inputs(node, self._table)
            ]
            op, context = canonical_name(node.op), inner(node, needed[place])
            return self._table.run_import(context, op, arguments, node.attrs, report)

        walk = Completion(
            graph, results, convert, lambda node, given: inner(node).completed(given), open_ended
        )
        for place, node in enumerate(graph.nodes):
            if node.is_variable:
                value = next(values, None)
                if value is None:
                    raise Unsupported(f"{node.name} has no value")
                results[place] = [value]
            else:
                results[place] = convert(place) if needed[place] else ()
        return results

    def operators(self, index: int) -> list[tuple[str, dict[str, AnyValue]]]:
        """Return the operators of a graph inside the node, each with all its attributes.

        Raises:
            Unsupported: There is no such graph, or an operator of it has no importer or other
                attributes than that takes.
        """
        found = []
        for node in self._graph(index).nodes:
            if node.is_variable:
                continue
            op = canonical_name(node.op)
            converter = self._table.importer(op, self.version)
            if converter is None:
                raise Unsupported(f"{op} inside: no importer")
            bound, faults = converter.bind(node.attrs, decode_attribute)
            if faults:
                raise Unsupported(f"{op} inside: {faults[0]}")
            defaults = {name: each.default for name, each in converter.attributes.items()}
            found.append((op, {**defaults, **bound}))
        return found

    def _graph(self, index: int) -> Graph:
        if index >= len(self._subgraphs):
            raise Unsupported(f"expected {index + 1} graphs inside, found {len(self._subgraphs)}")
        return self._subgraphs[index]


def used_inputs(node: Node, table: ConverterTable) -> Sequence[Entry]:
    """Return the inputs that bear on a node's result."""
    converter = table.importer(canonical_name(node.op), 1)
    if converter is None or converter.uses is None:
        return node.inputs
    return node.inputs[: converter.uses]


def needed_outputs(graph: Graph, table: ConverterTable) -> list[int]:
    """Return, for each node, how many outputs the heads need: up to the last one used."""
    needed = [0] * len(graph.nodes)
    for entry in graph.heads:
        needed[entry.node] = max(needed[entry.node], entry.index + 1)
    for index in range(len(graph.nodes) - 1, -1, -1):
        if needed[index]:
            for entry in used_inputs(graph.nodes[index], table):
                needed[entry.node] = max(needed[entry.node], entry.index + 1)
    return needed
