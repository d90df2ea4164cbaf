"""Operands that are broadcast without need, and flags that were made numbers and flags again."""

from __future__ import annotations

from typing import Final

import numpy as np

from serde.core.weights import Array
from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Call, Constant, Expr, OpDef, TensorType, call

__all__ = ["UNIFORM", "flag_again", "unbroadcast"]

UNIFORM: Final = (Constant, "full", "full_like", "ones", "ones_like", "zeros", "zeros_like")
"""What tensors are made of whose elements are all the same."""

_ON_SCALARS: Final = frozenset({"add", "subtract", "multiply", "cast"})
_LOGICAL: Final = {"add": "logical_or", "multiply": "logical_and"}
_DEEPEST: Final = 4


def unbroadcast(node: Call) -> Expr:
    """Return an elementwise call without what it does itself, where the type stays the same.

    It takes a scalar for a uniform tensor, and a tensor for the one that was broadcast from it.
    """
    if not isinstance(node.op, OpDef) or not isinstance(node.type, TensorType):
        return node
    if any(isinstance(dim, Any) for dim in node.type.shape):
        return node
    for at, argument in enumerate(node.args):
        smaller = _smaller(argument)
        if smaller is None:
            continue
        arguments = [*node.args[:at], smaller, *node.args[at + 1 :]]
        try:
            new = call(node.op.name, *arguments, span=node.span, **node.attrs)
        except TypeInferenceError:  # an operator may want operands of one rank
            continue
        if new.type == node.type:
            node = new
    return node


def _smaller(node: Expr) -> Expr | None:
    """Return what is broadcast to the same tensor, or None."""
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return None
    if node.op.name == "broadcast_to":
        return node.args[0]
    value = _uniform(node)
    return None if value is None else Constant(value)


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
    """Return the flags that a comparison of numbers made of flags with zero amounts to."""
    number, zero = node.args
    if not isinstance(node.op, OpDef) or not isinstance(zero, Constant):
        return node
    if zero.data.shape or zero.data != 0:
        return node
    flags = _flags(number, _DEEPEST)
    if flags is None:
        return node
    return call("logical_not", flags, span=node.span) if node.op.name == "equal" else flags


def _flags(number: Expr, depth: int) -> Expr | None:
    """Return where a number is not zero, if it is made of flags.

    The depth bounds sums of flags, which then overflow in no dtype.
    """
    if not isinstance(number, Call) or not isinstance(number.op, OpDef) or depth == 0:
        return None
    name, source = number.op.name, number.args[0]
    if name == "cast":
        flags = isinstance(source.type, TensorType) and source.type.dtype == "bool"
        return source if flags else None
    if name != "broadcast_to" and name not in _LOGICAL:
        return None
    parts = [_flags(argument, depth - 1) for argument in number.args]
    if any(part is None for part in parts):
        return None
    return call(_LOGICAL.get(name, name), *parts, span=number.span, **number.attrs)
