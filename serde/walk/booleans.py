"""Arithmetic of booleans, which Relay does modulo 2, and formats in other ways or not at all."""

from __future__ import annotations

from typing import Final

from serde.relay.ir import Arithmetic, Call, Elementwise, Expr, TensorType, has_trait

__all__ = ["HINT", "REASON", "counts_bits"]

REASON: Final = "arithmetic of booleans, which formats take for other things"
HINT: Final = "cast them, or use logical operators"


def counts_bits(node: Expr) -> bool:
    """Whether a node calculates, element by element, with booleans as integers of one bit."""
    if not isinstance(node, Call) or getattr(node.type, "dtype", None) != "bool":
        return False
    types = [node.type, *(arg.type for arg in node.args)]
    is_bool = all(isinstance(type_, TensorType) and type_.dtype == "bool" for type_ in types)
    return is_bool and has_trait(node, Arithmetic) and has_trait(node, Elementwise)
