"""Padding for targets that lack it, or lack it of some dtypes, modes and axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

import serde.core.allocation as allocation
from serde.core.weights import Array
from serde.errors import TypeInferenceError
from serde.relay.ir.expr import Constant, Expr, tensor_type
from serde.relay.ir.precision import as_dtype
from serde.relay.ir.registry import call
from serde.relay.lowering.lengths import LAST, sliced

__all__ = ["continued", "decompose_mirror_pad", "decompose_pad"]

Widths: TypeAlias = Sequence[tuple[int, int]]


def decompose_pad(data: Expr, pad_val: Expr, *, pad_width: Widths, pad_mode: str) -> Expr:
    """Blocks of one value around each axis, or its own elements; what is cut off goes first."""
    if pad_mode != "constant":
        return continued(data, pad_width, pad_mode)
    value = as_dtype(pad_val, tensor_type(data).dtype)
    for axis, (before, after) in enumerate(pad_width):
        if before < 0 or after < 0:
            data = sliced(data, axis, max(-before, 0), after if after < 0 else LAST)
    for axis, sides in enumerate(pad_width):
        data = _between(data, axis, [_block(data, value, axis, width) for width in sides])
    return data


def decompose_mirror_pad(data: Expr, *, mode: str, pad_width: Widths) -> Expr:
    return continued(data, pad_width, mode.lower())


def continued(data: Expr, pad_width: Widths, mode: str) -> Expr:
    """Return a tensor continued by its own elements along each axis.

    Args:
        data: The tensor.
        pad_width: How many before and after each axis; of an open length at most as many.
        mode: NumPy's name of which they are: ``edge``, ``reflect``, ``symmetric`` or ``wrap``.
    """
    for axis, (before, after) in enumerate(pad_width):
        length = tensor_type(data).shape[axis]
        if not before and not after:
            continue
        if length == 0:
            raise TypeInferenceError(f"axis {axis}, which is empty, has nothing to continue it by")
        if isinstance(length, int):
            own = allocation.arange(length, dtype=np.int32)
            data = _taken(data, axis, allocation.pad(own, [(before, after)], mode))
            continue
        steps = allocation.arange(max(before, after), dtype=np.int32)
        first = {"edge": 0 * steps, "reflect": steps + 1, "symmetric": steps, "wrap": -1 - steps}
        front = first[mode][:before][::-1]
        behind = -1 - first[mode][:after]
        sides = [_taken(data, axis, each) if each.size else None for each in (front, behind)]
        data = _between(data, axis, sides)
    return data


def _taken(data: Expr, axis: int, indices: Array) -> Expr:
    """Return entries of an axis, those below 0 counted from its end."""
    mode = "wrap" if indices.min() < 0 else "fast"
    return call("take", data, Constant(indices), axis=axis, mode=mode)


def _between(data: Expr, axis: int, sides: Sequence[Expr | None]) -> Expr:
    before, after = sides
    parts = tuple(each for each in (before, data, after) if each is not None)
    return call("concatenate", parts, axis=axis) if len(parts) > 1 else data


def _block(data: Expr, value: Expr, axis: int, width: int) -> Expr | None:
    """Return one value as wide along an axis, and as long along the others as a tensor is."""
    if width <= 0:
        return None
    shape = tensor_type(data).shape
    wanted = (*shape[:axis], width, *shape[axis + 1 :])
    if all(isinstance(dim, int) for dim in wanted):
        return call("full", value, shape=wanted, dtype=tensor_type(data).dtype)
    return call("full_like", _taken(data, axis, allocation.zeros((width,), np.int32)), value)
