"""A PyTorch program as serde holds it, wherever it was read: nodes that call operators by name.

Arguments have the names of the operator's schema. Nothing here needs PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core import Weight, dataclass, field
from serde.relay.ir import DimLike, TensorType
from serde.torch.dimensions import Range

__all__ = [
    "OWN_NAMESPACES", "TRACED_FUNCTION", "TRAINING_NOTE", "Argument", "Graph", "Input", "Node",
    "Ref", "TorchModel",
]  # fmt: skip

NAMES: Final = "serde_names.json"
"""The extra file in which archives that serde writes tell names of inputs and outputs."""

TRAINING_NOTE: Final = "the module is in training mode; converted in evaluation mode"

Argument = AnyValue
"""A :class:`Ref`, a number, a text, a dtype by name, None, a :class:`Graph`, or a list of these.

Dtypes are ``np.dtype`` names such as ``"float32"``, TorchScript's codes of them integers. Devices,
layouts and memory formats are texts such as ``"cpu"`` and ``"contiguous_format"``.
"""


OWN_NAMESPACES: Final = frozenset((
    "_operator", "aten", "higher_order", "prim", "prims", "quantized", "quantized_decomposed",
    "quantized_tensor", "torchvision",
))  # fmt: skip
"""Namespaces of operators that are PyTorch's own, or that serde reads."""

TRACED_FUNCTION = "prim::PythonOp.traced"
"""An operator whose only block is what a function of Python did when it was traced."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A value of the graph by its name: a tensor, a number that is computed, or a list of them."""

    name: str


@dataclass(slots=True)
class Node:
    """One call of an operator.

    Attributes:
        op: The operator with its overload, such as ``aten::add.Tensor``, ``prim::If``,
            ``quantized::linear`` or ``higher_order::cond``.
        name: What the node is called, for messages.
        arguments: Arguments that are given, by the names of the schema, in its order.
        outputs: Names of the values it gives; "" for one that nothing reads.
        gives_list: Whether the only output is a list (or tuple) of all that the operator gives.
        where: First line of source code in the stack trace, if there is one.
        blocks: Graphs inside, where the format has them beside the arguments (TorchScript).
        types: Types that the program records of what operators of libraries give.
    """

    op: str
    name: str
    arguments: Sequence[tuple[str, Argument]]
    outputs: Sequence[str]
    gives_list: bool = False
    where: str = ""
    blocks: Sequence[Graph] = ()
    types: Sequence[TensorType | None] = ()


@dataclass(slots=True)
class Graph:
    """Nodes, each after those that it reads from.

    Attributes:
        inputs: Names of the values that it is given.
        nodes: Its nodes.
        outputs: What it gives.
        weights: Which values are weights, by their names in :attr:`TorchModel.weights`.
    """

    inputs: Sequence[str]
    nodes: Sequence[Node]
    outputs: Sequence[Argument]
    weights: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor, or a number, that the model is given.

    Attributes:
        name: What users call it.
        value: Its name in the graph.
        shape: Lengths and names of symbolic dimensions; None where nobody says.
        dtype: Likewise.
        number: Whether it is a number of Python's (``int``, ``float``, ``bool``), no tensor.
    """

    name: str
    value: str
    shape: Sequence[DimLike] | None = None
    dtype: str | None = None
    number: bool = False


@dataclass
class TorchModel:
    """A program with its weights.

    Attributes:
        graph: The whole of it.
        inputs: What it is given, those without an effect included.
        outputs: Names of what it gives; of values that it changes (buffers, inputs) the last.
        weights: Parameters, buffers and constant tensors by the names of the state dictionary.
        kind: ``"pt2"``, ``"exported program"``, ``"torchscript"``, ``"module"``, ``"checkpoint"``,
            or of a written folder ``"source"``: nodes as Python calls them, whose overloads the
            walk finds.
        version: Version of PyTorch, or of the archive's schema.
        path: The file that it was read from.
        live: The object of PyTorch's that it was read from, which can run it.
        notes: What users should know of how it was read, for the report.
        ranges: Least and greatest value of symbols of dimensions, as far as the program says.
        metadata: What its owner added to it, as far as an archive tells.
        branches: Lines of the source at which values of the examples decided what was traced, with
            what became of them.
        constants: Values of arguments that are no inputs, by name, where these are no defaults.
        traced: The same as a trace, for those who allow one, where this cannot be converted.
        states: Inputs that the next call is given, by the outputs that become them.
        asked: Names of inner values that what runs it gives behind its outputs.
    """

    graph: Graph
    inputs: Sequence[Input]
    outputs: Sequence[str]
    weights: Mapping[str, Weight]
    kind: str
    version: str = ""
    path: Path | None = None
    live: AnyValue = None
    notes: Sequence[str] = ()
    ranges: Mapping[str, Range] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    branches: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, AnyValue] = field(default_factory=dict)
    traced: TorchModel | None = None
    states: Mapping[str, str] = field(default_factory=dict)
    asked: Sequence[str] = ()

    def nodes(self) -> Iterator[Node]:
        """Yield every node, those of inner graphs too."""
        pending: list[Graph] = [self.graph]
        while pending:
            graph = pending.pop()
            for node in graph.nodes:
                yield node
                pending.extend(node.blocks)
                pending.extend(each for _, each in node.arguments if isinstance(each, Graph))
