"""What a converter from ONNX may reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import onnx

from serde.converters import ImportContext as BaseContext
from serde.converters import Incomplete
from serde.errors import Unsupported
from serde.limits import MAX_INLINE_BYTES
from serde.onnx.elements import ELEMENTS
from serde.relay.dims import Any, Dim
from serde.relay.expr import Expr, Function, Var
from serde.weights import Array, Weight

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

    def known(self, x: Expr) -> Array | None:
        """Return the value of a tensor that does not depend on inputs, if it is small."""

    def dims(self, x: Expr) -> tuple[Dim, ...] | None:
        """Return the elements of an integer tensor over symbols."""

    def weight(self, x: Expr) -> Weight | None:
        """Return the weight that a variable stands for."""

    def fold(self, x: Expr) -> Expr:
        """Return what stands for a new expression."""

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


class ImportContext(BaseContext):
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
        super().__init__(version, node, len(wanted))
        self.declared = declared
        self._wanted = wanted
        self._around = around

    def wants(self, output: int) -> bool:
        """Whether something reads an output."""
        return output < len(self._wanted) and self._wanted[output]

    def known(self, x: Expr) -> Array | None:
        """Return the value of a tensor that is small and does not depend on inputs, or None."""
        return self._around.known(x)

    def constant(self, x: Expr) -> Array:
        """Return the value of a tensor that does not depend on inputs, weights included.

        Raises:
            Unsupported: It is computed when the model runs, or large.
        """
        found = self._around.known(x)
        if found is not None:
            return found
        weight = self._around.weight(x)
        if weight is None:
            raise Unsupported("needs a constant, found a value computed at run time")
        if weight.nbytes > MAX_INLINE_BYTES:
            raise Unsupported(f"needs a small constant, found a weight of {weight.nbytes} bytes")
        return weight.array()

    def is_constant(self, x: Expr) -> bool:
        """Whether :meth:`constant` returns the value of `x`."""
        if self._around.known(x) is not None:
            return True
        weight = self._around.weight(x)
        return weight is not None and weight.nbytes <= MAX_INLINE_BYTES

    def ints(self, x: Expr) -> tuple[int, ...]:
        """Return the elements of a constant tensor of integers.

        Raises:
            Unsupported: It is computed when the model runs.
        """
        return tuple(int(item) for item in self.constant(x).reshape(-1))

    def dims(self, x: Expr) -> tuple[Dim, ...] | None:
        """Return the elements of an integer tensor over symbols; None if one is not known.

        They may be negative integers where the tensor holds codes.
        """
        found = self.partial_dims(x)
        return None if found is None or any(isinstance(dim, Any) for dim in found) else found

    def partial_dims(self, x: Expr) -> tuple[Dim, ...] | None:
        """Return the same with anonymous dimensions where only some elements are known."""
        found = self._around.dims(x)
        return self.ints(x) if found is None and self.is_constant(x) else found

    def fold(self, x: Expr) -> Expr:
        """Return what stands for an expression that was just built: a constant if it is one."""
        return self._around.fold(x)

    def as_optional(self, x: Expr) -> Expr:
        """Return what stands for a sequence of at most one tensor, noted as an optional one."""
        found = self.fold(x)
        self._around.optionals().add(found)
        return found

    def is_optional(self, x: Expr) -> bool:
        """Whether an expression stands for an optional tensor."""
        return x in self._around.optionals()

    def dtype(self, code: int) -> str:
        """Return the dtype of an element type's number.

        Raises:
            Unsupported: It is that of strings, or unknown.
        """
        return element_dtype(code)

    def tensor(self, tensor: onnx.TensorProto) -> Expr:
        """Return the value of a tensor attribute."""
        return self._around.tensor(tensor, self.node)

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
