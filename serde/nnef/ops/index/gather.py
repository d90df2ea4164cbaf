"""Entries picked along an axis, and elements picked by indices of several axes.

NNEF has no arithmetic of integers: places are computed as scalars where these hold all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import Array, numpy_dtype
from serde.errors import Unsupported
from serde.nnef.ops.table import OPS, Export, Value
from serde.relay.ir import Expr, call, normalize_axis, tensor_type
from serde.walk import Takes, reads
from serde.walk.expansion.tensors import fixed_shape

__all__ = ["count_from_start", "require_exact"]


@OPS.exports("take", takes=Takes(batch_dims=0))
def export_take(
    ctx: Export,
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
def export_signed_take(ctx: Export, data: Value, indices: Value, *, axis: int) -> Value:
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
    """Return indices as scalars, negative ones counted from the start."""
    require_exact(length, scalar)
    number = relay.cast(x, scalar)
    if tensor_type(x).dtype.startswith("u"):
        return number
    shifted = relay.add(number, relay.const(length, scalar))
    return relay.where(relay.less(number, relay.const(0, scalar)), shifted, number)


def _gather(ctx: Export, data: Value, indices: Value, axis: int, mode: str) -> Value:
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
    """Refuse to compute with indices that scalars do not hold."""
    most = 2 ** (np.finfo(numpy_dtype(scalar)).nmant + 1)
    if length > most:
        raise Unsupported(f"indices up to {length} are computed in {scalar}, exact to {most}")


OPS.pairs(reads("gather", "take", operands="input indices", fixed={"mode": "fast"}, axis=0))


def _place(parts: Sequence[tuple[Expr, int]], lengths: Sequence[int], first: Array) -> Expr:
    """Return places in a flat tensor.

    Args:
        parts: Indices as scalars, and the axis of each.
        lengths: Lengths of all axes that the indices and `first` name.
        first: What is added to the places, of the indices' shape.
    """
    scalar = tensor_type(parts[0][0]).dtype
    total: Expr | None = None
    for number, axis in parts:
        stride = prod(lengths[axis + 1 :])
        term = number if stride == 1 else relay.multiply(number, relay.const(stride, scalar))
        total = term if total is None else relay.add(total, term)
    if total is None:
        raise Unsupported("no index names a place")
    if first.any():
        total = relay.add(total, relay.const(first, scalar))
    return relay.cast(total, "int32")


def _grid(shape: Sequence[int], lengths: Sequence[int], axes: Sequence[tuple[int, int]]) -> Array:
    """Return the part of places that axes of the indices themselves tell.

    Args:
        shape: Shape of the indices.
        lengths: Lengths of all axes that are made one.
        axes: Which axis of the indices stands for which of these.
    """
    places = allocation.indices(tuple(shape))
    found = allocation.zeros(tuple(shape), np.int64)
    for own, axis in axes:
        found += places[own] * prod(lengths[axis + 1 :])
    return found


@OPS.exports("gather")
def export_gather(ctx: Export, data: Value, indices: Value, *, axis: int | None) -> Value:
    """Each index names the element of its own place on all other axes."""
    lengths, shape = ctx.static_shape(data), ctx.static_shape(indices)
    along = normalize_axis(axis or 0, len(lengths))
    require_exact(prod(lengths), ctx.scalar)
    others = [(each, each) for each in range(len(lengths)) if each != along]
    first = _grid(shape, lengths, others)
    flat = ctx.reshape(data, [prod(lengths)])

    def build(index: Expr) -> Expr:
        number = count_from_start(index, lengths[along], ctx.scalar)
        return _place([(number, along)], lengths, first)

    return ctx.emit("gather", flat, ctx.spell(build, indices))


def _pick(
    ctx: Export, data: Value, indices: Sequence[Value], batch_dims: int, shape: Sequence[int]
) -> Value:
    """Return slices at indices of the axes behind those that indices and data share."""
    lengths = ctx.static_shape(data)
    depth = batch_dims + len(indices)
    picked = lengths[:depth]
    require_exact(prod(picked), ctx.scalar)
    first = _grid(shape, picked, [(each, each) for each in range(batch_dims)])
    flat = ctx.reshape(data, [prod(picked), *lengths[depth:]])

    def build(*given: Expr) -> Expr:
        axes = range(batch_dims, depth)
        parts = [
            (count_from_start(x, picked[axis], ctx.scalar), axis)
            for x, axis in zip(given, axes, strict=True)
        ]
        return _place(parts, picked, first)

    return ctx.emit("gather", flat, ctx.spell(build, *indices))


@OPS.exports("gather_nd", ignored=("index_rank",))
def export_gather_nd(ctx: Export, data: Value, indices: Value, *, batch_dims: int) -> Value:
    depth, *shape = ctx.static_shape(indices, at_least=1)
    parts = [_row(ctx, indices, 0, index) for index in range(depth)]
    return _pick(ctx, data, parts, batch_dims, shape)


@OPS.exports("serde.gather_nd")
def export_signed_gather_nd(ctx: Export, data: Value, indices: Value, *, batch_dims: int) -> Value:
    *shape, depth = ctx.static_shape(indices, at_least=1)
    parts = [_row(ctx, indices, len(shape), index) for index in range(depth)]
    return _pick(ctx, data, parts, batch_dims, shape)


def _row(ctx: Export, x: Value, axis: int, index: int) -> Value:
    """Return one place of an axis, which goes."""

    def build(given: Expr) -> Expr:
        part = relay.strided_slice(given, [index], [index + 1], axes=[axis])
        return relay.squeeze(part, axis=[axis])

    return ctx.spell(build, x)


@OPS.exports("adv_index")
def export_adv_index(ctx: Export, inputs: Sequence[Value]) -> Value:
    data, *indices = inputs
    shape = np.broadcast_shapes(*(ctx.static_shape(each) for each in indices))
    return _pick(ctx, data, indices, 0, shape)


@OPS.expands("reverse_sequence")
def expand_reverse_sequence(
    data: Expr, seq_lengths: Expr, *, seq_axis: int, batch_axis: int
) -> Expr:
    """Each step looks its place up, which its number and the length of its sequence tell."""
    shape = fixed_shape(data)
    require_exact(shape[seq_axis], "float32")
    wanted, across = [1] * len(shape), [1] * len(shape)
    wanted[seq_axis], across[batch_axis] = shape[seq_axis], shape[batch_axis]
    steps = relay.const(allocation.arange(shape[seq_axis]).reshape(wanted), "float32")
    most = relay.const(shape[seq_axis], "float32")
    lengths = relay.reshape(relay.minimum(relay.cast(seq_lengths, "float32"), most), across)
    back = relay.subtract(relay.subtract(lengths, relay.const(1, "float32")), steps)
    source = relay.where(relay.less(steps, lengths), back, steps)
    return relay.gather(data, seq_axis, relay.cast(relay.broadcast_to(source, shape), "int32"))


@OPS.expands("take")
def expand_take(data: Expr, indices: Expr, *, batch_dims: int, axis: int | None, mode: str) -> Expr:
    """Indices that share axes with the data name those places, too."""
    shape, wanted = fixed_shape(data), fixed_shape(indices)
    if mode == "wrap" or axis is None:
        raise Unsupported("indices that wrap around need arithmetic of integers")
    along = normalize_axis(axis, len(shape))
    shared = batch_dims + len(wanted) if batch_dims < 0 else batch_dims
    if mode == "clip":
        indices = relay.clip(indices, 0, shape[along] - 1)
    passed = list(range(shared, along))
    order = [*range(shared), along, *passed, *range(along + 1, len(shape))]
    moved = relay.transpose(data, axes=order)
    found = call("serde.gather_nd", moved, relay.expand_dims(indices, -1), batch_dims=shared)
    middle = [len(wanted) + each for each in range(len(passed))]
    rest = range(len(wanted) + len(passed), len(wanted) + len(shape) - shared - 1)
    back = [*range(shared), *middle, *range(shared, len(wanted)), *rest]
    return relay.transpose(found, axes=back)
