"""What Relay's own operators are made of where a target lacks them, or lacks a form of them.

Unlike the body of an extension operator it is no other way to say the same: an operator that a
target has stays.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final

from serde.relay.ir.expr import Expr

__all__ = ["rule"]

_HOMES: Final = {
    "activation": "nn.leaky_relu nn.log_softmax nn.prelu nn.relu",
    "elementwise": "abs cast_like ceil copy floor isfinite isinf isnan log10 log2 round trunc "
    "trunc_divide",
    "index": "searchsorted",
    "reduce": "argmax argmin mean",
}
"""Modules beside this one, each loaded when it is asked for, and the operators of their rules."""

_MODULES: Final = {name: home for home, names in _HOMES.items() for name in names.split()}


def rule(name: str) -> Callable[..., Expr] | None:
    """Return what makes calls of an operator of simpler ones, if there is such a rule.

    The function takes operands and attributes, and raises
    :class:`~serde.errors.Unsupported` for a call that is as simple as can be.
    """
    home = _MODULES.get(name)
    if home is None:
        return None
    found: Callable[..., Expr] = import_module(f"serde.relay.lowering.{home}").RULES[name]
    return found
