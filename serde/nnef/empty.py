"""Tensors without elements, which Khronos' shape inference broadcasts otherwise than Relay."""

from __future__ import annotations

from typing import ClassVar

import serde.core.allocation as allocation
from serde.core.weights import numpy_dtype
from serde.relay.ir import Call, Constant, Expr, Function, TensorType, rewrite_function
from serde.relay.transform.base import FunctionPass

__all__ = ["SettleEmpty"]


class SettleEmpty(FunctionPass):
    """Replace calls that give no elements by constants, which hold as much."""

    name: ClassVar[str] = "SettleEmpty"

    def transform(self, function: Function) -> Function:
        """Replace calls bottom-up."""
        return rewrite_function(function, lambda _node, new: _settled(new))


def _settled(node: Expr) -> Expr:
    type_ = node.type
    if not isinstance(node, Call) or not isinstance(type_, TensorType):
        return node
    shape = type_.concrete_shape
    if shape is None or 0 not in shape:
        return node
    return Constant(allocation.zeros(shape, numpy_dtype(type_.dtype)), node.span)
