"""What a converter from MXNet may reach."""

from __future__ import annotations

from collections.abc import Sequence

from serde.errors import Unsupported
from serde.mxnet.model import Graph, Node
from serde.relay.ir.expr import Expr
from serde.walk.import_context import GraphImporter, ImportContext as BaseContext
from serde.walk.scope import Scope

__all__ = ["ImportContext"]


class ImportContext(BaseContext):
    """What an importer of a node may reach.

    Attributes:
        np_shape: Whether MXNet runs the graph with NumPy's shapes, under which there are scalars.
    """

    def __init__(
        self,
        label: str,
        node: Node,
        outputs: int,
        walk: GraphImporter,
        scope: Scope[int, Sequence[Expr]],
        *,
        np_shape: bool,
    ) -> None:
        super().__init__(1, label, outputs, walk, scope)
        self.np_shape = np_shape
        self._graphs = node.subgraphs

    def graph(self, index: int) -> Graph:
        """Return a graph inside the node.

        Raises:
            Unsupported: There is none.
        """
        if index >= len(self._graphs):
            raise Unsupported(f"expected {index + 1} graphs inside, found {len(self._graphs)}")
        return self._graphs[index]
