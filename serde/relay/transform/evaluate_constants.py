"""Evaluation of what depends on constants alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any as AnyValue
from typing import ClassVar

import numpy as np

from serde.errors import RelayError
from serde.limits import MAX_INLINE_BYTES, budget
from serde.relay.ir.expr import Call, Constant, Expr, Function, If, Span, Tuple, TupleGetItem
from serde.relay.ir.registry import OpDef
from serde.relay.ir.visit import rewrite_function
from serde.relay.run.cost import fixed_bytes, work
from serde.relay.run.interpreter import evaluate
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.purity import must_wait

__all__ = ["EvaluateConstants"]


@dataclass(frozen=True)
class EvaluateConstants(FunctionPass):
    """Replace calls on constants by their value, and an ``if`` on a constant by its branch.

    Calls that draw random numbers or dequantise stay, as do loops, which may never end, and
    those whose kernel refuses the operands: they fail when they run, if they run.

    Args:
        max_bytes: A larger result is left to be computed; so is one that the budget of the
            conversion does not afford.
    """

    name: ClassVar[str] = "EvaluateConstants"

    max_bytes: int = MAX_INLINE_BYTES

    def transform(self, function: Function) -> Function:
        """Evaluate bottom-up."""
        return rewrite_function(function, lambda _node, new: self.fold(new))

    def fold(self, node: Expr) -> Expr:
        """Return what stands for a node whose children are folded."""
        if isinstance(node, TupleGetItem) and isinstance(node.tuple_value, Tuple):
            return node.tuple_value.fields[node.index]
        if isinstance(node, If) and isinstance(node.cond, Constant):
            return node.true_branch if node.cond.data.reshape(()) else node.false_branch
        if not isinstance(node, Call) or not all(map(_is_constant, node.args)):
            return node
        if not isinstance(node.op, OpDef) or must_wait(node) or not self._affords(node):
            return node
        try:
            return _as_constant(evaluate(node), node.span)
        except RelayError:
            return node

    def _affords(self, node: Call) -> bool:
        """Take what a value costs; what is larger than its operands counts as a new constant."""
        size = fixed_bytes(node.type)
        if size is None or size > self.max_bytes:
            return False
        left = budget()
        given = sum(fixed_bytes(arg.type) or 0 for arg in node.args)
        return left.affords("elements", work(node)) and left.affords(
            "constants", max(size - given, 0)
        )


def _is_constant(node: Expr) -> bool:
    if isinstance(node, Tuple):
        return all(isinstance(field, Constant) for field in node.fields)
    return isinstance(node, Constant)


def _as_constant(value: AnyValue, span: Span | None) -> Expr:
    if isinstance(value, tuple):
        return Tuple([_as_constant(item, span) for item in value], span)
    return Constant(np.ascontiguousarray(value).reshape(value.shape), span)
