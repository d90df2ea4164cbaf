"""What a converter from Core ML may reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from serde.coreml.mlprogram.lists import ListFacts
from serde.relay.ir.expr import Expr, Function, Var
from serde.walk.assembly import Assembly
from serde.walk.folding import FoldingContext

__all__ = ["ImportContext", "Surroundings"]


class Surroundings(Protocol):
    """What the walk offers to the context of one operation."""

    assembly: Assembly
    lists: ListFacts

    def block(self, index: int, args: Sequence[Expr], label: str) -> list[Expr]:
        """Return what a block of the operation gives for the values of its inputs."""

    def closure(self, index: int, params: Sequence[Var], label: str) -> tuple[Function, list[Expr]]:
        """Return a block as a function, and the values of its last parameters."""

    def unpacked(self, x: Expr, shape: tuple[int, ...], bits: int, label: str) -> Expr:
        """Return what stands for the elements that a weight of bytes holds."""

    def note_labels(self, labels: Sequence[str | int]) -> None:
        """Keep the class labels of a classifier."""

    def read_state(self, name: str) -> Expr:
        """Return the present value of a state."""

    def write_state(self, name: str, value: Expr) -> None:
        """Give a state another value."""


class ImportContext(FoldingContext):
    """What a converter of one operation may reach.

    Attributes:
        version: Version of iOS of the program's operator set.
        node: Name of the operation.
        outputs: Number of its outputs.
        lists: What is known of the lists of the program.
    """

    def __init__(self, version: int, node: str, outputs: int, around: Surroundings) -> None:
        super().__init__(version, node, outputs, around.assembly)
        self._around = around
        self.lists = around.lists

    def unpacked(self, x: Expr, shape: tuple[int, ...], bits: int) -> Expr:
        """Return what stands for the elements that a weight of bytes holds, `bits` each.

        Raises:
            Unsupported: It is no weight, or holds another number of elements.
        """
        return self._around.unpacked(x, shape, bits, f"{self.node}_elements")

    def note_labels(self, labels: Sequence[str | int]) -> None:
        """Keep the class labels of a classifier, in order of its scores."""
        self._around.note_labels(labels)

    def read_state(self, name: str) -> Expr:
        """Return the present value of a state.

        Raises:
            Unsupported: There is no such state, or this is a block inside the program.
        """
        return self._around.read_state(name)

    def write_state(self, name: str, value: Expr) -> None:
        """Give a state another value, which becomes an output in the end.

        Raises:
            Unsupported: There is no such state, or this is a block inside the program.
        """
        self._around.write_state(name, value)

    def block(self, index: int, *args: Expr) -> list[Expr]:
        """Return what a block of the operation gives for the values of its inputs.

        Raises:
            Incomplete: Some of its operations cannot be converted.
        """
        return self._around.block(index, args, self.node)

    def closure(self, index: int, params: Sequence[Var]) -> tuple[Function, list[Expr]]:
        """Return a block as a function of `params` and of what it takes from around it.

        Returns:
            The function, whose result is a tuple, and the arguments for the parameters that
            follow `params`: the values from around the block.

        Raises:
            Incomplete: Some of its operations cannot be converted.
        """
        return self._around.closure(index, params, self.node)
