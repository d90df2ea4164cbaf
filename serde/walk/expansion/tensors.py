"""Types, lengths and orders of axes of the expressions that expansions are made of."""

from __future__ import annotations

from collections.abc import Sequence

import serde.relay as relay
from serde.errors import TypeInferenceError, Unsupported
from serde.relay.ir.dims import Dim, same_length
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import layout_axes
from serde.relay.ir.types import TensorType

__all__ = [
    "along",
    "arranged",
    "fixed_shape",
    "has_filters_of_channels",
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


def arranged(x: Expr, layout: str, wanted: str) -> Expr:
    """Return `x` with its axes in the order of another layout."""
    return x if layout == wanted else relay.transpose(x, layout_axes(layout, wanted))


def has_filters_of_channels(inputs: Dim, outputs: Dim, inner: Dim, groups: int) -> bool:
    """Whether a weight of a convolution counts the filters of each channel along its second axis.

    TVM's do where data of C channels in C groups meets a weight (C, M, ...), which makes C times
    M channels; else the second axis has the channels of a group.

    Args:
        inputs: Channels of the data.
        outputs: Length of the weight's first axis.
        inner: Length of its second axis.
        groups: Number of groups.

    Raises:
        Unsupported: Lengths that decide are open.
    """
    if groups == 1 or inner == 1 or inputs == outputs == groups:
        return inner != 1 and groups != 1
    if any(isinstance(each, int) and each != groups for each in (inputs, outputs)):
        return False
    if same_length(inner, inputs // groups):
        return False
    raise Unsupported(
        f"a weight ({outputs}, {inner}, ...) for {inputs} channels in {groups} groups, which may "
        "hold filters of each channel",
        hint="give the lengths of the inputs",
    )


def along(x: Expr, rank: int, axis: int) -> Expr:
    """Return a vector that broadcasts along one axis of a tensor of some rank."""
    shape = [1] * rank
    shape[axis] = -1
    return relay.reshape(x, shape)
