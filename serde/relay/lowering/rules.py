"""What Relay's own operators are made of where a target lacks them, or lacks a form of them.

Unlike the body of an extension operator it is no other way to say the same: an operator that a
target has stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from serde.relay.ir.expr import Expr
from serde.relay.lowering import activation, elementwise, index, reduce

__all__ = ["rule"]

_RULES: Final[dict[str, Callable[..., Expr]]] = {
    **activation.RULES,
    **elementwise.RULES,
    **index.RULES,
    **reduce.RULES,
}


def rule(name: str) -> Callable[..., Expr] | None:
    """Return what makes calls of an operator of simpler ones, if there is such a rule.

    The function takes operands and attributes, and raises
    :class:`~serde.errors.Unsupported` for a call that is as simple as can be.
    """
    return _RULES.get(name)
