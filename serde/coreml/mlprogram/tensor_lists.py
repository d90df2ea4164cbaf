"""Lists of ML Programs while they are read: tensors with an axis in front.

A list may be made before the shape of its elements is known, and may grow when an element behind
its end is written. What keeps such a list a plain tensor is recorded here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import serde.relay as relay
from serde.core.records import dataclass, field
from serde.errors import Unsupported
from serde.relay.ir import Any, Call, Dim, Expr, TensorType, call, is_call

__all__ = ["ListFacts", "give_shape", "is_shapeless", "length_of", "operand_of"]


@dataclass
class ListFacts:
    """What is known of lists and of the numbers that index them.

    Attributes:
        fixed: Lists that keep their length. Others grow where it is not known that they need not.
        bounds: A dimension that a number is always less than.
    """

    fixed: set[Expr] = field(default_factory=set)
    bounds: dict[Expr, Dim] = field(default_factory=dict)

    def follow(self, result: Expr, source: Expr) -> Expr:
        """Return `result`, a list that keeps its length if `source` does."""
        if source in self.fixed:
            self.fixed.add(result)
        return result


def _type(x: Expr) -> TensorType:
    if not isinstance(x.type, TensorType):
        raise Unsupported(f"expected a list of tensors, found {x.type!r}")
    return x.type


def is_shapeless(ls: Expr) -> bool:
    """Whether a list was made whose elements have lengths that are not known yet."""
    return (
        operand_of(ls, "full") is not None
        and isinstance(ls, Call)
        and any(isinstance(each, Any) for each in ls.attrs["shape"])
    )


def operand_of(x: Expr, name: str) -> Expr | None:
    """Return the first operand of a call of an operator; None of anything else."""
    return x.args[0] if is_call(x, name) else None


def length_of(ls: Expr) -> Expr:
    """Return the length of a list, a scalar of int32."""
    lengths = relay.shape_of(ls, dtype="int32")
    return relay.take(lengths, relay.const(np.int32(0)), axis=0, mode="fast")


def give_shape(ls: Expr, shape: Sequence[Dim]) -> Expr:
    """Return a list with elements of a shape that it may be the first to tell.

    Raises:
        Unsupported: The shape is not known either.
    """
    own = _type(ls).shape[1:]
    if len(own) != len(shape):
        raise Unsupported(f"elements of {len(own)} axes, found one of {len(shape)}")
    told = [b if isinstance(a, Any) else a for a, b in zip(own, shape, strict=True)]
    if list(own) == told and not is_shapeless(ls):
        return ls
    if is_shapeless(ls) and isinstance(ls, Call):
        if any(isinstance(each, Any) for each in told):
            raise Unsupported("a list whose elements have a shape that is not known")
        return call("full", ls.args[0], shape=(_type(ls).shape[0], *told))
    whole = [_type(ls).shape[0], *told]
    return ls if any(isinstance(each, Any) for each in whole) else relay.reshape(ls, whole)
