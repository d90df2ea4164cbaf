"""Merging of calls that compute the same value."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from typing import Any as AnyValue, ClassVar

import numpy as np

from serde.relay.ir import InRange, OpDef, SequenceType, has_trait, rewrite_function
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.purity import is_unrepeatable

__all__ = ["MergeEqualNodes", "exact_key", "value_key"]


_DRAWS_IN_TRAINING = "nn.dropout"
"""Where it is kept, the model goes on training, and equal ones drop different elements."""


class MergeEqualNodes(FunctionPass):
    """Let equal calls, tuples, fields and constants be one node.

    Operators that draw random numbers without a key are left alone.
    """

    name: ClassVar[str] = "MergeEqualNodes"

    def transform(self, function: Function) -> Function:
        """Number values bottom-up; the first node with a number stands for all."""
        known: dict[Hashable, Expr] = {}
        calls: dict[Hashable, Expr] = {}

        def replace(_node: Expr, new: Expr) -> Expr:
            if isinstance(new, Call):
                # What attributes there are is asked of those alone that have equal operands.
                twin = calls.setdefault((new.op, new.args), new)
                if twin is new:
                    return new
                known.setdefault(value_key(twin), twin)
            key = value_key(new)
            return new if key is None else known.setdefault(key, new)

        return rewrite_function(function, replace)


def value_key(
    node: Expr, number: Callable[[Expr], Hashable] = lambda child: child
) -> Hashable | None:
    """Return a key that nodes of one value share; None where only the node itself has its value.

    Args:
        node: The node.
        number: Gives what equal children have in common; by default the children are it.
    """
    if isinstance(node, Call) and isinstance(node.op, OpDef):
        unlike = is_unrepeatable(node) or node.op.name == _DRAWS_IN_TRAINING
        if unlike or _may_fail(node):
            return None
        attrs = tuple((name, exact_key(value)) for name, value in node.attrs.items())
        return (node.op, tuple(map(number, node.args)), attrs)
    if isinstance(node, Tuple):
        return ("tuple", tuple(map(number, node.fields)))
    if isinstance(node, TupleGetItem):
        return ("field", number(node.tuple_value), node.index)
    if isinstance(node, Constant):
        data = np.ascontiguousarray(node.data)
        digest = hashlib.sha256(data.tobytes()).digest()
        return ("constant", data.dtype, node.data.shape, digest)
    return None


def _may_fail(node: Call) -> bool:
    """Whether a call reads a position that a sequence may not have.

    Two such calls in two branches must not become one, which targets would run before both.
    """
    of_sequence = bool(node.args) and isinstance(node.args[0].type, SequenceType)
    return of_sequence and has_trait(node, InRange)


def exact_key(value: AnyValue) -> Hashable:
    """Return a key of an attribute that tells 1 from 1.0 and True, and 0.0 from -0.0."""
    if isinstance(value, tuple):
        return tuple(exact_key(item) for item in value)
    if isinstance(value, float):
        return ("float", value.hex())
    return (type(value), value)
