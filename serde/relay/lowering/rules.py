"""What Relay's own operators are made of where a target lacks them, or lacks a form of them.

Unlike the body of an extension operator it is no other way to say the same: an operator that a
target has stays. The rules of a category of operators stand in the module of its name, which is
imported once a conversion has such an operator.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Final

from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import category_of

__all__ = ["NO_SIMPLER", "rule"]

NO_SIMPLER: Final = "has no counterpart"
"""What a rule raises that has nothing simpler; what the target takes tells more."""

_WITH_RULES: Final = frozenset({"activation", "elementwise", "index", "reduce"})
"""Categories of ``relay/op`` that have a table ``RULES``."""


@cache
def rule(name: str) -> Callable[..., Expr] | None:
    """Return what makes calls of an operator of simpler ones, if there is such a rule.

    The function takes operands and attributes, and raises
    :class:`~serde.errors.Unsupported` for a call that is as simple as can be.
    """
    category = category_of(name)
    if category not in _WITH_RULES:
        return None
    rules: dict[str, Callable[..., Expr]]
    rules = importlib.import_module(f"serde.relay.lowering.{category}").RULES
    return rules.get(name)
