"""One expression at a time on the walk into an ONNX model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from serde.onnx.builder import Scope, Values
from serde.onnx.graph import Subgraph, SymbolTable
from serde.onnx.placement import Placement
from serde.relay.expr import Call, Expr, Function
from serde.relay.registry import OpDef
from serde.relay.types import TensorType

__all__ = ["Frame", "fused_biases"]

BIASED: Final = {
    "nn.conv1d": "data_layout",
    "nn.conv2d": "data_layout",
    "nn.conv3d": "data_layout",
    "nn.conv1d_transpose": "data_layout",
    "nn.conv2d_transpose": "data_layout",
    "nn.conv3d_transpose": "data_layout",
    "nn.dense": None,
}
"""Operators whose ONNX form adds a bias, with the attribute that tells the channel axis."""


@dataclass(slots=True, eq=False)
class Frame:
    """A body that is being walked: of main, of a function called, or of a loop.

    Attributes:
        root: The body.
        base: The scope that its result lies in.
        placement: Where its nodes lie.
        values: What its nodes have become; None for what could not be exported.
        symbols: Where symbols of shapes can be read off.
        finish: Called with what the body has become.
        function: The function whose body it is.
        used_once: Names of weights that nothing else uses.
        position: How many nodes are done.
        bodies: Bodies of loops that were walked for the node at that position.
        biases: The additions of a bias that their only producer's ONNX form includes.
        skipped: Those producers.
    """

    root: Expr
    base: Scope
    placement: Placement
    values: dict[Expr, Values | None]
    symbols: SymbolTable
    finish: Callable[[Values | None], None]
    function: Function | None = None
    used_once: frozenset[str] = frozenset()
    position: int = 0
    bodies: dict[Function, Subgraph | None] = field(default_factory=dict)
    biases: dict[Expr, tuple[Call, Expr]] = field(init=False)
    skipped: set[Call] = field(init=False)

    def __post_init__(self) -> None:
        self.biases = fused_biases(self.placement.uses)
        self.skipped = {call for call, _bias in self.biases.values()}

    def next_node(self) -> Expr | None:
        """Return the first node that is not done."""
        order = self.placement.order
        while self.position < len(order):
            node = order[self.position]
            if node not in self.values and node not in self.skipped:
                return node
            self.position += 1
        return None


def fused_biases(uses: Mapping[Expr, int]) -> dict[Expr, tuple[Call, Expr]]:
    """Return the additions of a bias that their only producer's ONNX form includes."""
    found: dict[Expr, tuple[Call, Expr]] = {}
    for node in uses:
        if not isinstance(node, Call) or not isinstance(node.op, OpDef):
            continue
        if node.op.name != "nn.bias_add":
            continue
        producer = node.args[0]
        if not isinstance(producer, Call) or not isinstance(producer.op, OpDef):
            continue
        if producer.op.name not in BIASED or uses[producer] != 1:
            continue
        layout = BIASED[producer.op.name]
        type_ = producer.type
        if not isinstance(type_, TensorType) or (layout is None and type_.rank != 2):
            continue
        channel = producer.attrs[layout].index("C") if layout else 1
        if node.attrs["axis"] % type_.rank == channel:
            found[node] = (producer, node.args[1])
    return found
