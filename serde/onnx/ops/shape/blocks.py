"""Blocks of pixels moved between space and channels, or between space and batch."""

from __future__ import annotations

import numpy as np

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.shape.layout import arranged
from serde.onnx.ops.shape.pad import padded
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.weights import numpy_dtype


@OPS.exports("nn.depth_to_space")
def export_depth_to_space(
    ctx: ExportContext, x: Value, *, block_size: int, layout: str, mode: str
) -> Value:
    moved = ctx.emit(
        "DepthToSpace", arranged(ctx, x, layout, "NCHW"), blocksize=block_size, mode=mode
    )
    return arranged(ctx, moved, "NCHW", layout)


@OPS.exports("nn.space_to_depth")
def export_space_to_depth(
    ctx: ExportContext, x: Value, *, block_size: int, layout: str, mode: str
) -> Value:
    moved = ctx.emit("SpaceToDepth", arranged(ctx, x, layout, "NCHW"), blocksize=block_size)
    return arranged(ctx, moved, "NCHW", layout)


@OPS.exports("nn.space_to_batch_nd")
def export_space_to_batch_nd(
    ctx: ExportContext,
    x: Value,
    *,
    block_shape: tuple[int, ...],
    paddings: tuple[tuple[int, int], ...],
    pad_value: float,
) -> Value:
    """Each axis is cut into blocks, whose places go in front of the batch."""
    type_ = ctx.type(x)
    count, rest = len(block_shape), type_.rank - 1 - len(block_shape)
    sides = [(0, 0), *paddings, *[(0, 0)] * rest]
    if any(side for pair in sides for side in pair):
        widths = ctx.ints([pair[0] for pair in sides] + [pair[1] for pair in sides])
        value = np.asarray(pad_value).astype(numpy_dtype(type_.dtype))
        x = padded(ctx, x, type_.dtype, widths, ctx.const(value, type_.dtype))
    result = ctx.result_type().shape
    tail = result[1 + count :]
    split: list[Dim] = [type_.shape[0]]
    for length, block in zip(result[1 : 1 + count], block_shape, strict=True):
        split += [length, block]
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2)]
    parts = ctx.emit("Reshape", x, ctx.shape([*split, *tail]))
    last = 2 * count + 1
    moved = ctx.emit("Transpose", parts, perm=[*order, *range(last, last + rest)])
    return ctx.emit("Reshape", moved, ctx.shape(result))


@OPS.exports("nn.batch_to_space_nd")
def export_batch_to_space_nd(
    ctx: ExportContext,
    x: Value,
    *,
    block_shape: tuple[int, ...],
    crops: tuple[tuple[int, int], ...],
) -> Value:
    """The places in the blocks come first in the batch and go behind their axes."""
    shape, count = ctx.type(x).shape, len(block_shape)
    batch, space, tail = ctx.result_type().shape[0], shape[1 : 1 + count], shape[1 + count :]
    parts = ctx.emit("Reshape", x, ctx.shape([*block_shape, batch, *space, *tail]))
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    order += range(2 * count + 1, count + len(shape))
    moved = ctx.emit("Transpose", parts, perm=order)
    spread = [length * block for length, block in zip(space, block_shape, strict=True)]
    whole = ctx.emit("Reshape", moved, ctx.shape([batch, *spread, *tail]))
    cut = [axis for axis, pair in enumerate(crops) if any(pair)]
    if not cut:
        return whole
    starts = ctx.ints(crops[axis][0] for axis in cut)
    ends = ctx.shape([spread[axis] - crops[axis][1] for axis in cut])
    return ctx.emit("Slice", whole, starts, ends, ctx.ints(axis + 1 for axis in cut))
