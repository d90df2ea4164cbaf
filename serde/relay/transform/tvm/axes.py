"""Scales and biases of some axes, matched with tensors and shaped like them."""

from __future__ import annotations

from collections.abc import Sequence

from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType

__all__ = ["broadcasts_along", "expand_to_axes", "reshape_to_axes", "squeezed_along"]


def expand_to_axes(vector: Expr, rank: int, axes: Sequence[int]) -> Expr:
    """Return a tensor with the axes `axes` of a larger one, with axes of length 1 between.

    Axes in front are left to broadcasting.
    """
    after = rank
    for place in reversed(range(len(axes))):
        missing = after - axes[place] - 1
        if missing > 0:
            vector = call("expand_dims", vector, axis=place + 1, num_newaxis=missing)
        after = axes[place]
    return vector


def reshape_to_axes(scale: Expr, data: TensorType, axes: Sequence[int]) -> Expr | None:
    """Return a scale of several axes in the rank of `data`; None where a length is not known."""
    lengths = [data.shape[place] if place in axes else 1 for place in range(data.rank)]
    if any(type(length) is not int for length in lengths):
        return None
    return call("reshape", scale, newshape=tuple(lengths))


def broadcasts_along(data: TensorType, other: TensorType, axes: Sequence[int]) -> bool:
    """Whether `other`, broadcast to `data`, has all of these axes and varies along them alone."""
    return _unit_axes(data, other, axes) is not None


def _unit_axes(data: TensorType, other: TensorType, axes: Sequence[int]) -> list[int] | None:
    """Return the axes of `other` that have length 1, or None where it varies along others."""
    base = data.rank - other.rank
    if base < 0:
        return None
    units = []
    for place, length in enumerate(data.shape):
        if place in axes:
            if place < base or other.shape[place - base] != length:
                return None
        elif place >= base:
            if other.shape[place - base] != 1:
                return None
            units.append(place - base)
    return units


def squeezed_along(
    data: TensorType, value: Expr, other: TensorType, axes: Sequence[int]
) -> Expr | None:
    """Return a factor with nothing but `axes` of `data`, or None where it varies otherwise.

    Args:
        data: What is multiplied.
        value: The factor; a scalar is repeated along the axes.
        other: Type of the factor.
        axes: The axes.
    """
    if other.rank == 0 and axes:
        lengths = [data.shape[axis] for axis in axes]
        value = call("expand_dims", value, axis=0, num_newaxis=len(axes))
        for place, length in enumerate(lengths):
            if type(length) is not int:
                return None
            value = call("repeat", value, repeats=length, axis=place)
        return value
    units = _unit_axes(data, other, axes)
    if units is None:
        return None
    return call("squeeze", value, axis=tuple(units)) if units else value
