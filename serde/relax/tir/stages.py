"""What a function of TIR computes: buffers filled one after the other, each over its axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any as AnyValue

from serde.core import dataclass
from serde.relay.ir import Dim

__all__ = ["Axis", "Node", "Stage", "post_order"]


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
    """An expression of scalars; of one function, the same one is one object.

    Attributes:
        op: What TIR calls it, or ``number``, ``axis``, ``length``, ``load``.
        dtype: The dtype of its value.
        args: The operands, of a load the indices.
        held: The number, the axis, the length in the names of ``Lengths``, the buffer's handle.
    """

    op: str
    dtype: str
    args: tuple[Node, ...] = ()
    held: AnyValue = None


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
        condition: Which values are combined, None for all.
        combine: How values along reduced axes are combined: an operator of two operands,
            ``argmax`` or ``argmin``; ``""`` where nothing is reduced.
        init: What the combination begins with, None for what the buffer holds already.
        position: What ``argmax`` and ``argmin`` give instead of the value.
        last: Whether they give the last of equal values.
    """

    name: str
    buffer: int
    shape: tuple[Dim, ...]
    dtype: str
    axes: tuple[Axis, ...]
    indices: tuple[Node, ...]
    value: Node
    condition: Node | None = None
    combine: str = ""
    init: Node | None = None
    position: Node | None = None
    last: bool = False


def post_order(root: Node, op: str = "") -> Iterator[Node]:
    """Yield each node of an expression once, operands first; of one kind only if it is told."""
    seen: set[Node] = set()
    pending = [(root, False)]
    while pending:
        node, ready = pending.pop()
        if ready:
            if op in ("", node.op):
                yield node
        elif node not in seen:
            seen.add(node)
            pending.append((node, True))
            pending += [(each, False) for each in reversed(node.args)]
