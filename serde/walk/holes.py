"""What stands for results of a model that there are not, or not yet."""

from __future__ import annotations

from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.relay.ir.types import Type

__all__ = ["Hole", "Incomplete", "Placeholder"]


class Placeholder(Expr):
    """Stands where an expression will be, or could not be made; it is never part of a module."""

    __slots__ = ()


class Hole(Placeholder):
    """Stands for the result of a node that could not be converted.

    Args:
        type_: Its type, where the file declares it.
    """

    __slots__ = ()

    def __init__(self, type_: Type | None = None) -> None:
        self.below = ()
        self.type = type_
        self.span = None

    def __repr__(self) -> str:
        return "Hole"


class Incomplete(Unsupported):
    """A part of a node, such as a branch, has gaps; they are recorded already."""

    def __init__(self) -> None:
        super().__init__("a part of it cannot be converted")
