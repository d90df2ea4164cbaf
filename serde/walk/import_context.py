"""What a converter into Relay may reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, Protocol

from serde.core import MAX_RANK, Array, Report, budget, current_limits
from serde.errors import Unsupported
from serde.relay.ir import Any, Dim, Expr, Function, TensorType, Var
from serde.walk.assembly import Assembly
from serde.walk.context import TypedContext
from serde.walk.scope import Scope

__all__ = ["GraphImporter", "ImportContext"]


class GraphImporter(Protocol):
    """The walk, as far as contexts reach it: it converts the graphs inside a node."""

    assembly: Assembly
    report: Report

    def subgraph(self, graph: AnyValue, scope: AnyValue, args: Sequence[Expr]) -> list[Expr]:
        """Return the outputs of a graph for arguments, in a scope made for it."""

    def closure(
        self, graph: AnyValue, scope: AnyValue, params: Sequence[Var], args: Sequence[Expr]
    ) -> tuple[Function, list[Expr]]:
        """Return a graph as a function, and the values of its last parameters."""


class ImportContext(TypedContext[Expr]):
    """What a converter into Relay may reach: the base of the contexts of all formats.

    Attributes:
        version: Version of the operator set in force for the node.
        node: Name of the node, with the graphs around it.
        outputs: Number of outputs that the node has.
        contradicted: Whether the types of its inputs turned out to be none that it can have.
    """

    def __init__(
        self,
        version: int,
        node: str = "",
        outputs: int = 1,
        walk: GraphImporter | None = None,
        scope: Scope[AnyValue, AnyValue] | None = None,
    ) -> None:
        self.version = version
        self.node = node
        self.outputs = outputs
        self.contradicted = False
        self._walk = walk
        self._scope: Scope[AnyValue, AnyValue] = Scope() if scope is None else scope
        self._assembly = Assembly() if walk is None else walk.assembly

    def type(self, x: Expr) -> TensorType:
        """Return the type of a tensor.

        Raises:
            Unsupported: It is not known, or `x` is no tensor.
        """
        if isinstance(x.type, TensorType):
            return x.type
        raise Unsupported(f"expected a tensor of known type, found {x.type!r}")

    def rank(self, x: Expr) -> int:
        """Return the number of axes of a tensor."""
        return self.type(x).rank

    def axis_count(self, x: Expr) -> int:
        """Return of how many axes a vector tells something: how many elements it has.

        Raises:
            Unsupported: It is no vector, or its length is symbolic or no number of axes.
        """
        shape = self.type(x).shape
        if len(shape) != 1 or not isinstance(shape[0], int) or shape[0] > MAX_RANK:
            raise Unsupported(f"needs a number for each axis, found {self.type(x)!r}")
        return shape[0]

    def known(self, x: Expr) -> Array | None:
        """Return the value of a tensor that is small and does not depend on inputs, or None."""
        return self._assembly.known(x)

    def constant(self, x: Expr) -> Array:
        """Return the value of a tensor that does not depend on inputs, weights included.

        Raises:
            LimitError: It is a weight of more bytes than may be looked at.
            Unsupported: It is computed when the model runs.
        """
        found = self._assembly.known(x)
        if found is not None:
            return found
        weight = self._assembly.weight(x)
        if weight is None:
            raise Unsupported("needs a constant, found a value computed at run time")
        budget().check("values", weight.nbytes, "a weight whose values decide what is made")
        return weight.array()

    def is_constant(self, x: Expr) -> bool:
        """Whether :meth:`constant` returns the value of `x`."""
        if self._assembly.known(x) is not None:
            return True
        weight = self._assembly.weight(x)
        return weight is not None and weight.nbytes <= current_limits().values

    def item(self, x: Expr) -> AnyValue:
        """Return the only element of a constant tensor.

        Raises:
            Unsupported: It is computed when the model runs, or not the only one.
        """
        found = self.constant(x)
        if found.size != 1:
            raise Unsupported(f"needs one element, found {self.type(x)!r}")
        return found.item()

    def ints(self, x: Expr) -> tuple[int, ...]:
        """Return the elements of a constant tensor of integers.

        Raises:
            Unsupported: It is computed when the model runs, or no number.
        """
        try:
            return tuple(int(item) for item in self.constant(x).reshape(-1))
        except (OverflowError, ValueError) as error:
            raise Unsupported(f"needs whole numbers: {error}") from None

    def dims(self, x: Expr) -> tuple[Dim, ...] | None:
        """Return the elements of an integer tensor over symbols; None if one is not known.

        They may be negative integers where the tensor holds codes.
        """
        found = self.partial_dims(x)
        return None if found is None or any(isinstance(dim, Any) for dim in found) else found

    def partial_dims(self, x: Expr) -> tuple[Dim, ...] | None:
        """Return the same with anonymous dimensions where only some elements are known."""
        found = self._assembly.dims(x)
        return self.ints(x) if found is None and self.is_constant(x) else found

    def fold(self, x: Expr) -> Expr:
        """Return what stands for an expression that was just built: a constant if it is one."""
        return self._assembly.fold(x)

    def subgraph(self, graph: AnyValue, *args: Expr, label: str = "") -> list[Expr]:
        """Return the outputs of a graph inside the node.

        They are expressions over `args` and the values around the node.

        Args:
            graph: The graph.
            args: A value for each of its inputs.
            label: What the node calls it, for messages.

        Raises:
            Incomplete: Some of its nodes cannot be converted.
        """
        return self._importer.subgraph(graph, self._scope.inner(self._path(label)), args)

    def closure(
        self,
        graph: AnyValue,
        params: Sequence[Var],
        args: Sequence[Expr] | None = None,
        *,
        label: str = "",
    ) -> tuple[Function, list[Expr]]:
        """Return a graph inside the node as a function.

        It is one of `params` and of what the graph takes from around the node.

        Args:
            graph: The graph.
            params: First parameters of the function, typed.
            args: A value over them for each input of the graph; they themselves if left out.
            label: What the node calls it, for messages.

        Returns:
            The function, whose result is a tuple, and the arguments for the parameters that
            follow `params`: the values from around the node.

        Raises:
            Incomplete: Some of its nodes cannot be converted.
        """
        given = params if args is None else args
        return self._importer.closure(graph, self._scope.inner(self._path(label)), params, given)

    @property
    def _importer(self) -> GraphImporter:
        if self._walk is None:
            raise Unsupported("graphs inside a node that is converted by itself")
        return self._walk

    def _path(self, label: str) -> str:
        return f"{self.node}/{label}" if label else self.node
