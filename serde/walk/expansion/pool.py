"""Pooling by slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import serde.allocation as allocation
import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.walk.expansion.tensors import fixed_shape

__all__ = ["USUAL", "combine_windows"]

USUAL = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
"""The layout in which parts are taken, by the number of spatial axes."""


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
