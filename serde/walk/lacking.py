"""Nodes and values that no format has, and what a refusal says of them."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Final

from serde.errors import Unsupported
from serde.relay.ir.adt import Constructor, Match
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.ir.types import TensorType, TupleType, Type

__all__ = ["require_countable", "why_not_called", "why_without_value"]

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
