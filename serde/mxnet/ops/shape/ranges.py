"""Ranges as long as a tensor, or one axis of it."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.dims import Any, Dim
from serde.relay.ir.expr import Expr
from serde.walk.context import TypedContext
from serde.weights import numpy_dtype

__all__ = ["places"]


def places(ctx: TypedContext[Expr], x: Expr, axis: int | None, dtype: str = "int32") -> Expr:
    """Return the places along an axis, or of all elements, counted from 0, as a vector."""
    length: Dim = 1
    for each in ctx.type(x).shape if axis is None else [ctx.type(x).shape[axis]]:
        length = length * each
    if isinstance(length, int):
        return relay.Constant(np.arange(length, dtype=dtype))
    if not isinstance(length, Any):
        return relay.cumsum(relay.ones((length,), dtype), axis=0, exclusive=True)
    if axis is None:
        count = relay.ndarray_size(x, "int32")
    else:
        at = relay.const(np.int32(axis % ctx.type(x).rank))
        count = relay.take(relay.shape_of(x, "int32"), at, mode="fast")
    zero, one = relay.const(np.int32(0)), relay.const(np.int32(1))
    return relay.cast(relay.arange(zero, count, one, dtype="int32"), dtype)


@OPS.imports("_contrib_arange_like", ignored=("ctx",))
def import_arange_like(
    ctx: ImportContext,
    data: Expr,
    *,
    start: float = 0.0,
    step: float = 1.0,
    repeat: int = 1,
    axis: int | None = None,
) -> Expr:
    """Unlike a plain range, `repeat` leaves the length as it is, and bounds of float16 are whole.

    Without an axis the numbers fill a tensor of the shape of `data`.
    """
    if repeat == 0:
        raise Unsupported("repeat=0")
    numbers = places(ctx, data, axis)
    if abs(repeat) != 1:
        numbers = relay.floor_divide(numbers, relay.const(np.int32(abs(repeat))))
    if repeat < 0:
        step = -step
    dtype = numpy_dtype(ctx.type(data).dtype)
    if dtype not in (np.float32, np.float64):
        start, step = int(start), int(step)
    numbers = relay.cast(numbers, dtype)
    if step != 1:
        numbers = relay.multiply(numbers, relay.Constant(np.array(step).astype(dtype)))
    if start != 0:
        numbers = relay.add(numbers, relay.Constant(np.array(start).astype(dtype)))
    return numbers if axis is not None else relay.reshape_like(numbers, data)
