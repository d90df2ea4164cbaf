"""Tensors without elements, which kernels of MXNet and LiteRT fail on, as constants."""

from __future__ import annotations

from typing import ClassVar

import serde.core.allocation as allocation
from serde.core.weights import numpy_dtype
from serde.relay.ir import Call, Constant, Expr, Function, OpDef, Span, Tuple, rewrite_function
from serde.relay.ir.types import TensorType, TupleType, Type
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.evaluate_constants import EvaluateConstants

__all__ = ["FoldEmpty"]


class FoldEmpty(FunctionPass):
    """Replace by constants what has no elements, and what is made of nothing else.

    So goes a product over an axis of length 0, at which oneDNN ends the process.
    """

    name: ClassVar[str] = "FoldEmpty"

    def transform(self, function: Function) -> Function:
        """Replace bottom-up."""
        return rewrite_function(function, lambda _node, new: _folded(new))


def _folded(node: Expr) -> Expr:
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return node
    type_ = node.type
    if isinstance(type_, TupleType):
        fields = [_constant(each, None) for each in type_.fields]
        found = [each for each in fields if each is not None]
        if found and len(found) == len(fields):
            return Tuple(found, node.span)
    return _constant(type_, node.span) or _evaluated(node)


def _evaluated(node: Call) -> Expr:
    """Return the value of a call of which no operand has elements, else the call."""
    operands = [_as_constant(each) for each in node.args]
    given = [each for each in operands if each is not None]
    if not given or len(given) < len(operands):
        return node
    made = Call(node.op, given, node.attrs, span=node.span)
    made.type = node.type
    value = EvaluateConstants().fold(made)
    if value is made:
        return node
    return value if value.type == node.type else node


def _as_constant(operand: Expr) -> Expr | None:
    """Return an operand without elements as a constant."""
    if not isinstance(operand, Tuple):
        return _constant(operand.type, operand.span)
    fields = [_as_constant(each) for each in operand.fields]
    found = [each for each in fields if each is not None]
    return Tuple(found, operand.span) if len(found) == len(fields) else None


def _constant(type_: Type | None, span: Span | None) -> Constant | None:
    """Return the only value of a type, where that has no elements."""
    shape = type_.concrete_shape if isinstance(type_, TensorType) else None
    if not isinstance(type_, TensorType) or shape is None or 0 not in shape:
        return None
    return Constant(allocation.zeros(shape, numpy_dtype(type_.dtype)), span)
