"""Types, lengths and orders of axes of the expressions that expansions are made of."""

from __future__ import annotations

from collections.abc import Sequence

import serde.relay as relay
from serde.errors import TypeInferenceError, Unsupported
from serde.relay.ir.expr import Expr
from serde.relay.ir.types import TensorType

__all__ = [
    "along",
    "fixed_shape",
    "tensor_type",
]


def tensor_type(x: Expr) -> TensorType:
    """Return the type of a tensor.

    Raises:
        TypeInferenceError: It is not known.
    """
    if not isinstance(x.type, TensorType):
        raise TypeInferenceError(f"expected a tensor of known type, found {x.type!r}")
    return x.type


def fixed_shape(x: Expr, axes: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the lengths of axes, all of them if none are named.

    Raises:
        Unsupported: One is symbolic.
    """
    shape = tensor_type(x).shape
    lengths = [shape[axis] for axis in axes] if axes is not None else list(shape)
    fixed = tuple(length for length in lengths if isinstance(length, int))
    if len(fixed) < len(lengths):
        raise Unsupported(f"needs fixed lengths, found {tensor_type(x)!r}")
    return fixed


def along(x: Expr, rank: int, axis: int) -> Expr:
    """Return a vector that broadcasts along one axis of a tensor of some rank."""
    shape = [1] * rank
    shape[axis] = -1
    return relay.reshape(x, shape)
