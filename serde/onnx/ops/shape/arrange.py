"""Elements repeated, in another order, spread over larger shapes, and summed back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import serde.relay as relay
from serde.core.allocation import ones
from serde.onnx.ops.elementwise.convert import cast, retype, to_int64
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Any, Dim, Expr, broadcast, call
from serde.relay.lowering.lengths import bounded_lengths
from serde.walk.pairs import reads


@OPS.exports("tile")
def export_tile(ctx: Export, x: Value, *, reps: tuple[int, ...]) -> Value:
    rank = ctx.type(x).rank
    if len(reps) > rank:
        x = unsqueeze(ctx, x, range(len(reps) - rank))
    return ctx.emit("Tile", x, ctx.ints([*(1,) * (rank - len(reps)), *reps]))


@OPS.exports("reverse")
def export_reverse(ctx: Export, x: Value, *, axis: int | None) -> Value:
    position = ctx.ints([0 if axis is None else axis])
    lowest = ctx.ints([np.iinfo(np.int64).min])
    return ctx.emit("Slice", x, ctx.ints([-1]), lowest, position, ctx.ints([-1]))


@OPS.exports("reverse_sequence")
def export_reverse_sequence(
    ctx: Export, x: Value, seq_lengths: Value, *, seq_axis: int, batch_axis: int
) -> Value:
    """ONNX has the two axes in front, and lengths from 0 (older: 1) to that of the time axis."""
    dtype = ctx.type(x).dtype
    if dtype == "bfloat16" and ctx.version < 28:
        wide = retype(ctx, cast(ctx, x, "float32"), x, "float32")
        transposed = export_reverse_sequence(
            ctx, wide, seq_lengths, seq_axis=seq_axis, batch_axis=batch_axis
        )
        return cast(ctx, transposed, dtype)
    rank = ctx.type(x).rank
    time, batch = seq_axis % rank, batch_axis % rank
    count = ctx.spell(lambda n, data: bounded_lengths(n, data, time), seq_lengths, x)
    order = [batch, time, *(axis for axis in range(rank) if axis not in (batch, time))]
    if {batch, time} == {0, 1}:
        return ctx.emit("ReverseSequence", x, count, batch_axis=batch, time_axis=time)
    moved = ctx.emit("Transpose", x, perm=order)
    transposed = ctx.emit("ReverseSequence", moved, count, batch_axis=0, time_axis=1)
    return ctx.emit("Transpose", transposed, perm=[order.index(axis) for axis in range(rank)])


@OPS.exports("dyn.tile")
def export_dyn_tile(ctx: Export, x: Value, reps: Value) -> Value:
    rank, (count,) = ctx.type(x).rank, ctx.static_shape(reps)
    counts = to_int64(ctx, reps)
    if count > rank:
        x = unsqueeze(ctx, x, range(count - rank))
    if count < rank:
        counts = ctx.emit("Concat", ctx.ints([1] * (rank - count)), counts, axis=0)
    return ctx.emit("Tile", x, counts)


@OPS.imports("Tile", since=(6, 13))
def import_tile(ctx: Import, x: Expr, repeats: Expr) -> Expr:
    return relay.tile(x, ctx.ints(repeats) if ctx.is_constant(repeats) else repeats)


@OPS.imports("Tile", since=1)
def import_tile_v1(ctx: Import, x: Expr, tiles: Expr, axis: Expr) -> Expr:
    """The first version repeats one axis."""
    position, count = (ctx.item(each) for each in (axis, tiles))
    reps = [1] * ctx.type(x).rank
    reps[position] = count
    return relay.tile(x, reps)


OPS.pairs(
    reads(
        "ReverseSequence", "reverse_sequence", since=(10, 28), time_axis=0, batch_axis=1,
        renamed={"time_axis": "seq_axis"},
    ),
)  # fmt: skip


@OPS.exports("broadcast_to", ignored=("shape", "dtype"))
def export_broadcast_to(ctx: Export, x: Value) -> Value:
    return ctx.emit("Expand", x, ctx.shape(ctx.result_type().shape))


@OPS.imports("Expand", since=(8, 13))
def import_expand(ctx: Import, x: Expr, shape: Expr) -> Expr:
    """Both sides broadcast: a length of 1 that is asked for leaves an axis as it is."""
    count = ctx.axis_count(shape)
    dims, own = ctx.dims(shape), ctx.type(x).shape
    if dims is not None:
        wanted = broadcast(own, dims)
        if not any(isinstance(dim, Any) for dim in wanted):
            return relay.broadcast_to(x, wanted)
    have = relay.shape_of(x, dtype=ctx.type(shape).dtype)
    have, asked = _pad_shape(ctx, have, len(own), count), _pad_shape(ctx, shape, count, len(own))
    one = relay.Constant(np.ones((), ctx.type(shape).dtype))
    found = call("dyn.broadcast_to", x, relay.where(relay.equal(asked, one), have, asked))
    return _reshape_to_known(found, own, ctx.partial_dims(shape))


@OPS.exports("broadcast_to_like")
def export_broadcast_to_like(ctx: Export, x: Value, like: Value) -> Value:
    return ctx.emit("Expand", x, ctx.emit("Shape", like))


def _reshape_to_known(x: Expr, own: Sequence[Dim], asked: Sequence[Dim] | None) -> Expr:
    """Return what was broadcast with the lengths that are known, where all but one are.

    Beside a length of 0 the number of elements does not give it.
    """
    if asked is None:
        return x
    lengths = broadcast(own, asked)
    unknown = [dim for dim in lengths if isinstance(dim, Any)]
    if len(unknown) != 1 or len(lengths) == 1 or 0 in lengths:
        return x
    return relay.reshape(x, [-1 if isinstance(dim, Any) else dim for dim in lengths])


def _pad_shape(ctx: Import, shape: Expr, count: int, other: int) -> Expr:
    """Return a shape with leading ones up to the greater of two ranks."""
    if count >= other:
        return shape
    leading = relay.Constant(ones(other - count, ctx.type(shape).dtype))
    return relay.concatenate((leading, shape), 0)


@OPS.exports("dyn.broadcast_to", ignored=("dtype",))
def export_dyn_broadcast_to(ctx: Export, x: Value, shape: Value) -> Value:
    return ctx.emit("Expand", x, to_int64(ctx, shape))
