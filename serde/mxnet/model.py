"""The native model: MXNet's graph and its parameters, as the files hold them.

Operators keep the name that the file gives them; aliases are not resolved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from serde.core import Weight, dataclass, field, replace

__all__ = [
    "COMPUTED", "DTYPES", "INPUT_KEY", "LATEST_VERSION", "NUMBER", "Entry", "Graph",
    "MxnetModel", "Node", "read_dims", "version_text", "with_input_order",
]  # fmt: skip

DTYPES = (
    "float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool", "int16", "uint16",
    "uint32", "uint64", "bfloat16",
)  # fmt: skip
"""dtypes by MXNet's type flag (``mshadow/base.h``)."""

COMPUTED = frozenset({"float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool"})
"""dtypes that operators of MXNet 1.9.1 compute; the others only occur in files."""

METADATA_KEY = "serde_metadata"
"""Attribute of a graph: JSON of what the owner of a model added to it."""

NUMBER = re.compile("-?[0-9]{1,18}")
"""A whole number in the text of an attribute."""

DIMS_KEY = "__dims__"
"""Attribute of an input: its dimensions, by name where they have no fixed length."""

INPUT_KEY = "__input__"
"""Attribute of an input: its place among the inputs, where the graph has them in another order."""

LATEST_VERSION = 10901
"""Newest release that serde knows, as MXNet numbers it: 1.9.1."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One output of a node.

    Attributes:
        node: Position of the node in ``Graph.nodes``.
        index: Which of its outputs.
    """

    node: int
    index: int


@dataclass(frozen=True, slots=True)
class Node:
    """An operator call or, with ``op == "null"``, a variable.

    Attributes:
        op: Name of the operator as in the file.
        name: Name of the node; names may repeat.
        attrs: The operator's own attributes, as text.
        inputs: Entries of earlier nodes.
        hidden: Attributes that are none of the operator's: ``__shape__``, ``__lr_mult__``...
        subgraphs: Bodies of a control-flow or fused operator.
        control_deps: Earlier nodes that must have run before, without passing a value.
    """

    op: str
    name: str
    attrs: dict[str, str] = field(default_factory=dict)
    inputs: tuple[Entry, ...] = ()
    hidden: dict[str, str] = field(default_factory=dict)
    subgraphs: tuple[Graph, ...] = ()
    control_deps: tuple[int, ...] = ()

    @property
    def is_variable(self) -> bool:
        """Whether this is a variable: an input or a parameter."""
        return self.op == "null"


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph, upgraded to what MXNet 1.9.1 makes of it.

    Attributes:
        nodes: Those that the outputs need, inputs first, in MXNet's own order.
        heads: The outputs.
        version: Release that wrote it, ``10901`` for 1.9.1; 0.8 and before did not say.
        attrs: Facts of the file about the whole graph, ``mxnet_version`` aside.
    """

    nodes: tuple[Node, ...]
    heads: tuple[Entry, ...]
    version: int = LATEST_VERSION
    attrs: dict[str, object] = field(default_factory=dict)

    @property
    def variables(self) -> Iterator[Node]:
        """The variables in order: arguments and auxiliary states."""
        return (node for node in self.nodes if node.op == "null")


@dataclass(frozen=True, slots=True)
class MxnetModel:
    """A graph with its parameters.

    Attributes:
        graph: The graph.
        arg: Learned parameters by bare name; `Weight.sparse` tells of sparse storage.
        aux: Auxiliary states (moving averages) by bare name.
        uninitialized: Names that the file lists without a value.
        source: Where it is from, for messages.
        params_source: File of the parameters, if they came from one.
        params_mark: What it says of the graph that it was written with; 0 if nothing.
        epoch: Number in the name of that file.
        epochs: Those that there were to choose from.
        precision: What became of weights of 16 bits, where there are any.
        lacks: Why there is no graph, where there are parameters alone.
        input_order: Names of all inputs in the order of the model that this was written of, those
            that nothing reads among them; empty where the graph's own order is the only one.
        constants: Names in `arg` of what the model never learned: constants of its graph.
    """

    graph: Graph
    arg: dict[str, Weight] = field(default_factory=dict)
    aux: dict[str, Weight] = field(default_factory=dict)
    uninitialized: frozenset[str] = frozenset()
    source: str = "<memory>"
    params_source: str | None = None
    params_mark: int = 0
    epoch: int | None = None
    epochs: tuple[int, ...] = ()
    precision: str | None = None
    lacks: str | None = None
    input_order: tuple[str, ...] = ()
    constants: frozenset[str] = frozenset()

    def param(self, name: str) -> Weight | None:
        """Return the parameter or auxiliary state of a variable called `name`."""
        value = self.arg.get(name)
        return value if value is not None else self.aux.get(name)

    @property
    def version(self) -> str:
        """Release of MXNet that wrote the graph, such as ``"1.9.1"``."""
        return version_text(self.graph.version)

    @property
    def inputs(self) -> list[str]:
        """Names of the variables without a value, in order: data and labels."""
        names = dict.fromkeys(node.name for node in self.graph.variables)
        return [name for name in names if name not in self.arg and name not in self.aux]


def version_text(version: int) -> str:
    """Return a version number as people write it: ``10901`` is ``1.9.1``."""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def read_dims(text: str | None) -> tuple[int | str, ...] | None:
    """Return the dimensions that :data:`DIMS_KEY` holds, None where it is not there."""
    if text is None:
        return None
    return tuple(int(dim) if NUMBER.fullmatch(dim) else dim for dim in text.split(","))


def with_input_order(graph: Graph, inputs: Sequence[str]) -> Graph:
    """Return a graph that tells the order of its inputs, where it has them in another one.

    Args:
        graph: The graph; an order that it tells already does not count.
        inputs: Names of the inputs in order.
    """
    indices = {name: index for index, name in enumerate(inputs)}
    found = [indices[node.name] for node in graph.variables if node.name in indices]
    noted = any(INPUT_KEY in node.hidden for node in graph.variables)
    if found == sorted(found) and not noted:
        return graph
    nodes = tuple(
        replace(node, hidden={**node.hidden, INPUT_KEY: str(indices[node.name])})
        if node.is_variable and node.name in indices
        else node
        for node in graph.nodes
    )
    return replace(graph, nodes=nodes)
