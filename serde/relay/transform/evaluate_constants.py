"""Evaluation of what depends on constants alone."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any as AnyValue
from typing import ClassVar

import numpy as np

from serde.errors import RelayError
from serde.limits import MAX_INLINE_BYTES
from serde.relay.ir.expr import Call, Constant, Expr, Function, If, Span, Tuple, TupleGetItem
from serde.relay.ir.registry import OpDef
from serde.relay.ir.types import TensorType, TupleType, Type
from serde.relay.ir.visit import rewrite_function
from serde.relay.run.interpreter import evaluate
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.purity import must_wait
from serde.weights import numpy_dtype

__all__ = ["EvaluateConstants"]


@dataclass(frozen=True)
class EvaluateConstants(FunctionPass):
    """Replace calls on constants by their value, and an ``if`` on a constant by its branch.

    Calls that draw random numbers or dequantise stay, as do loops, which may never end, and
    those whose kernel refuses the operands: they fail when they run, if they run.

    Args:
        max_bytes: A larger result is left to be computed.
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
        if not isinstance(node, Call) or not isinstance(node.op, OpDef) or must_wait(node):
            return node
        if not all(map(_is_constant, node.args)) or not self._is_small(node.type):
            return node
        try:
            return _as_constant(evaluate(node), node.span)
        except RelayError:
            return node

    def _is_small(self, type_: Type | None) -> bool:
        if isinstance(type_, TupleType):
            return all(map(self._is_small, type_.fields))
        if not isinstance(type_, TensorType) or type_.concrete_shape is None:
            return False
        size = prod(type_.concrete_shape) * numpy_dtype(type_.dtype).itemsize
        return size <= self.max_bytes


def _is_constant(node: Expr) -> bool:
    if isinstance(node, Tuple):
        return all(isinstance(field, Constant) for field in node.fields)
    return isinstance(node, Constant)


def _as_constant(value: AnyValue, span: Span | None) -> Expr:
    if isinstance(value, tuple):
        return Tuple([_as_constant(item, span) for item in value], span)
    return Constant(np.ascontiguousarray(value).reshape(value.shape), span)
