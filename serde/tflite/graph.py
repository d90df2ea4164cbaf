"""Graphs while they are written: the main one, branches, conditions and bodies of loops."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from serde.core import Array, Weight
from serde.relay.ir import TensorType, UniqueNames
from serde.tflite.model import Operator, Subgraph, Tensor
from serde.walk.placement import Scope

__all__ = ["MAX_LEVEL", "GraphScope", "Value", "taken"]

MAX_LEVEL: Final = 31
"""How many graphs may lie inside each other."""


class GraphScope(Scope):
    """A graph with the tensors and operators that it has so far.

    Args:
        parent: The graph around it.
        step: What it is in that.

    Attributes:
        tensors: Its tensors.
        operators: Its operators.
        stored: Numbers of constants and weights that are stored in it.
        seen: Numbers of tensors that an operator has worked with.
    """

    __slots__ = ("_captures", "_names", "operators", "seen", "stored", "tensors")

    def __init__(self, parent: Scope | None = None, step: str = "") -> None:
        super().__init__(parent, step)
        self.tensors: list[Tensor] = []
        self.operators: list[Operator] = []
        self.stored: dict[Hashable, int] = {}
        self.seen = set[int]()
        self._names = UniqueNames()
        self._captures: dict[Value, int] = {}

    def add(self, name: str, type_: TensorType, values: Weight | None = None) -> int:
        """Return the number of a new tensor."""
        shape = tuple(dim if isinstance(dim, int) else -1 for dim in type_.shape)
        unique = self._names.reserve(name or "value")
        self.tensors.append(Tensor(unique, shape, type_.dtype, values=values))
        return len(self.tensors) - 1

    def number(self, x: Value) -> int:
        """Return the number of a tensor here; one of a graph around this becomes an input."""
        if x.home is self or x.home is None:
            return x.number
        if x not in self._captures:
            tensor = x.home.tensors[x.number]
            self.tensors.append(replace(tensor, name=self._names.reserve(tensor.name)))
            self._captures[x] = len(self.tensors) - 1
        return self._captures[x]

    @property
    def captures(self) -> Sequence[Value]:
        """What is taken from graphs around this one."""
        return list(self._captures)

    def close(
        self, inputs: Iterable[Value], captures: Iterable[Value], outputs: Sequence[int]
    ) -> Subgraph:
        """Return the graph.

        Args:
            inputs: Its own inputs.
            captures: What comes behind them, of which it need not take all.
            outputs: Numbers of its outputs.
        """
        numbers = tuple(self.number(each) for each in (*inputs, *captures))
        name = self.path().rstrip("/") or "main"
        return Subgraph(name, self.tensors, numbers, tuple(outputs), self.operators)


def taken(scopes: Iterable[GraphScope]) -> list[Value]:
    """Return what several graphs take from around them, each once."""
    return list(dict.fromkeys(each for scope in scopes for each in scope.captures))


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of a graph.

    Attributes:
        number: Its number; -1 of a constant or weight that no operator has taken yet.
        type: Its Relay type.
        data: Its value, where it is a constant.
        weight: Name of its weight.
        home: The graph; None of a constant or weight.
    """

    number: int
    type: TensorType | None = field(default=None, compare=False)
    data: Array | None = field(default=None, compare=False)
    weight: str | None = None
    home: GraphScope | None = field(default=None, repr=False)

    @property
    def is_known(self) -> bool:
        """Whether it does not depend on inputs."""
        return self.data is not None or self.weight is not None
