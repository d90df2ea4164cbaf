"""Evaluation of what depends on constants alone."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import Any as AnyValue, ClassVar, Final

import numpy as np

from serde.core import budget, dataclass
from serde.errors import RelayError
from serde.relay.ir import OpDef, Selects, trait_of
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Span,
    Tuple,
    TupleGetItem,
    tensor_type,
)
from serde.relay.ir.visit import children, has_kind, kinds, post_order, rewrite_function
from serde.relay.ir.work import elements
from serde.relay.run.cost import fixed_bytes, temporary_bytes, work
from serde.relay.run.interpreter import evaluate
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.purity import must_wait

__all__ = ["EvaluateConstants", "chosen", "evaluated"]

_SMALL_BYTES: Final = 2**12
"""Of a smaller constant it does not matter what it replaces."""


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

    max_bytes: int = sys.maxsize

    def concerns(self, function: Function) -> bool:
        """Whether there is a constant, a tuple, or a call of no operands."""
        alone = (isinstance(each, OpDef) and not each.operands for each in kinds(function))
        return has_kind(function, Constant, Tuple) or any(alone)

    def transform(self, function: Function) -> Function:
        """Evaluate bottom-up."""
        vanishing = _Vanishing(function)
        return rewrite_function(
            function, lambda node, new: self.fold(new, lambda: vanishing.nbytes(node, new))
        )

    def fold(self, node: Expr, vanishing: Callable[[], int] = int) -> Expr:
        """Return what stands for a node whose children are folded.

        Args:
            node: The node.
            vanishing: Gives the bytes of operands that nothing else uses.
        """
        found = chosen(node)
        if found is not node:
            return found
        if not isinstance(node, Call) or not all(map(_is_constant, node.args)):
            return node
        if not isinstance(node.op, OpDef) or must_wait(node) or not self._affords(node, vanishing):
            return node
        return evaluated(node)

    def _affords(self, node: Call, vanishing: Callable[[], int]) -> bool:
        """Take what a value costs; one that is larger than what it replaces is a new constant."""
        size = fixed_bytes(node.type)
        if size is None and trait_of(node, Selects) is not None:
            data = tensor_type(node.args[0])
            size = 8 * (data.rank + 4) * elements(data)  # indices of all, or what unique gives
        if size is None or size > self.max_bytes:
            return False
        left = budget()
        if size > _SMALL_BYTES and not left.may_hold(size + temporary_bytes(node)):
            return False
        if size > _SMALL_BYTES:
            size = max(size - vanishing(), 0)
        return left.affords("elements", work(node)) and left.affords("constants", size)


class _Vanishing:
    """Tells which constants nothing but one call uses, once somebody asks."""

    def __init__(self, function: Function) -> None:
        self._function = function

    @cached_property
    def _uses(self) -> Counter[Expr]:
        return Counter(child for node in post_order(self._function) for child in children(node))

    def nbytes(self, node: Expr, new: Expr) -> int:
        """Return the bytes of the constants that `new` alone has, which stands for `node`."""
        pairs = zip(children(node), children(new), strict=False)
        return sum(fixed_bytes(now.type) or 0 for was, now in pairs if self._uses[was] == 1)


def _is_constant(node: Expr) -> bool:
    if isinstance(node, Tuple):
        return all(isinstance(field, Constant) for field in node.fields)
    return isinstance(node, Constant)


def chosen(node: Expr) -> Expr:
    """Return the field that is taken from a tuple, the branch of an ``if`` on a constant."""
    if isinstance(node, TupleGetItem) and isinstance(node.tuple_value, Tuple):
        return node.tuple_value.fields[node.index]
    if isinstance(node, If) and isinstance(node.cond, Constant):
        return node.true_branch if node.cond.data.reshape(()) else node.false_branch
    return node


def evaluated(node: Expr) -> Expr:
    """Return the value of a node that depends on constants alone.

    The node itself is returned where a kernel refuses its operands: it fails when it is run.
    """
    try:
        return _as_constant(evaluate(node), node.span)
    except RelayError:
        return node


def _as_constant(value: AnyValue, span: Span | None) -> Expr:
    if isinstance(value, tuple):
        return Tuple([_as_constant(item, span) for item in value], span)
    return Constant(np.ascontiguousarray(value).reshape(value.shape), span)
