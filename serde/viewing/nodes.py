"""What a picture of a model is made of: nodes, what they read, and the boxes they stand in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from serde.core.records import dataclass, field

__all__ = [
    "LONGEST_NAME", "LONGEST_TEXT", "Box", "Graph", "Node", "Operand", "cut_text", "shape_text",
]  # fmt: skip

Kind: TypeAlias = Literal["operator", "input", "output", "unknown"]

LONGEST_NAME: Final = 200
"""Most characters of a name that a page shows; a file may bring a name of any length."""

LONGEST_TEXT: Final = 400
"""Most characters of an attribute or a type that a page shows."""


def shape_text(shape: Iterable[object] | None) -> str:
    """Return a shape for people; ``scalar`` for rank 0, ``unknown`` for None."""
    if shape is None:
        return "unknown"
    return cut_text("\N{MULTIPLICATION SIGN}".join(map(str, shape)) or "scalar")


def cut_text(text: str, most: int = LONGEST_TEXT) -> str:
    """Return a text without its middle where it is longer than `most`; control characters go."""
    if len(text) > most:
        half = (most - 1) // 2
        text = f"{text[:half]}…{text[len(text) - half :]}"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


@dataclass(frozen=True, slots=True)
class Operand:
    """What a node reads in one place: exactly one of a value, a weight and a text.

    Attributes:
        label: What the operator calls it.
        node: Number of the node that gives it, or -1.
        result: Which of that node's results it is.
        weight: Name of the weight, or empty.
        text: A constant, or anything else that is no node.
    """

    label: str
    node: int = -1
    result: int = 0
    weight: str = ""
    text: str = ""


@dataclass(slots=True)
class Node:
    """A node of the picture.

    Attributes:
        op: Its operator.
        kind: Whether it is an input, an output, an operator, or one that cannot be converted.
        category: Group of operators, by which it is coloured.
        name: What the source calls it.
        box: Number of the box that it stands in.
        attributes: Name and value of each attribute, and whether that is the default.
        operands: What it reads, in order.
        types: Types of its results.
        values: Names of its results in the source, where they are not its own.
        issues: Why it cannot be converted.
        parts: The operators of Relay that it becomes, where it is none itself.
    """

    op: str
    kind: Kind = "operator"
    category: str = ""
    name: str = ""
    box: int = 0
    attributes: list[tuple[str, str, bool]] = field(default_factory=list)
    operands: list[Operand] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    issues: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Box:
    """What a graph inside another stands in: a branch, the body of a loop, a function.

    Attributes:
        title: What it is, such as ``then``.
        owner: Number of the node whose graph it is; -1 for the model and its functions.
    """

    title: str
    owner: int = -1


@dataclass(slots=True)
class Graph:
    """A model as a picture shows it.

    Attributes:
        nodes: The nodes, each after those that it reads.
        boxes: Where they stand; the first is the model itself.
    """

    nodes: list[Node] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=lambda: [Box("model")])
