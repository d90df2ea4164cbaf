"""What stands beside sequences that are packed without padding."""

from __future__ import annotations

from serde.core.records import dataclass
from serde.relay.ir.expr import Expr

__all__ = ["PackedSequences"]


@dataclass(frozen=True, eq=False)
class PackedSequences:
    """The same sequences with padding.

    Attributes:
        padded: Time first, then sequences.
        lengths: How long each sequence is.
    """

    padded: Expr
    lengths: Expr
