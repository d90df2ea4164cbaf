"""One expression at a time on the walk into an ONNX model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from serde.onnx.builder import Scope, Values
from serde.onnx.export_context import Subgraph, SymbolTable
from serde.onnx.placement import Placement
from serde.relay.ir.expr import Call, Expr, Function
from serde.walk.biases import fused_biases

__all__ = ["Frame"]


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
