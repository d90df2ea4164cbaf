"""Elements picked by indices of several axes, which are computed into places of a flat tensor.

NNEF has no arithmetic of integers: places are computed as scalars where these hold all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import Array
from serde.errors import Unsupported
from serde.nnef.export_context import ExportContext, Value
from serde.nnef.ops.index.gather import count_from_start, require_exact
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import normalize_axis
from serde.walk.expansion.tensors import fixed_shape, tensor_type

__all__: list[str] = []


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
def export_gather(ctx: ExportContext, data: Value, indices: Value, *, axis: int | None) -> Value:
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
    ctx: ExportContext,
    data: Value,
    indices: Sequence[Value],
    batch_dims: int,
    shape: Sequence[int],
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
def export_gather_nd(ctx: ExportContext, data: Value, indices: Value, *, batch_dims: int) -> Value:
    depth, *shape = ctx.static_shape(indices, at_least=1)
    parts = [_row(ctx, indices, 0, place) for place in range(depth)]
    return _pick(ctx, data, parts, batch_dims, shape)


@OPS.exports("serde.gather_nd")
def export_signed_gather_nd(
    ctx: ExportContext, data: Value, indices: Value, *, batch_dims: int
) -> Value:
    *shape, depth = ctx.static_shape(indices, at_least=1)
    parts = [_row(ctx, indices, len(shape), place) for place in range(depth)]
    return _pick(ctx, data, parts, batch_dims, shape)


def _row(ctx: ExportContext, x: Value, axis: int, place: int) -> Value:
    """Return one place of an axis, which goes."""

    def build(given: Expr) -> Expr:
        part = relay.strided_slice(given, [place], [place + 1], axes=[axis])
        return relay.squeeze(part, axis=[axis])

    return ctx.spell(build, x)


@OPS.exports("adv_index")
def export_adv_index(ctx: ExportContext, inputs: Sequence[Value]) -> Value:
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
