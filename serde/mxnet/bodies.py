"""Graphs inside a node, as Relay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from serde.converters import ConverterTable, Hole, ImportContext
from serde.errors import Unsupported
from serde.mxnet.aliases import canonical_name
from serde.mxnet.attributes import decode_attribute
from serde.mxnet.model import Entry, Graph, Node
from serde.relay.expr import Expr
from serde.report import Report

__all__ = ["NodeContext", "needed_outputs", "used_inputs"]


class NodeContext(ImportContext):
    """What an importer of a node may reach: also the graphs inside the node.

    Args:
        table: The converters.
        node: The node.
        outputs: How many of its outputs are used.
        report: Filled with gaps.
        around: Name of what the node lies in, with a slash behind.
        np_shape: Whether MXNet runs the graph with NumPy's shapes, under which there are scalars.
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
    ) -> None:
        super().__init__(1, f"{around}{node.name}", outputs)
        self.np_shape = np_shape
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
        results: list[Sequence[Expr]] = []
        values = iter(inputs)
        needed = needed_outputs(graph, self._table)
        for node, outputs in zip(graph.nodes, needed, strict=True):
            if node.is_variable:
                value = next(values, None)
                if value is None:
                    raise Unsupported(f"{node.name} has no value")
                results.append([value])
                continue
            if not outputs:
                results.append(())
                continue
            arguments = [
                results[entry.node][entry.index] for entry in used_inputs(node, self._table)
            ]
            context = NodeContext(
                self._table,
                node,
                outputs,
                self._report,
                f"{self.node}/",
                np_shape=self.np_shape,
            )
            op = canonical_name(node.op)
            results.append(self._table.run_import(context, op, arguments, node.attrs, self._report))
        heads = [results[head.node][head.index] for head in graph.heads]
        if any(isinstance(head, Hole) for head in heads):
            raise Unsupported("a graph inside cannot be converted")
        return heads

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
