"""Tensors whose elements are all the same, and flags that were made numbers and flags again."""

from __future__ import annotations

from typing import Final

import numpy as np

from serde.relay.dims import Any
from serde.relay.expr import Call, Constant, Expr
from serde.relay.registry import OpDef, call
from serde.relay.types import TensorType
from serde.weights import Array

__all__ = ["BROADCASTING", "flag_again", "with_scalars"]

BROADCASTING: Final = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "where")
"""Operators that take a scalar for a tensor whose elements are all the same."""

_ON_SCALARS: Final = frozenset({"add", "subtract", "multiply", "cast"})
_DEEPEST: Final = 4


def with_scalars(node: Call) -> Expr:
    """Return the call on scalars in place of uniform tensors, where the type stays the same."""
    if not isinstance(node.op, OpDef) or not isinstance(node.type, TensorType):
        return node
    if any(isinstance(dim, Any) for dim in node.type.shape):
        return node
    for at, argument in enumerate(node.args):
        value = None if isinstance(argument, Constant) else _uniform(argument)
        if value is None:
            continue
        arguments = [*node.args[:at], Constant(value), *node.args[at + 1 :]]
        new = call(node.op.name, *arguments, span=node.span, **node.attrs)
        if new.type == node.type:
            node = new
    return node


def _uniform(node: Expr, depth: int = _DEEPEST) -> Array | None:
    """Return what all elements of a tensor are, if they are the same and it costs none to see."""
    if isinstance(node, Constant):
        return node.data.reshape(()) if node.data.size == 1 else None
    if not isinstance(node, Call) or not isinstance(node.op, OpDef) or depth == 0:
        return None
    name, type_ = node.op.name, node.type
    if not isinstance(type_, TensorType):
        return None
    if name in ("zeros", "zeros_like", "ones", "ones_like"):
        return np.array(name.startswith("ones"), type_.dtype)
    if name in ("full", "full_like"):
        value = _uniform(node.args[-1], depth - 1)
        return None if value is None else value.astype(type_.dtype)
    if name not in _ON_SCALARS:
        return None
    values = [_uniform(argument, depth - 1) for argument in node.args]
    if any(value is None for value in values):
        return None
    return np.asarray(node.op.kernel(*values, **node.attrs)).reshape(())


def flag_again(node: Call) -> Expr:
    """Return the flags of which a number is compared with zero."""
    number, zero = node.args
    if not isinstance(number, Call) or not isinstance(number.op, OpDef):
        return node
    if number.op.name != "cast" or not isinstance(zero, Constant) or zero.data.shape:
        return node
    (flags,) = number.args
    if not isinstance(flags.type, TensorType) or flags.type.dtype != "bool" or zero.data != 0:
        return node
    if isinstance(node.op, OpDef) and node.op.name == "equal":
        return call("logical_not", flags, span=node.span)
    return flags
