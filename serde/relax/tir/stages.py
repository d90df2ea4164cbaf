"""What a function of TIR computes: buffers filled one after the other, each over its axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any as AnyValue

from serde.core import dataclass
from serde.relay.ir import Dim

__all__ = [
    "Apply", "Axis", "Length", "Load", "Node", "Number", "Position", "Stage", "post_order",
]  # fmt: skip


@dataclass(slots=True, eq=False)
class Axis:
    """A variable that takes each integer from 0 on.

    Attributes:
        name: A symbol of its own in index expressions.
        extent: How many values it takes.
        reduced: Whether what is computed for each is combined to one.
    """

    name: str
    extent: Dim
    reduced: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An expression of scalars.

    Attributes:
        dtype: Its dtype.
    """

    dtype: str


@dataclass(frozen=True, slots=True, eq=False)
class Number(Node):
    """A constant."""

    value: AnyValue


@dataclass(frozen=True, slots=True, eq=False)
class Position(Node):
    """The value of an axis."""

    axis: Axis


@dataclass(frozen=True, slots=True, eq=False)
class Length(Node):
    """A length that the function is given, in the names of ``Lengths``."""

    dim: Dim


@dataclass(frozen=True, slots=True, eq=False)
class Load(Node):
    """An element of a buffer, which is told by the handle of the buffer."""

    buffer: int
    indices: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Apply(Node):
    """A function of scalars, by the name of TIR's class or intrinsic."""

    op: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A buffer that is filled.

    Attributes:
        name: Of the block.
        buffer: The handle of the buffer.
        shape: Its lengths.
        dtype: Its dtype.
        axes: What it is computed over.
        indices: Where each element is stored.
        value: The element; of a reduction what is combined.
        combine: How values along reduced axes are combined: an operator of two operands,
            ``argmax`` or ``argmin``; ``""`` where nothing is reduced.
        init: What the combination begins with, None for what the buffer holds already.
        position: What ``argmax`` and ``argmin`` give instead of the value.
        last: Whether they give the last of equal values.
        condition: Which values are combined, None for all.
    """

    name: str
    buffer: int
    shape: tuple[Dim, ...]
    dtype: str
    axes: tuple[Axis, ...]
    indices: tuple[Node, ...]
    value: Node
    combine: str = ""
    init: Node | None = None
    position: Node | None = None
    last: bool = False
    condition: Node | None = None


def post_order(*roots: Node) -> Iterator[Node]:
    """Yield each node of expressions once, operands first."""
    seen: set[Node] = set()
    pending = [(root, False) for root in reversed(roots)]
    while pending:
        node, ready = pending.pop()
        if ready:
            yield node
        elif node not in seen:
            seen.add(node)
            pending.append((node, True))
            inner = node.indices if isinstance(node, Load) else getattr(node, "args", ())
            pending += [(each, False) for each in reversed(inner)]
