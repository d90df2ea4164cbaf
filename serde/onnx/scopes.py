"""Names of values while an ONNX model is walked, and what a graph needs of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from serde.errors import FormatError
from serde.onnx.undecided import Decisions
from serde.relay.expr import Constant, Expr, Var

__all__ = [
    "FunctionKey",
    "Scope",
    "check_order",
    "domain_name",
    "needed_values",
    "node_label",
    "read_names",
]

FunctionKey = tuple[str, str, str]
"""Domain, name and overload of a model's own function."""


def domain_name(domain: str) -> str:
    """Return the one name of a domain; that of ONNX itself has two."""
    return "" if domain == "ai.onnx" else domain


def node_label(node: onnx.NodeProto, prefix: str) -> str:
    """Return what a node is called in messages: its name, or that of its first output."""
    name = node.name or next((each for each in node.output if each), "")
    return f"{prefix}{name or node.op_type}"


@dataclass
class Scope:
    """The values of one graph or function body by name.

    Attributes:
        opsets: Version of each operator set in force.
        values: Values by name; an input that the caller left out is None.
        prefix: What names of nodes begin with in messages.
        parent: The scope around a subgraph; functions see nothing around them.
        attributes: What the function was called with.
        functions: The functions whose bodies these are, outermost first.
        depth: Subgraphs and function calls around this one.
        captures: For the body of a function that Relay keeps, the values it takes from around
            it, with the parameters that stand for them.
        decisions: What is known of conditions whose branches differ in rank.
    """

    opsets: Mapping[str, int]
    values: dict[str, Expr | None] = field(default_factory=dict)
    prefix: str = ""
    parent: Scope | None = None
    attributes: Mapping[str, onnx.AttributeProto] = field(default_factory=dict)
    functions: tuple[FunctionKey, ...] = ()
    depth: int = 0
    captures: dict[Expr, Var] | None = None
    decisions: Decisions = field(default_factory=Decisions)

    def knows(self, name: str) -> bool:
        """Whether a value of that name can be had here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return True
            scope = scope.parent
        return False

    def find(self, name: str) -> Expr | None:
        """Return the value of a name that is known; a captured one becomes a parameter."""
        crossed: list[Scope] = []
        scope = self
        while name not in scope.values and scope.parent is not None:
            crossed.append(scope)
            scope = scope.parent
        value = self.decisions.resolved(scope.values[name])
        for inner in reversed(crossed):
            if inner.captures is not None and value is not None:
                value = _captured(inner.captures, value, name)
        return value


def _captured(captures: dict[Expr, Var], value: Expr, name: str) -> Expr:
    if isinstance(value, Constant) or value.type is None:
        return value
    if value not in captures:
        captures[value] = Var(name, value.type)
    return captures[value]


def check_order(nodes: Sequence[onnx.NodeProto], scope: Scope) -> None:
    """Check that every value is made once, and before it is used.

    Raises:
        FormatError: One is not; the node is named.
    """
    made: set[str] = set()
    for node in nodes:
        for name in node.input:
            if name and name not in made and not scope.knows(name):
                raise FormatError(_absent(node, name, nodes, scope))
        for name in node.output:
            if name in made or name in scope.values:
                raise FormatError(
                    f"{node_label(node, scope.prefix)} ({node.op_type}): "
                    f"a second value is called {name!r}"
                )
            if name:
                made.add(name)


def _absent(node: onnx.NodeProto, name: str, nodes: Sequence[onnx.NodeProto], scope: Scope) -> str:
    where = f"{node_label(node, scope.prefix)} ({node.op_type}): input {name!r}"
    later = next((each for each in nodes if name in each.output), None)
    if later is None:
        return f"{where} is given by no node, input or initializer"
    maker = node_label(later, scope.prefix)
    return f"{where} is made by {maker}, which does not come before it; nodes must be sorted"


def needed_values(nodes: Sequence[onnx.NodeProto], outputs: Iterable[str]) -> set[str]:
    """Return the names of all values that bear on `outputs`, of nodes that are sorted."""
    needed = set(outputs)
    for node in reversed(nodes):
        if any(name and name in needed for name in node.output):
            needed.update(read_names(node))
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
