"""Elements spread, joined, summed and put in other places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.relay.ir.types import TensorType
from serde.walk.expansion.tensors import tensor_type
from serde.weights import numpy_dtype

__all__ = [
    "expand_dilate",
    "expand_fifo_buffer",
    "running",
]


def expand_fifo_buffer(data: Expr, buffer: Expr, *, axis: int) -> Expr:
    """The last entries of the two together, as many as the buffer has."""
    joined = relay.concatenate((buffer, data), axis=axis)
    kept = buffer.checked_type
    length = kept.shape[axis] if isinstance(kept, TensorType) else None
    if not isinstance(length, int):
        raise Unsupported("a buffer whose length is not fixed")
    return relay.strided_slice(joined, [-length], [2**31 - 1], axes=[axis])


def expand_dilate(x: Expr, *, strides: tuple[int, ...], dilation_value: float) -> Expr:
    """Each element gets a place of its own, is padded there, and the last is cut."""
    for axis, stride in enumerate(strides):
        type_ = x.checked_type
        if not isinstance(type_, TensorType):
            raise Unsupported(f"expected a tensor, found {type_!r}")
        if stride == 1:
            continue
        value: AnyValue = np.asarray(dilation_value).astype(numpy_dtype(type_.dtype))
        widths = [(0, 0)] * (type_.rank + 1)
        widths[axis + 1] = (0, stride - 1)
        apart = relay.nn.pad(relay.expand_dims(x, axis=axis + 1), widths, relay.Constant(value))
        shape = list(type_.shape)
        shape[axis] = shape[axis] * stride
        x = relay.strided_slice(relay.reshape(apart, shape), [0], [1 - stride], axes=[axis])
    return x


def running(build: Callable[[Expr, Expr], Expr], neutral: int) -> Callable[..., Expr]:
    """Return what makes a running total of an operator and its neutral element.

    Each step takes in what lies twice as far back, so that few steps reach the front.
    """

    def expand_running(data: Expr, *, axis: int | None, dtype: AnyValue, exclusive: bool) -> Expr:
        if axis is None:
            data, axis = relay.reshape(data, [-1]), 0
        if dtype is not None:
            data = relay.cast(data, dtype)
        type_ = tensor_type(data)
        length = type_.shape[axis]
        if not isinstance(length, int):
            raise Unsupported("a running total along a length that is not fixed")
        place = axis % type_.rank
        start = relay.const(neutral, type_.dtype)
        reach = 1

        def behind(x: Expr, steps: int) -> Expr:
            """Return `x` moved on by some places, with neutral elements in front."""
            front = [dim if each != place else steps for each, dim in enumerate(type_.shape)]
            if steps >= length:
                return relay.full(start, type_.shape)
            kept = relay.strided_slice(x, [0], [length - steps], axes=[place])
            return relay.concatenate((relay.full(start, front), kept), axis=place)

        found = behind(data, 1) if exclusive else data
        while reach < length:
            found = build(found, behind(found, reach))
            reach *= 2
        return found

    return expand_running
