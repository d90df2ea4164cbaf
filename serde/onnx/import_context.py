"""What a converter from ONNX may reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import numpy as np
import onnx
from onnx import numpy_helper

from serde.errors import Unsupported
from serde.onnx.elements import ELEMENTS
from serde.onnx.undecided import Decisions
from serde.relay.ir.expr import Expr, Function, Var
from serde.walk.assembly import Assembly
from serde.walk.folding import FoldingContext
from serde.walk.table import Incomplete
from serde.weights import Array

__all__ = ["ImportContext", "Surroundings", "element_dtype"]


def element_dtype(code: int) -> str:
    """Return the name of an element type.

    Raises:
        Unsupported: It is that of strings, or unknown.
    """
    if code == onnx.TensorProto.STRING:
        raise Unsupported("a tensor of strings has no counterpart in Relay")
    if code not in ELEMENTS:
        raise Unsupported(f"element type {code} is unknown")
    return ELEMENTS[code].dtype


class Surroundings(Protocol):
    """What the walk offers to the context of one node."""

    assembly: Assembly
    decisions: Decisions

    def optionals(self) -> set[Expr]:
        """Return the sequences that stand for optional tensors."""

    def tensor(self, tensor: onnx.TensorProto, name: str) -> Expr:
        """Return a tensor of the file: a constant if it is small, else a new weight."""

    def sparse_tensor(self, tensor: onnx.SparseTensorProto, name: str) -> Expr:
        """Return a sparse tensor of the file, filled up."""

    def subgraph(self, graph: onnx.GraphProto, args: Sequence[Expr], label: str) -> list[Expr]:
        """Return the outputs of a graph for arguments."""

    def closure(
        self,
        graph: onnx.GraphProto,
        params: Sequence[Var],
        args: Sequence[Expr],
        label: str,
    ) -> tuple[Function, list[Expr]]:
        """Return a graph as a function, and the values of its last parameters."""


class ImportContext(FoldingContext):
    """What a converter of one ONNX node may reach.

    Attributes:
        version: Version of the node's operator set.
        node: Name of the node.
        outputs: Number of outputs up to the last that something reads.
        declared: Number of outputs that the node lists.
    """

    def __init__(
        self,
        version: int,
        node: str,
        wanted: Sequence[bool],
        around: Surroundings,
        *,
        declared: int,
    ) -> None:
        super().__init__(version, node, len(wanted), around.assembly)
        self.declared = declared
        self._wanted = wanted
        self._around = around

    def wants(self, output: int) -> bool:
        """Whether something reads an output."""
        return output < len(self._wanted) and self._wanted[output]

    def as_optional(self, x: Expr) -> Expr:
        """Return what stands for a sequence of at most one tensor, noted as an optional one."""
        found = self.fold(x)
        self._around.optionals().add(found)
        return found

    def is_optional(self, x: Expr) -> bool:
        """Whether an expression stands for an optional tensor."""
        return x in self._around.optionals()

    def undecided(self, condition: Expr, yes: Expr, no: Expr) -> Expr:
        """Return one of two values without a common type, which what follows is to tell apart."""
        return self._around.decisions.undecided(condition, yes, no, self.node)

    def dtype(self, code: int) -> str:
        """Return the dtype of an element type's number.

        Raises:
            Unsupported: It is that of strings, or unknown.
        """
        return element_dtype(code)

    def tensor(self, tensor: onnx.TensorProto) -> Expr:
        """Return the value of a tensor attribute."""
        return self._around.tensor(tensor, self.node)

    def array(self, values: Array) -> Expr:
        """Return an array that the node holds as lists of numbers, as :meth:`tensor` does."""
        return self.tensor(numpy_helper.from_array(np.ascontiguousarray(values)))

    def sparse_tensor(self, tensor: onnx.SparseTensorProto) -> Expr:
        """Return the value of a sparse tensor attribute."""
        return self._around.sparse_tensor(tensor, self.node)

    def subgraph(self, graph: onnx.GraphProto, *args: Expr, label: str = "") -> list[Expr]:
        """Return the outputs of a subgraph as expressions over `args` and the values around it.

        Args:
            graph: The subgraph.
            args: A value for each of its inputs.
            label: What the node calls it, for messages.

        Raises:
            Incomplete: Some of its nodes cannot be converted.
        """
        return self._around.subgraph(graph, args, f"{self.node}/{label or graph.name}")

    def subgraphs(self, graphs: Mapping[str, onnx.GraphProto]) -> list[list[Expr]]:
        """Return the outputs of several subgraphs without inputs; gaps of all are recorded.

        Args:
            graphs: The subgraphs by what the node calls them.

        Raises:
            Incomplete: Some of their nodes cannot be converted.
        """
        found = []
        for label, graph in graphs.items():
            with suppress(Incomplete):
                found.append(self.subgraph(graph, label=label))
        if len(found) < len(graphs):
            raise Incomplete
        return found

    def closure(
        self,
        graph: onnx.GraphProto,
        params: Sequence[Var],
        args: Sequence[Expr] | None = None,
        *,
        label: str = "",
    ) -> tuple[Function, list[Expr]]:
        """Return a subgraph as a function of `params` and of what it takes from around it.

        Args:
            graph: The subgraph.
            params: First parameters of the function, typed.
            args: A value over them for each input of the graph; they themselves if left out.
            label: What the node calls it, for messages.

        Returns:
            The function, whose result is a tuple, and the arguments for the parameters that
            follow `params`: the values from around the subgraph.

        Raises:
            Incomplete: Some of its nodes cannot be converted.
        """
        given = params if args is None else args
        return self._around.closure(graph, params, given, f"{self.node}/{label or graph.name}")
