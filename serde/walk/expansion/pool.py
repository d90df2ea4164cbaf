"""Pooling by slices, over all of an image, and over parts of each axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Literal

import serde.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float
from serde.walk.expansion.tensors import arranged, fixed_shape, tensor_type

__all__ = ["USUAL", "adaptive_pool", "combine_windows", "global_pool"]

USUAL = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
"""The layout in which parts are taken, by the number of spatial axes."""

_MOST_PARTS = 1024
"""Parts that overlap are written one by one."""


def combine_windows(
    data: Expr,
    sizes: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    combine: Callable[[Expr, Expr], Expr],
) -> Expr:
    """Combine the elements of every window, slices of one spatial axis after the other.

    Args:
        data: (batch, channels, *lengths), padded.
        sizes: Elements of a window along each spatial axis.
        strides: Steps from one window to the next.
        dilation: Steps from one element of a window to the next.
        combine: What joins two tensors element by element.

    Raises:
        LimitError: A window has more elements than nodes may be made.
        Unsupported: A length is symbolic.
    """
    allocation.iterations(sum(sizes), f"a window of {list(sizes)}, written element by element,")
    for axis, (size, stride, gap) in enumerate(zip(sizes, strides, dilation, strict=True), start=2):
        (length,) = fixed_shape(data, [axis])
        reach = (length - (size - 1) * gap - 1) // stride * stride + 1
        parts = [
            relay.strided_slice(data, [at], [at + reach], [stride], axes=[axis])
            for at in range(0, size * gap, gap)
        ]
        data = reduce(combine, parts)
    return data


def global_pool(reduction: str) -> Callable[..., Expr]:
    """Return what makes a pooling over all of an image of a reduction, ``max`` or ``mean``."""

    def expand_global_pool(data: Expr, *, layout: str, out_layout: str) -> Expr:
        axes = tuple(layout.index(letter) for letter in "HW")
        result = getattr(relay, reduction)(data, axis=axes, keepdims=True)
        return arranged(result, layout, out_layout or layout)

    return expand_global_pool


def adaptive_pool(pool_type: Literal["max", "avg"], ndim: int) -> Callable[..., Expr]:
    """Return what makes a pooling over parts of `ndim` axes of reductions or of windows."""

    def expand_adaptive_pool(
        data: Expr, *, output_size: tuple[int, ...], layout: str, out_layout: str
    ) -> Expr:
        """One axis after the other; parts of one length are windows of a pooling."""
        dtype, wanted = tensor_type(data).dtype, USUAL[ndim]
        if pool_type == "avg" and not is_float(dtype):
            raise Unsupported(f"a mean over parts of {dtype}")
        result = arranged(data, layout, wanted)
        counts = output_size * ndim if len(output_size) == 1 else output_size
        axes = range(2, 2 + len(counts))
        if tuple(counts) == (1,) * ndim:
            build = relay.max if pool_type == "max" else relay.mean
            result = build(result, axis=tuple(axes), keepdims=True)
            return arranged(result, wanted, out_layout or layout)
        lengths = fixed_shape(result, axes)
        pairs = list(zip(lengths, counts, strict=True))
        if pairs and all(length % count == 0 for length, count in pairs):
            step = tuple(length // count for length, count in pairs)
            build = getattr(relay.nn, f"{pool_type}_pool{ndim}d")
            result = build(result, step, step, padding=(0,) * ndim, layout=wanted)
            return arranged(result, wanted, out_layout or layout)
        for axis, (length, count) in zip(axes, pairs, strict=True):
            if length != count:
                result = _parts(result, axis, length, count, pool_type)
        return arranged(result, wanted, out_layout or layout)

    return expand_adaptive_pool


def _parts(data: Expr, axis: int, length: int, count: int, pool_type: str) -> Expr:
    """Return what a part of an axis comes to, for each of as many parts; they may overlap."""
    if count > _MOST_PARTS:
        raise Unsupported(f"{count} parts of an axis of {length} are too many to write")
    build = relay.max if pool_type == "max" else relay.mean
    places = []
    for index in range(count):
        begin, end = index * length // count, -(-(index + 1) * length // count)
        part = relay.strided_slice(data, [begin], [end], [1], axes=[axis])
        places.append(build(part, axis=(axis,), keepdims=True))
    return relay.concatenate(places, axis=axis)
