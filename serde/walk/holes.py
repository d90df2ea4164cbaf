"""What stands for results that there are not, or not yet, and what no format has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import Final, overload

from serde.errors import Unsupported
from serde.relay.ir import Call, Constructor, Expr, Match, OpDef, RefCreate, RefRead, RefWrite, Span
from serde.relay.ir.types import TensorType, TupleType, Type
from serde.relay.ir.visit import children

__all__ = [
    "Hole", "Holes", "Incomplete", "Placeholder", "name_sources", "require_countable",
    "why_not_called", "why_without_value",
]  # fmt: skip


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


class Holes(Sequence[Expr]):
    """Results of a node of which holes follow those that there are.

    A file may claim any number of results in a few bytes, so each hole is made when it is asked
    for.

    Args:
        count: How many results there are in all.
        first: Those that are no holes.
    """

    __slots__ = ("_count", "_first")

    def __init__(self, count: int, first: Sequence[Expr] = ()) -> None:
        self._count = count
        self._first = first

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Expr: ...

    @overload
    def __getitem__(self, index: slice) -> Holes: ...

    def __getitem__(self, index: int | slice) -> Expr | Holes:
        if isinstance(index, slice):
            return Holes(len(range(self._count)[index]), self._first[index])
        place = range(self._count)[index]  # IndexError ends a walk over them
        return self._first[place] if place < len(self._first) else Hole()


class Incomplete(Unsupported):
    """A part of a node, such as a branch, has gaps; they are recorded already."""

    def __init__(self) -> None:
        super().__init__("a part of it cannot be converted")


def name_sources(results: Iterable[Expr], inputs: Iterable[Expr | None], span: Span) -> None:
    """Note `span` on every node between `inputs` and `results` that has none yet."""
    stop = set(inputs)
    pending = [result for result in results if result is not None]
    while pending:
        node = pending.pop()
        if node in stop or node.span is not None or isinstance(node, (OpDef, Placeholder)):
            continue
        node.span = span
        pending.extend(children(node))


_MOST_ELEMENTS: Final = 2**62
_DATA: Final = "values of algebraic data types have no counterpart"
_REFERENCES: Final = "references have no counterpart"
_REASONS: Final[dict[type[Expr], str]] = {
    Constructor: _DATA,
    Match: "a match has no counterpart",
    RefCreate: _REFERENCES,
    RefRead: _REFERENCES,
    RefWrite: _REFERENCES,
}


def why_without_value(node: Expr) -> str:
    """Return why a node that is no value of a format is refused."""
    return _REASONS.get(type(node), "a function as a value has no counterpart")


def why_not_called(node: Call) -> str:
    """Return why a call of no known function is refused."""
    known = isinstance(node.op, Constructor)
    return _DATA if known else "what is called is only known when the model runs"


@lru_cache(maxsize=2**10)
def require_countable(type_: Type | None) -> None:
    """Refuse tensors whose elements int64 cannot count with room to spare.

    Libraries of formats compute with such lengths in int64, and wrap around, lengths beside one
    of 0 included.

    Raises:
        Unsupported: There is such a tensor.
    """
    for each in type_.fields if isinstance(type_, TupleType) else (type_,):
        if not isinstance(each, TensorType):
            continue
        lengths = [length for length in each.shape if isinstance(length, int)]
        if prod(filter(None, lengths)) > _MOST_ELEMENTS:
            raise Unsupported(f"a tensor of the lengths {lengths}")
