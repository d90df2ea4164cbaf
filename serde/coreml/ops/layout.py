"""Types, lengths and orders of axes of expressions that expansions are made of."""

from __future__ import annotations

from collections.abc import Sequence

import serde.relay as relay
from serde.errors import TypeInferenceError, Unsupported
from serde.relay.expr import Expr
from serde.relay.shapes import layout_axes
from serde.relay.types import TensorType

__all__ = ["along", "arranged", "converted", "fixed_lengths", "type_of"]


def type_of(x: Expr) -> TensorType:
    """Return the type of an expression that is one tensor.

    Raises:
        TypeInferenceError: It has none.
    """
    if isinstance(x.type, TensorType):
        return x.type
    raise TypeInferenceError(f"expected a tensor of known type, found {x.type!r}")


def fixed_lengths(x: Expr, axes: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the lengths of axes, of all if none are named.

    Raises:
        Unsupported: One is symbolic.
    """
    type_ = type_of(x)
    lengths = type_.shape if axes is None else [type_.shape[axis] for axis in axes]
    fixed = tuple(length for length in lengths if isinstance(length, int))
    if len(fixed) < len(lengths):
        raise Unsupported(f"needs fixed lengths of axes, found {type_!r}")
    return fixed


def arranged(x: Expr, layout: str, wanted: str) -> Expr:
    """Return a tensor with its axes in the order of another layout."""
    return x if layout == wanted else relay.transpose(x, layout_axes(layout, wanted))


def converted(x: Expr, dtype: str) -> Expr:
    """Return a tensor in another dtype; itself if it has it."""
    return x if type_of(x).dtype == dtype else relay.cast(x, dtype)


def along(x: Expr, rank: int, axis: int) -> Expr:
    """Return a vector that broadcasts along one axis of a tensor of some rank."""
    shape = [1] * rank
    shape[axis] = -1
    return relay.reshape(x, shape)
