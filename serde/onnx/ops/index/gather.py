"""Elements picked by index."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import cast, to_int64
from serde.onnx.ops.shape.reshape import emit_range, reshape_along, unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TensorType, call
from serde.relay.lowering.index import bring_inside
from serde.walk import Takes, reads, writes


@OPS.exports("take")
def export_take(
    ctx: Export,
    x: Value,
    indices: Value,
    *,
    batch_dims: int,
    axis: int | None,
    mode: Literal["clip", "wrap", "fast"],
) -> Value:
    """ONNX counts negative indices from the end and refuses those outside."""
    index_rank = ctx.type(indices).rank
    if axis is None:
        whole = TensorType((ctx.type(x).size,), ctx.type(x).dtype)
        x, axis = replace(ctx.emit("Reshape", x, ctx.ints([-1])), type=whole), 0
    rank = ctx.type(x).rank
    position = axis % rank
    if mode != "fast":
        indices = ctx.spell(lambda i, data: bring_inside(i, data, position, mode), indices, x)
    indices = _as_indices(ctx, indices)
    batched = batch_dims + index_rank if batch_dims < 0 else batch_dims
    if not batched:
        return ctx.emit("Gather", x, indices, axis=position)
    return _take_batched(ctx, x, indices, rank, index_rank, position, batched)


@OPS.imports("Gather", since=(1, 11, 13))
def import_gather(ctx: Import, x: Expr, indices: Expr, *, axis: int = 0) -> Expr:
    """Where indices are known, those from the end are counted from the start."""
    length = ctx.dim_at(x, axis)
    known = ctx.known(indices)
    if known is None or not isinstance(length, int):
        return call("serde.take", x, indices, axis=axis)
    if known.size and not -length <= known.min() <= known.max() < length:
        raise Unsupported(f"an index outside a length of {length}")
    return relay.take(x, relay.Constant(known % max(length, 1)), axis=axis, mode="fast")


def _take_batched(
    ctx: Export, x: Value, indices: Value, rank: int, index_rank: int, axis: int, batched: int
) -> Value:
    """GatherND looks behind the batch axes, so `axis` goes there and what it passed comes back.

    It has batch axes since version 12; of indices for each row, GatherElements does the same.
    """
    passed = list(range(batched, axis))
    width = ctx.type(x).shape[axis + 1 :]
    alone = not passed and index_rank == axis + 1 < rank
    if ctx.version < 12 and alone and all(isinstance(n, int) for n in width):
        rows = unsqueeze(ctx, cast(ctx, indices, np.int64), list(range(index_rank, rank)))
        rows = ctx.emit("Expand", rows, ctx.shape([1] * index_rank + list(width)))
        return ctx.emit("GatherElements", x, rows, axis=axis)
    order = [*range(batched), axis, *passed, *range(axis + 1, rank)]
    moved = ctx.emit("Transpose", x, perm=order) if passed else x
    single = unsqueeze(ctx, cast(ctx, indices, np.int64), [index_rank])
    found = _emit_gather_nd(ctx, moved, single, index_rank + 1, batched)
    if not passed:
        return found
    new = range(batched, index_rank)
    back = [
        *range(batched),
        *(len(new) + each for each in passed),
        *new,
        *range(index_rank + len(passed), index_rank + rank - 1 - batched),
    ]
    return ctx.emit("Transpose", found, perm=back)


@OPS.exports("gather")
def export_gather(ctx: Export, x: Value, indices: Value, *, axis: int | None) -> Value:
    positions = _as_indices(ctx, indices)
    return ctx.emit("GatherElements", x, positions, axis=(axis or 0) % ctx.type(x).rank)


def _as_indices(ctx: Export, indices: Value) -> Value:
    """Return indices as ONNX takes them: of 32 or 64 bits, signed."""
    known = indices.type is None or ctx.type(indices).dtype in ("int32", "int64")
    return indices if known else to_int64(ctx, indices)


@OPS.exports("gather_nd", ignored=("index_rank",))
def export_gather_nd(ctx: Export, x: Value, indices: Value, *, batch_dims: int) -> Value:
    """Relay keeps the tuple of an index in the first axis, ONNX in the last."""
    type_ = ctx.type(indices)
    order = [*range(1, type_.rank), 0]
    moved = ctx.emit("Transpose", indices, perm=order) if type_.rank > 1 else indices
    wide = moved if type_.dtype == "int64" else cast(ctx, moved, np.int64)
    return _emit_gather_nd(ctx, x, wide, type_.rank, batch_dims)


def _emit_gather_nd(ctx: Export, x: Value, indices: Value, rank: int, batch_dims: int) -> Value:
    """Emit GatherND; before 12, the indices of the batch axes become part of the indices."""
    if not batch_dims or ctx.version >= 12:
        return ctx.emit("GatherND", x, indices, batch_dims=batch_dims or None)
    shape = ctx.emit("Shape", indices)
    front = ctx.emit("Slice", shape, ctx.ints([0]), ctx.ints([rank - 1]), ctx.ints([0]))
    single = ctx.emit("Concat", front, ctx.ints([1]), axis=0)
    parts = []
    for axis in range(batch_dims):
        count = ctx.emit("Gather", shape, ctx.ints([axis]), axis=0)
        steps = reshape_along(ctx, emit_range(ctx, count), axis, rank)
        parts.append(ctx.emit("Expand", steps, single))
    return ctx.emit("GatherND", x, ctx.emit("Concat", *parts, indices, axis=-1))


@OPS.exports("serde.gather_nd", takes=Takes(batch_dims=0), op="GatherND")
@OPS.exports("serde.gather_nd", since=12, op="GatherND")
def export_serde_gather_nd(ctx: Export, x: Value, indices: Value, *, batch_dims: int) -> Value:
    return ctx.emit("GatherND", x, indices, batch_dims=batch_dims or None)


OPS.pairs(
    reads("GatherElements", "gather", since=(11, 13), axis=0),
    reads("GatherND", "serde.gather_nd", since=(11, 12, 13), batch_dims=0),
    writes("Gather", "serde.take", "axis"),
)
