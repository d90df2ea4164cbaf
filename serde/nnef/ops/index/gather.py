"""Entries that are picked along an axis."""

from __future__ import annotations

from math import prod
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.nnef.export_context import ExportContext, Value
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import normalize_axis
from serde.walk.expansion.tensors import tensor_type
from serde.walk.pairs import reads
from serde.walk.takes import Takes

__all__ = ["count_from_start", "require_exact"]


@OPS.exports("take", takes=Takes(batch_dims=0))
def export_take(
    ctx: ExportContext,
    data: Value,
    indices: Value,
    *,
    batch_dims: int,
    axis: int | None,
    mode: Literal["clip", "wrap", "fast"],
) -> Value:
    """NNEF reads indices in range alone; constants are brought there."""
    if axis is None:
        flat = ctx.reshape(data, [prod(ctx.static_shape(data))])
        return _gather(ctx, flat, indices, 0, mode)
    return _gather(ctx, data, indices, normalize_axis(axis, ctx.type(data).rank), mode)


@OPS.exports("serde.take")
def export_signed_take(ctx: ExportContext, data: Value, indices: Value, *, axis: int) -> Value:
    """A negative index counts from the end; NNEF has no such, and no arithmetic of integers."""
    along = normalize_axis(axis, ctx.type(data).rank)
    length = ctx.static_shape(data)[along]
    if indices.data is not None:
        indices = ctx.const(np.where(indices.data < 0, indices.data + length, indices.data))
    elif ctx.type(indices).dtype[0] != "u":
        indices = ctx.spell(
            lambda x: relay.cast(count_from_start(x, length, ctx.scalar), "int32"), indices
        )
    return ctx.emit("gather", data, indices, axis=along)


def count_from_start(x: Expr, length: int, scalar: str) -> Expr:
    """Return indices as scalars, negative ones counted from the start.

    Raises:
        Unsupported: Scalars do not hold all of them.
    """
    require_exact(length, scalar)
    number = relay.cast(x, scalar)
    if tensor_type(x).dtype.startswith("u"):
        return number
    shifted = relay.add(number, relay.const(length, scalar))
    return relay.where(relay.less(number, relay.const(0, scalar)), shifted, number)


def _gather(ctx: ExportContext, data: Value, indices: Value, axis: int, mode: str) -> Value:
    length = ctx.static_shape(data)[axis]
    if indices.data is not None:
        places = indices.data.astype(np.int64)
        inside = places % length if mode == "wrap" else places.clip(0, length - 1)
        if (inside != places).any():
            indices = ctx.const(inside, np.int32)
    elif mode == "clip":
        indices = ctx.spell(lambda x: _clip(x, length, ctx.scalar), indices)
    elif mode == "wrap":
        if ctx.type(indices).dtype not in ("int8", "uint8", "int16", "uint16"):
            raise Unsupported("indices that wrap around need arithmetic of integers")
        indices = ctx.spell(lambda x: _wrap(x, length, ctx.scalar), indices)
    return ctx.emit("gather", data, indices, axis=axis)


def _clip(x: Expr, length: int, scalar: str) -> Expr:
    """Return indices clipped to a length; scalars hold all that remain."""
    require_exact(length, scalar)
    return relay.cast(relay.clip(relay.cast(x, scalar), 0, length - 1), "int32")


def _wrap(x: Expr, length: int, scalar: str) -> Expr:
    """Return the remainders of indices of 16 bits, which scalars divide exactly enough."""
    require_exact(max(length, 2**16), scalar)
    number, count = relay.cast(x, scalar), relay.const(length, scalar)
    turns = relay.floor(relay.divide(number, count))
    return relay.cast(relay.subtract(number, relay.multiply(turns, count)), "int32")


def require_exact(length: int, scalar: str) -> None:
    """Refuse to compute with indices that scalars do not hold.

    Raises:
        Unsupported: There are such.
    """
    most = 2 ** (np.finfo(numpy_dtype(scalar)).nmant + 1)
    if length > most:
        raise Unsupported(f"indices up to {length} are computed in {scalar}, exact to {most}")


OPS.pairs(reads("gather", "take", operands="input indices", fixed={"mode": "fast"}, axis=0))
