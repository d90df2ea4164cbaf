"""Images resized by look-ups and weighed sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import Array, dtype_name
from serde.errors import Unsupported
from serde.relay.ir import Dim, Expr, as_dtype, tensor_type
from serde.relay.op.image.interpolation import Interpolation
from serde.walk.expansion.tensors import fixed_shape

__all__ = ["image_expansion", "interpolation"]


def image_expansion(
    ndim: int, half: str = "float16", *, repeats: bool = False
) -> Callable[..., Expr]:
    """Return what makes a resizing along `ndim` axes of look-ups and sums.

    Args:
        ndim: How many.
        half: The dtype in which images of float16 are weighed.
        repeats: Whether whole repetitions are said as such.
    """

    def expand_resize(
        data: Expr,
        *,
        size: tuple[Dim, ...] | None,
        roi: tuple[float, ...] | None,
        layout: str,
        out_dtype: AnyValue,
        extrapolation_value: float,
        **attrs: AnyValue,
    ) -> Expr:
        """Neighbours are looked up along each axis and weighed."""
        type_ = tensor_type(data)
        how = interpolation(attrs)
        axes = range(2, 2 + ndim)
        before = fixed_shape(data, axes)
        after = [length for length in size or () if isinstance(length, int)]
        if len(after) < ndim:
            raise Unsupported(f"a size {size} that is not fixed")
        weighed = how.method != "nearest_neighbor"
        floats = {"float16": half, "float64": "float64"}
        result = as_dtype(data, floats.get(type_.dtype, "float32")) if weighed else data
        ends = roi or (0.0,) * (2 * ndim)
        outside: Expr | None = None
        for index, axis in enumerate(axes):
            how.draw(after[index])
            positions = how.positions(before[index], after[index], ends[index], ends[ndim + index])
            result = _interpolate(result, axis, how.taps(positions, before[index]), repeats)
            mask = (positions < 0) | (positions > before[index] - 1)
            if how.mode == "tf_crop_and_resize" and mask.any():
                shape = [-1 if each == axis else 1 for each in range(type_.rank)]
                line = relay.Constant(mask.reshape(shape))
                outside = line if outside is None else relay.logical_or(outside, line)
        if outside is not None:
            fill = relay.const(extrapolation_value, tensor_type(result).dtype)
            result = relay.where(outside, fill, result)
        return as_dtype(result, type_.dtype if out_dtype is None else dtype_name(out_dtype))

    return expand_resize


def _interpolate(
    data: Expr, axis: int, taps: Sequence[tuple[Array, Array | None]], repeats: bool
) -> Expr:
    """Return the weighed sum of the neighbours of each place along an axis."""
    type_ = tensor_type(data)
    shape = [-1 if each == axis else 1 for each in range(type_.rank)]
    parts = []
    for index, weight in taps:
        times = _repetitions(index, *fixed_shape(data, [axis])) if repeats else 0
        if times:
            part = data if times == 1 else relay.repeat(data, times, axis)
        else:
            positions = relay.const(index.astype(np.int32))
            part = relay.take(data, positions, axis=axis, mode="fast")
        if weight is not None:
            factor = relay.const(weight.reshape(shape), type_.dtype)
            part = relay.multiply(part, factor)
        parts.append(part)
    return reduce(relay.add, parts)


def _repetitions(index: Array, length: int) -> int:
    """Return how often each element is read in turn; 0 where they are not."""
    times = len(index) // length if length else 0
    in_turn = times and np.array_equal(index, allocation.positions(times * length) // times)
    return times if in_turn else 0


def interpolation(attrs: Mapping[str, AnyValue]) -> Interpolation:
    """Return how a resizing of an image reads it."""
    return Interpolation(
        attrs["method"],
        attrs["coordinate_transformation_mode"],
        attrs["rounding_method"],
        attrs["cubic_alpha"],
        bool(attrs["cubic_exclude"]),
    )
