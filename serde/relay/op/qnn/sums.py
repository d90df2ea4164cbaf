"""Sums of products of quantised numbers in operators on plain numbers, less their zero points.

Targets multiply integers, or else float64, which holds all these sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue, Final

import numpy as np

import serde.core.allocation as allocation
from serde.core.weights import dtype_name
from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Constant, Expr, as_dtype, call, tensor_type
from serde.relay.op.qnn.parameters import is_zero

__all__ = ["body_of_sums", "channel_zero_point", "sum_products"]

DType = np.dtype[AnyValue]

_MANTISSA: Final = 53
"""Bits of the integers that float64 holds."""

_MOST_TERMS: Final = 1 << 27
"""So long a sum is taken for possible where a length is open."""


def channel_zero_point(
    zero_point: Array, shape: Sequence[int], layout: str, first: str = "O"
) -> Array:
    """Return a zero point for each output channel in a shape that broadcasts with the weight.

    Where the filters of a channel lie on the other channel axis, both axes count.

    Args:
        zero_point: One for all channels, or one for each.
        shape: Lengths of the weight.
        layout: Its layout.
        first: The letter of the axis that counts the channels.
    """
    if zero_point.size == 1:
        return zero_point.reshape(())
    axes = [layout.index(letter) for letter in layout if letter in "GOI"]
    filters = [axis for axis in axes if layout[axis] == "O"]
    lengths = {layout[axis]: shape[axis] for axis in axes}
    if "G" in layout:
        filters.insert(0, layout.index("G"))
    elif lengths["O"] != zero_point.size:
        filters = [layout.index(first), layout.index("I" if first == "O" else "O")]
    sizes = [shape[axis] for axis in filters]
    order = np.argsort(filters)
    spread = [length if axis in filters else 1 for axis, length in enumerate(shape)]
    return zero_point.reshape(sizes).transpose(order).reshape(spread)


def body_of_sums(name: str, *, floats: bool = True) -> Callable[..., Expr]:
    """Return what an operator is made of that sums products of quantised numbers.

    Args:
        name: The operator.
        floats: Whether it multiplies in float64 instead of integers.
    """
    plain = name.replace("qnn.", "nn.")

    def convolve(
        data: Expr, weight: Expr, *parameters: Expr, out_dtype: DType | None, **window: AnyValue
    ) -> Expr:
        first = "I" if plain.endswith("transpose") else "O"
        zero_point = _of_filters(parameters[1], weight, window["kernel_layout"], first)
        return multiply(data, weight, (parameters[0], zero_point), out_dtype, **window)

    def dense(
        data: Expr, weight: Expr, *parameters: Expr, units: AnyValue, out_dtype: DType | None
    ) -> Expr:
        zero_point = parameters[1]
        if tensor_type(zero_point).rank:
            zero_point = call("expand_dims", zero_point, axis=1)
        return multiply(data, weight, (parameters[0], zero_point), out_dtype, units=units)

    def batch_matmul(
        x: Expr, y: Expr, *parameters: Expr, out_dtype: DType | None, **turns: AnyValue
    ) -> Expr:
        return multiply(x, y, (parameters[0], parameters[1]), out_dtype, **turns)

    def multiply(
        left: Expr,
        right: Expr,
        zero_points: tuple[Expr, Expr],
        out_dtype: DType | None,
        **attrs: AnyValue,
    ) -> Expr:
        return sum_products(
            plain, left, right, zero_points, out_dtype=out_dtype, floats=floats, **attrs
        )

    bodies: dict[str, Callable[..., Expr]]
    bodies = {"qnn.dense": dense, "qnn.batch_matmul": batch_matmul}
    return bodies.get(name, convolve)


def sum_products(
    op: str,
    left: Expr,
    right: Expr,
    zero_points: Sequence[Expr | None],
    *,
    out_dtype: DType | None,
    floats: bool,
    **attrs: AnyValue,
) -> Expr:
    """Return a product of integers, each without its zero point.

    Args:
        op: The operator that multiplies.
        left: Left side.
        right: Right side.
        zero_points: Those of both sides, in shapes that broadcast with them.
        out_dtype: Dtype of the sums; int32 by default, of which narrower ones are cut.
        floats: Whether to multiply in float64.
        attrs: Further attributes of the operator.
    """
    dtype = "int32" if out_dtype is None else dtype_name(out_dtype)
    work = "int64" if dtype == "int64" else "int32"
    if floats:
        _require_exact(left, right, zero_points)
        work = "float64"
    sides = [_shift(*side, work) for side in zip((left, right), zero_points, strict=True)]
    found = call(op, *sides, out_dtype=None if floats else work, **attrs)
    return as_dtype(call("cast", found, dtype="int64") if floats else found, dtype)


def _require_exact(left: Expr, right: Expr, zero_points: Sequence[Expr | None]) -> None:
    bits = sum(_bits(*side) for side in zip((left, right), zero_points, strict=True))
    size = tensor_type(right).size
    terms = size if isinstance(size, int) else _MOST_TERMS
    if terms << bits > 1 << _MANTISSA:
        raise TypeInferenceError("sums of products that float64 might round")


def _bits(x: Expr, zero_point: Expr | None) -> int:
    """Return how many bits the differences from a zero point have."""
    width = 8 * np.dtype(tensor_type(x).dtype).itemsize
    if not isinstance(zero_point, Constant):
        return width + 1
    return max(width, int(np.abs(zero_point.data.astype(np.int64)).max()).bit_length()) + 1


def _shift(x: Expr, zero_point: Expr | None, dtype: str) -> Expr:
    wide = as_dtype(x, dtype)
    if zero_point is None or is_zero(zero_point):
        return wide
    if tensor_type(zero_point).shape == (1,):
        zero_point = call("reshape", zero_point, newshape=())
    return call("subtract", wide, as_dtype(zero_point, dtype))


def _of_filters(zero_point: Expr, weight: Expr, layout: str, first: str) -> Expr:
    """Return the zero point of each output channel in a shape that broadcasts with the weight."""
    if not tensor_type(zero_point).rank or is_zero(zero_point):
        return zero_point
    lengths = tensor_type(weight).concrete_shape
    count = tensor_type(zero_point).shape[0]
    if lengths is None or not isinstance(count, int):
        raise TypeInferenceError("zero points of an open number of channels")
    if isinstance(zero_point, Constant):
        return Constant(channel_zero_point(zero_point.data, lengths, layout, first))
    places = channel_zero_point(allocation.arange(count), lengths, layout, first)
    return call("take", zero_point, Constant(np.asarray(places)), axis=0, mode="clip")
