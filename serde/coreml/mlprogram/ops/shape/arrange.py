"""Elements repeated, in another order, spread over larger shapes, and summed back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.coreml.mlprogram.operators import MOVE_DTYPES, NUMBERS_OR_BOOL, emit_in
from serde.coreml.mlprogram.ops.shape.reshape import expand_dims, reshape
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.coreml.value import MAX_RANK
from serde.errors import Unsupported
from serde.relay.ir import Any, Dim, Expr, TensorType, call, same_length, tensor_type
from serde.relay.lowering.lengths import bounded_lengths
from serde.relay.lowering.shape import decompose_repeat
from serde.walk.pairs import reads


def spread(ctx: Export, x: Value, dims: Sequence[Dim]) -> Value:
    """Return `x`, which gives the node's result, repeated along its axes of length 1."""
    own = ctx.type(x).shape
    if not dims:
        return x
    given: list[Dim] = [1] * (len(dims) - len(own)) + list(own)
    counts: list[Dim] = []
    for have, want in zip(given, dims, strict=True):
        if have != want and have != 1:
            raise Unsupported(f"a length {have} that may be 1 or {want}")
        counts.append(1 if same_length(have, want) else want)
    return tile(ctx, reshape(ctx, x, given), counts)


def tile(ctx: Export, x: Value, counts: Sequence[Dim]) -> Value:
    """Return `x` as often along each axis as `counts` says; it gives the node's result."""
    if all(isinstance(count, int) and count == 1 for count in counts):
        return x
    if any(isinstance(count, int) and count == 0 for count in counts):
        raise Unsupported("a tensor without elements")
    return emit_in(ctx, NUMBERS_OR_BOOL, "tile", {"x": x}, reps=ctx.shape(counts))


@OPS.exports("broadcast_to", ignored=("shape", "dtype"))
def export_broadcast_to(ctx: Export, data: Value) -> Value:
    return spread(ctx, data, ctx.result_type().shape)


def spread_as(ctx: Export, x: Value, like: Value) -> Value:
    """Return `x`, which gives the node's result, in the shape of another tensor."""
    dims = ctx.result_type().shape
    if ctx.type(like).rank != len(dims):
        raise Unsupported("a length that is not known before the model runs")
    given = [1] * (len(dims) - ctx.type(x).rank) + list(ctx.type(x).shape)
    shape = ctx.emit("shape", TensorType((len(dims),), "int32"), x=like)
    return _spread_over(ctx, reshape(ctx, x, given), shape)


@OPS.exports("broadcast_to_like")
def export_broadcast_to_like(ctx: Export, data: Value, like: Value) -> Value:
    dims = ctx.result_type().shape
    open_ = any(isinstance(dim, Any) for dim in dims)
    return spread_as(ctx, data, like) if open_ else spread(ctx, data, dims)


@OPS.exports("dyn.broadcast_to", ignored=("dtype",))
def export_dyn_broadcast_to(ctx: Export, data: Value, shape: Value) -> Value:
    (rank,) = ctx.static_lengths(shape, [0])
    given = [1] * (rank - ctx.type(data).rank) + list(ctx.type(data).shape)
    return _spread_over(ctx, reshape(ctx, data, given), shape)


def _spread_over(ctx: Export, x: Value, shape: Value) -> Value:
    """Repeat each axis as often as its length goes into the one that is asked for."""
    if all(dim == 1 for dim in ctx.type(x).shape):
        counts = shape
    else:
        own = ctx.shape(ctx.type(x).shape)
        counts = ctx.emit("floor_div", TensorType(ctx.type(shape).shape, "int32"), x=shape, y=own)
    return emit_in(ctx, NUMBERS_OR_BOOL, "tile", {"x": x}, reps=counts)


@OPS.imports("tile")
def import_tile(ctx: Import, x: Expr, reps: Expr) -> Expr:
    if ctx.is_constant(reps):
        return relay.tile(x, ctx.ints(reps))
    return call("dyn.tile", x, reps)


@OPS.exports("tile")
def export_tile(ctx: Export, data: Value, *, reps: tuple[int, ...]) -> Value:
    rank = ctx.type(data).rank
    data = expand_dims(ctx, data, range(len(reps) - rank)) if len(reps) > rank else data
    return tile(ctx, data, [*[1] * (rank - len(reps)), *reps])


@OPS.exports("dyn.tile")
def export_dyn_tile(ctx: Export, data: Value, reps: Value) -> Value:
    rank, count = ctx.type(data).rank, ctx.static_lengths(reps, [0])[0]
    if count > rank:
        data = expand_dims(ctx, data, range(count - rank))
    if count < rank:
        ones = ctx.const(allocation.ones(rank - count), "int32")
        reps = ctx.emit("concat", TensorType((rank,), "int32"), values=[ones, reps], axis=0)
    return emit_in(ctx, NUMBERS_OR_BOOL, "tile", {"x": data}, reps=reps)


@OPS.expands("repeat")
def expand_repeat(data: Expr, *, repeats: int, axis: int | None) -> Expr:
    """Where there is no room for one more axis, each entry is looked up."""
    type_ = tensor_type(data)
    length = None if axis is None else type_.shape[axis]
    if not isinstance(length, int) or type_.rank < MAX_RANK:
        return decompose_repeat(data, repeats=repeats, axis=axis)
    places = allocation.repeat(allocation.arange(length, dtype=np.int32), repeats)
    return relay.take(data, relay.Constant(places), axis=axis)


@OPS.imports("reverse", since=(1, 17))
def import_reverse(ctx: Import, x: Expr, *, axes: tuple[int, ...] | int | None = None) -> Expr:
    named = axes if isinstance(axes, tuple) else (axes,)
    for axis in range(ctx.type(x).rank) if axes is None else named:
        x = relay.reverse(x, axis=axis)
    return x


@OPS.exports("reverse")
def export_reverse(ctx: Export, data: Value, *, axis: int | None) -> Value:
    return emit_in(ctx, MOVE_DTYPES, "reverse", {"x": data}, axes=[0 if axis is None else axis])


OPS.pairs(
    reads(
        "reverse_sequence", "reverse_sequence", since=(1, 17), operands="x lengths", seq_axis=0,
        batch_axis=0,
    ),
)  # fmt: skip


@OPS.exports("reverse_sequence")
def export_reverse_sequence(
    ctx: Export, data: Value, seq_lengths: Value, *, seq_axis: int, batch_axis: int
) -> Value:
    """MIL defines lengths from 0 to that of the axis only."""
    lengths = ctx.spell(lambda n, x: bounded_lengths(n, x, seq_axis, "int32"), seq_lengths, data)
    return emit_in(
        ctx, MOVE_DTYPES, "reverse_sequence", {"x": data}, lengths=lengths, seq_axis=seq_axis,
        batch_axis=batch_axis,
    )  # fmt: skip
