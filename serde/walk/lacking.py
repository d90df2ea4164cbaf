"""Nodes of Relay that no format has, and what a refusal says of them."""

from __future__ import annotations

from typing import Final

from serde.relay.ir.adt import Constructor, Match
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite

__all__ = ["why_not_called", "why_without_value"]

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
