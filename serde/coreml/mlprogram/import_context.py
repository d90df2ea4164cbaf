"""What a converter from ML Programs may reach."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any as AnyValue

import serde.relay as relay
from serde.core import ArrayWeight, dataclass, field
from serde.coreml.mlprogram.constants import NonTensor
from serde.coreml.mlprogram.tensor_lists import ListFacts
from serde.errors import FormatError, Unsupported
from serde.io.packed import PackedWeight
from serde.relay.ir.expr import Constant, Expr
from serde.walk.import_context import GraphImporter, ImportContext as BaseContext
from serde.walk.scope import Scope as BaseScope

__all__ = ["Facts", "ImportContext", "Scope", "Value"]

Value = Expr | NonTensor


@dataclass
class Facts:
    """What a conversion knows of the whole program.

    Attributes:
        lists: What is known of its lists.
        states: The present value of each state.
        written: Names of the states that are written, in order.
        labels: Class labels of a classifier.
    """

    lists: ListFacts = field(default_factory=ListFacts)
    states: dict[str, Expr] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    labels: tuple[str | int, ...] = ()


@dataclass(eq=False)
class Scope(BaseScope[str, Value]):
    """The values of one block by name; a block inside sees those around it."""

    def parameter_name(self, name: str) -> str:
        """Return what the parameter for a captured value is called: they are numbered."""
        return f"captured{len(self.captures or ())}"


class ImportContext(BaseContext):
    """What a converter of one operation may reach.

    Attributes:
        version: Version of iOS of the program's operator set.
        node: Name of the operation.
        outputs: Number of its outputs.
        lists: What is known of the lists of the program.
    """

    _scope: Scope

    def __init__(
        self, version: int, node: str, op: AnyValue, walk: GraphImporter, scope: Scope, facts: Facts
    ) -> None:
        super().__init__(version, node, len(op.outputs), walk, scope)
        self.lists = facts.lists
        self._blocks = op.blocks
        self._facts = facts

    def graph(self, index: int) -> AnyValue:
        """Return a block of the operation.

        Raises:
            FormatError: There is none.
        """
        if index >= len(self._blocks):
            message = f"{self.node}: expected {index + 1} blocks"
            raise FormatError(message, path=self._scope.source)
        return self._blocks[index]

    def unpacked(self, x: Expr, shape: tuple[int, ...], bits: int) -> Expr:
        """Return what stands for the elements that a weight of bytes holds, `bits` each.

        Raises:
            Unsupported: It is no weight, or holds another number of elements.
        """
        weight = self._assembly.weight(x)
        if weight is None and isinstance(x, Constant):
            weight = ArrayWeight(x.data)
        if weight is None:
            raise Unsupported("packed elements that are computed at run time")
        if weight.size != -(-math.prod(shape) * bits // 8):
            raise Unsupported(f"{weight.size} bytes do not hold {bits} bits each of {list(shape)}")
        if bits == 8:
            return relay.reshape(x, shape)
        packed = PackedWeight(weight, shape, "uint8", bits)
        return self._assembly.tensor(packed, f"{self.node}_elements")

    def note_labels(self, labels: Sequence[str | int]) -> None:
        """Keep the class labels of a classifier, in order of its scores."""
        self._facts.labels = tuple(labels)

    def read_state(self, name: str) -> Expr:
        """Return the present value of a state.

        Raises:
            Unsupported: There is no such state, or this is a block inside the program.
        """
        return self._facts.states[self._state(name)]

    def write_state(self, name: str, value: Expr) -> None:
        """Give a state another value, which becomes an output in the end.

        Raises:
            Unsupported: There is no such state, or this is a block inside the program.
        """
        self._facts.states[self._state(name)] = value
        if name not in self._facts.written:
            self._facts.written.append(name)

    def _state(self, name: str) -> str:
        if name not in self._facts.states:
            raise Unsupported(f"no state is called {name!r}")
        if self._scope.parent is not None:
            raise Unsupported("a state is used in a block inside the program")
        return name
