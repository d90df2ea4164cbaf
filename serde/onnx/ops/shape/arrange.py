"""Elements repeated, or put in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import cast, typed
from serde.onnx.ops.shape.reshape import integers, reshaped, unsqueeze
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Any, Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.types import TensorType


@OPS.exports("tile")
def export_tile(ctx: ExportContext, x: Value, *, reps: tuple[int, ...]) -> Value:
    rank = ctx.type(x).rank
    if len(reps) > rank:
        x = unsqueeze(ctx, x, range(len(reps) - rank))
    return ctx.emit("Tile", x, ctx.ints([*(1,) * (rank - len(reps)), *reps]))


@OPS.exports("repeat")
def export_repeat(ctx: ExportContext, x: Value, *, repeats: int, axis: int | None) -> Value:
    shape = ctx.type(x).shape
    if axis is None:
        x, shape = ctx.emit("Reshape", x, ctx.ints([-1])), (ctx.type(x).size,)
    place = (axis or 0) % len(shape)
    counts = [1] * (len(shape) + 1)
    counts[place + 1] = repeats
    tiled = ctx.emit("Tile", unsqueeze(ctx, x, [place + 1]), ctx.ints(counts))
    counted = zip((*shape[: place + 1], 1, *shape[place + 1 :]), counts, strict=True)
    wide = TensorType([dim * count for dim, count in counted], ctx.result_type().dtype)
    return reshaped(ctx, Value(tiled.name, wide), ctx.result_type().shape)


@OPS.exports("reverse")
def export_reverse(ctx: ExportContext, x: Value, *, axis: int | None) -> Value:
    place = ctx.ints([0 if axis is None else axis])
    lowest = ctx.ints([np.iinfo(np.int64).min])
    return ctx.emit("Slice", x, ctx.ints([-1]), lowest, place, ctx.ints([-1]))


@OPS.imports("Transpose", since=(1, 13, 21, 23, 24, 25))
def import_transpose(ctx: ImportContext, x: Expr, *, perm: tuple[int, ...] | None = None) -> Expr:
    return relay.transpose(x, axes=perm)


@OPS.imports("DepthToSpace", since=(1, 11, 13, 28))
def import_depth_to_space(
    ctx: ImportContext, x: Expr, *, blocksize: int, mode: Literal["DCR", "CRD"] = "DCR"
) -> Expr:
    return relay.nn.depth_to_space(x, blocksize, layout="NCHW", mode=mode)


@OPS.imports("SpaceToDepth", since=(1, 13))
def import_space_to_depth(ctx: ImportContext, x: Expr, *, blocksize: int) -> Expr:
    return relay.nn.space_to_depth(x, blocksize, layout="NCHW")


@OPS.imports("SpaceToDepth", since=28)
def import_space_to_depth_v28(
    ctx: ImportContext, x: Expr, *, blocksize: int, mode: Literal["DCR", "CRD"] = "DCR"
) -> Expr:
    """CRD keeps what comes from one channel together."""
    if mode == "DCR":
        return import_space_to_depth(ctx, x, blocksize=blocksize)
    n, c, h, w = ctx.type(x).shape
    rows, columns = h // blocksize, w // blocksize
    split = relay.reshape(x, _named([n, c, rows, blocksize, columns, blocksize]))
    moved = relay.transpose(split, axes=[0, 1, 3, 5, 2, 4])
    return relay.reshape(moved, _named([n, c * blocksize * blocksize, rows, columns]))


def _named(dims: Sequence[Dim]) -> list[Dim]:
    """Return dimensions as an attribute.

    Raises:
        Unsupported: More than one is without a length or a name.
    """
    if sum(isinstance(dim, Any) for dim in dims) > 1:
        raise Unsupported(f"several axes without a length or a name: {list(dims)}")
    return [-1 if isinstance(dim, Any) else dim for dim in dims]


@OPS.exports("reverse_sequence")
def export_reverse_sequence(
    ctx: ExportContext, x: Value, seq_lengths: Value, *, seq_axis: int, batch_axis: int
) -> Value:
    """ONNX has the two axes in front; a sequence of length 0 stays, as one of length 1 does."""
    dtype = ctx.type(x).dtype
    if dtype == "bfloat16" and ctx.version < 28:
        wide = typed(ctx, cast(ctx, x, "float32"), x, "float32")
        turned = export_reverse_sequence(
            ctx, wide, seq_lengths, seq_axis=seq_axis, batch_axis=batch_axis
        )
        return cast(ctx, turned, dtype)
    rank = ctx.type(x).rank
    time, batch = seq_axis % rank, batch_axis % rank
    count = integers(ctx, seq_lengths)
    one = ctx.const(1, np.int64)
    if count.data is None or count.data.min(initial=1) < 1:
        count = ctx.emit("Where", ctx.emit("Less", count, one), one, count)
    order = [batch, time, *(axis for axis in range(rank) if axis not in (batch, time))]
    if {batch, time} == {0, 1}:
        return ctx.emit("ReverseSequence", x, count, batch_axis=batch, time_axis=time)
    moved = ctx.emit("Transpose", x, perm=order)
    turned = ctx.emit("ReverseSequence", moved, count, batch_axis=0, time_axis=1)
    return ctx.emit("Transpose", turned, perm=[order.index(axis) for axis in range(rank)])


@OPS.imports("ReverseSequence", since=(10, 28))
def import_reverse_sequence(
    ctx: ImportContext, x: Expr, sequence_lens: Expr, *, batch_axis: int = 1, time_axis: int = 0
) -> Expr:
    return relay.reverse_sequence(x, sequence_lens, seq_axis=time_axis, batch_axis=batch_axis)
