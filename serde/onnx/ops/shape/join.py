"""Joining, splitting and repeating tensors."""

from __future__ import annotations

import numpy as np

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS
from serde.relay.types import TupleType


@OPS.exports("concatenate")
def export_concatenate(ctx: Ctx, data: tuple[Value, ...], *, axis: int) -> Value:
    return ctx.emit("Concat", *data, axis=axis)


@OPS.exports("nn.fifo_buffer")
def export_fifo_buffer(ctx: Ctx, x: Value, buffer: Value, *, axis: int) -> Value:
    place = axis % ctx.type(x).rank
    joined = ctx.emit("Concat", buffer, x, axis=place)
    start = ctx.shape([ctx.type(x).shape[place]])
    return ctx.emit("Slice", joined, start, ctx.ints([np.iinfo(np.int64).max]), ctx.ints([place]))


@OPS.exports("stack")
def export_stack(ctx: Ctx, data: tuple[Value, ...], *, axis: int) -> Value:
    place = axis % ctx.result_type().rank
    return ctx.emit("Concat", *[unsqueeze(ctx, each, [place]) for each in data], axis=place)


@OPS.exports("split")
def export_split(
    ctx: Ctx, x: Value, *, indices_or_sections: int | tuple[int, ...], axis: int
) -> tuple[Value, ...]:
    """The lengths are an attribute before 13."""
    if not isinstance(ctx.result, TupleType):
        raise Unsupported("the number of parts is not known")
    place = axis % ctx.type(x).rank
    parts = len(ctx.result.fields)
    lengths = [part.shape[place] for part in ctx.result.fields]  # type: ignore[union-attr]
    fixed = [length for length in lengths if isinstance(length, int)]
    if len(fixed) == parts:
        if ctx.version >= 13:
            return ctx.emit_tuple("Split", x, ctx.ints(fixed), outputs=parts, axis=place)
        return ctx.emit_tuple("Split", x, outputs=parts, axis=place, split=fixed)
    if isinstance(indices_or_sections, int):
        count = parts if ctx.version >= 18 else None
        return ctx.emit_tuple("Split", x, outputs=parts, axis=place, num_outputs=count)
    if ctx.version >= 13:
        return ctx.emit_tuple("Split", x, ctx.shape(lengths), outputs=parts, axis=place)
    raise Unsupported("a split of a dynamic axis at given places needs version 13")


@OPS.exports("tile")
def export_tile(ctx: Ctx, x: Value, *, reps: tuple[int, ...]) -> Value:
    rank = ctx.type(x).rank
    if len(reps) > rank:
        x = unsqueeze(ctx, x, range(len(reps) - rank))
    return ctx.emit("Tile", x, ctx.ints([*(1,) * (rank - len(reps)), *reps]))


@OPS.exports("repeat")
def export_repeat(ctx: Ctx, x: Value, *, repeats: int, axis: int | None) -> Value:
    shape = ctx.type(x).shape
    if axis is None:
        x, shape = ctx.emit("Reshape", x, ctx.ints([-1])), (ctx.type(x).size,)
    place = (axis or 0) % len(shape)
    counts = [1] * (len(shape) + 1)
    counts[place + 1] = repeats
    tiled = ctx.emit("Tile", unsqueeze(ctx, x, [place + 1]), ctx.ints(counts))
    return ctx.emit("Reshape", tiled, ctx.shape(ctx.result_type().shape))
