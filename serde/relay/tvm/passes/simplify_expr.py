"""Shorter expressions of the same value."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from serde.relay.ir import Function, post_order
from serde.relay.tvm.dataflow_pattern.rewriting import DFPatternCallback, rewrite
from serde.relay.tvm.passes.simplify_arithmetic import (
    FILLED,
    EliminateIdentity,
    FullElementwise,
    SimplifyAdd,
    SimplifyAdjacentMultiplyOrAdd,
    SimplifyBinomial,
    SimplifyRSqrt,
    SwitchAddMultiply,
)
from serde.relay.tvm.passes.simplify_casts import (
    SimplifyClip,
    SimplifyClipAndConsecutiveCast,
    SimplifyConsecutiveCast,
    SimplifyDequantizedOrder,
    SimplifySameCast,
)
from serde.relay.tvm.passes.simplify_shapes import (
    ConcretizeLike,
    SimplifyNoOpTranspose,
    SimplifyReshape,
    SimplifyTranspose,
)
from serde.relay.tvm.passes.typed import TypedPass, operator_of

__all__ = ["SimplifyExpr", "SimplifyExprPostAlterOp"]

_ALL: tuple[Callable[[], DFPatternCallback], ...] = (
    ConcretizeLike, SimplifyAdd, SimplifyRSqrt, EliminateIdentity, SimplifyReshape,
    SimplifyTranspose, SimplifyNoOpTranspose, SimplifySameCast, SimplifyConsecutiveCast,
    FullElementwise, SwitchAddMultiply, SimplifyAdjacentMultiplyOrAdd, SimplifyDequantizedOrder,
    SimplifyClipAndConsecutiveCast, SimplifyClip, SimplifyBinomial,
)  # fmt: skip
"""In TVM's order, which decides what two rewrites that both fit make of an expression."""

_AFTER_LAYOUTS: tuple[Callable[[], DFPatternCallback], ...] = (
    EliminateIdentity,
    SimplifyReshape,
    SimplifySameCast,
    SimplifyConsecutiveCast,
    SimplifyClipAndConsecutiveCast,
    SimplifyClip,
)


class SimplifyExpr(TypedPass):
    """Apply TVM's rewrites until nothing changes.

    - ``zeros_like``, ``reshape_like``, ``cast_like`` and the other ``_like`` name their shape;
    - reshapes in a row, transposes and ``layout_transform`` in a row, and casts in a row that
      lose nothing become one; those that change nothing go;
    - ``x + 0``, ``x - 0``, ``x * 1`` and ``x / 1`` are ``x``, and a filled tensor beside an
      elementwise operator is its scalar; ``x + x`` is ``x * 2``; constants added or multiplied
      twice become one, sums before products: ``(x + a) * b`` is ``x * b + a * b``;
    - ``a*x*x + b*x*y + c*y*y`` is a product of two sums where its roots are real;
    - ``a / sqrt(x)`` is ``a * rsqrt(x)``;
    - ``argmax``, ``argmin`` and ``argsort`` look at quantised numbers themselves;
    - casts after a clip that are wide enough for what it lets through go, and a clip to all of
      its dtype goes.

    Sums and products of floats may round differently.
    """

    name: ClassVar[str] = "SimplifyExpr"

    def transform(self, function: Function) -> Function:
        """Rewrite until nothing changes."""
        return _apply(_ALL, function)


class SimplifyExprPostAlterOp(TypedPass):
    """Apply those of :class:`SimplifyExpr` that tidy up after a change of layouts.

    Identities, reshapes, casts and clips.
    """

    name: ClassVar[str] = "SimplifyExprPostAlterOp"

    def transform(self, function: Function) -> Function:
        """Rewrite until nothing changes."""
        return _apply(_AFTER_LAYOUTS, function)


def _apply(rules: tuple[Callable[[], DFPatternCallback], ...], function: Function) -> Function:
    names = {operator_of(node) for node in post_order(function)}
    wanted = [rule for rule in rules if rule is not FullElementwise or names & FILLED]
    result = rewrite([rule() for rule in wanted], function)
    return result if isinstance(result, Function) else function
