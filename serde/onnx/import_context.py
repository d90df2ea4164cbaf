"""What a converter from ONNX may reach."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

import serde.relay as relay
from serde.core import Array, ArrayWeight, Issue, Weight, dataclass, field
from serde.errors import Unsupported
from serde.io.packed import PackedWeight
from serde.onnx.elements import element_dtype
from serde.onnx.model import OnnxModel
from serde.onnx.scopes import Scope
from serde.onnx.undecided import Decisions
from serde.relay.ir.expr import Expr
from serde.relay.run.computed import ComputedWeight
from serde.relay.transform.fold_shape import MAX_VALUES
from serde.walk.holes import Incomplete
from serde.walk.import_context import GraphImporter, ImportContext as BaseContext

__all__ = ["Facts", "ImportContext"]


@dataclass
class Facts:
    """What a conversion knows of the whole model.

    Attributes:
        model: What is walked.
        optionals: The sequences that stand for optional tensors.
        decisions: What is known of conditions whose branches differ in rank.
        narrowed: Whether the caller gave shapes that the model does not declare.
        impossible: Paths of graphs inside nodes that cannot have these shapes.
    """

    model: OnnxModel
    optionals: set[Expr] = field(default_factory=set)
    decisions: Decisions = field(default_factory=Decisions)
    narrowed: bool = False
    impossible: set[str] = field(default_factory=set)


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
        label: str,
        node: onnx.NodeProto,
        wanted: Sequence[bool],
        walk: GraphImporter,
        scope: Scope,
        facts: Facts,
    ) -> None:
        super().__init__(version, label, len(wanted), walk, scope)
        self.declared = len(node.output)
        self._wanted = wanted
        self._facts = facts

    def wants(self, output: int) -> bool:
        """Whether something reads an output."""
        return output < len(self._wanted) and self._wanted[output]

    def as_optional(self, x: Expr) -> Expr:
        """Return what stands for a sequence of at most one tensor, noted as an optional one."""
        found = self.fold(x)
        self._facts.optionals.add(found)
        return found

    def is_optional(self, x: Expr) -> bool:
        """Whether an expression stands for an optional tensor."""
        return x in self._facts.optionals

    def undecided(self, condition: Expr, yes: Expr, no: Expr) -> Expr:
        """Return one of two values without a common type, which what follows is to tell apart."""
        return self._facts.decisions.undecided(condition, yes, no, self.node)

    def dtype(self, code: int) -> str:
        """Return the dtype of an element type's number.

        Raises:
            Unsupported: It is that of strings, or unknown.
        """
        return element_dtype(code)

    def tensor(self, tensor: onnx.TensorProto) -> Expr:
        """Return the value of a tensor attribute."""
        return self._import_weight(self._weight(tensor))

    def values(self, tensor: onnx.TensorProto) -> Array:
        """Return the values of a tensor attribute that the converter itself needs."""
        return self._weight(tensor).array()

    def _weight(self, tensor: onnx.TensorProto) -> Weight:
        element_dtype(tensor.data_type)
        return self._facts.model.weight(tensor)

    def array(self, values: Array) -> Expr:
        """Return an array that the node holds as lists of numbers, as :meth:`tensor` does."""
        return self.tensor(numpy_helper.from_array(np.ascontiguousarray(values)))

    def sparse_tensor(self, tensor: onnx.SparseTensorProto) -> Expr:
        """Return the value of a sparse tensor attribute."""
        return self._import_weight(self._facts.model.sparse_weight(tensor, self.node))

    def nibbles(self, x: Expr, shape: tuple[int, ...]) -> Expr | None:
        """Return the integers of 4 bits in the bytes of a weight, which stay where they are."""
        known = self.known(x)
        packed = self._assembly.weight(x) if known is None else ArrayWeight(known)
        if packed is None:
            return None
        if 2 * packed.size != math.prod(shape):
            raise Unsupported(f"{packed.size} bytes for {math.prod(shape)} numbers of 4 bits")
        values = PackedWeight(packed.reshaped((packed.size,)), shape, "uint4", 4)
        return self._import_weight(values)

    def spread(self, value: int, dtype: str, shape: tuple[int, ...]) -> Expr:
        """Return a weight with one number everywhere, which takes no memory."""
        whole = relay.broadcast_to(relay.const(value, dtype), shape)
        return self._import_weight(ComputedWeight(whole, {}))

    def _import_weight(self, weight: Weight) -> Expr:
        return self._assembly.tensor(weight, self.node, inline=MAX_VALUES)

    def subgraph(self, graph: onnx.GraphProto, *args: Expr, label: str = "") -> list[Expr]:
        """Return the outputs of a subgraph; without a label it goes by its own name."""
        return super().subgraph(graph, *args, label=label or graph.name)

    def subgraphs(self, graphs: Mapping[str, onnx.GraphProto]) -> list[list[Expr]]:
        """Return the outputs of several subgraphs without inputs; gaps of all are recorded.

        One that cannot have the shapes that the caller gave is left out, beside one that can.

        Args:
            graphs: The subgraphs by what the node calls them.

        Raises:
            Incomplete: Some of their nodes cannot be converted.
        """
        found: dict[str, list[Expr]] = {}
        gaps: dict[str, list[Issue]] = {}
        issues = self._importer.report.issues
        for label, graph in graphs.items():
            before = len(issues)
            try:
                found[label] = self.subgraph(graph, label=label)
            except Incomplete:
                gaps[label] = issues[before:]
                del issues[before:]
        if gaps and not (found and self._facts.impossible.issuperset(map(self._path, gaps))):
            issues += [each for found_there in gaps.values() for each in found_there]
            raise Incomplete
        self._facts.decisions.notes += [
            f"{self.node}: its {label} branch cannot have the given shapes, and is left: "
            f"{each[0].node}: {each[0].reason}"
            for label, each in gaps.items()
        ]
        return list(found.values())
