"""Blocks of pixels moved between space and channels, or between space and batch."""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.shape.layout import to_layout
from serde.onnx.ops.shape.pad import emit_pad
from serde.onnx.ops.shape.reshape import to_attribute
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.weights import numpy_dtype


@OPS.exports("nn.depth_to_space")
def export_depth_to_space(
    ctx: ExportContext, x: Value, *, block_size: int, layout: str, mode: str
) -> Value:
    """An empty mode, which ONNX does not know, is DCR."""
    planar = to_layout(ctx, x, layout, "NCHW")
    moved = ctx.emit("DepthToSpace", planar, blocksize=block_size, mode=mode or "DCR")
    return to_layout(ctx, moved, "NCHW", layout)


@OPS.imports("DepthToSpace", since=(1, 11, 13, 28))
def import_depth_to_space(
    ctx: ImportContext, x: Expr, *, blocksize: int, mode: Literal["DCR", "CRD"] = "DCR"
) -> Expr:
    return relay.nn.depth_to_space(x, blocksize, layout="NCHW", mode=mode)


@OPS.exports("nn.space_to_depth", ignored=("mode",))
def export_space_to_depth(ctx: ExportContext, x: Value, *, block_size: int, layout: str) -> Value:
    moved = ctx.emit("SpaceToDepth", to_layout(ctx, x, layout, "NCHW"), blocksize=block_size)
    return to_layout(ctx, moved, "NCHW", layout)


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
    if ctx.type(x).rank != 4 or blocksize < 1:
        raise Unsupported(f"blocks of {blocksize} of {ctx.type(x)!r}")
    n, c, h, w = ctx.type(x).shape
    rows, columns = h // blocksize, w // blocksize
    split = relay.reshape(x, to_attribute([n, c, rows, blocksize, columns, blocksize]))
    moved = relay.transpose(split, axes=[0, 1, 3, 5, 2, 4])
    return relay.reshape(moved, to_attribute([n, c * blocksize * blocksize, rows, columns]))


@OPS.exports("nn.space_to_batch_nd")
def export_space_to_batch_nd(
    ctx: ExportContext,
    x: Value,
    *,
    block_shape: tuple[int, ...],
    paddings: tuple[tuple[int, int], ...],
    pad_value: float,
) -> Value:
    """Each axis is cut into blocks, whose inner axes go in front of the batch."""
    type_ = ctx.type(x)
    count, rest = len(block_shape), type_.rank - 1 - len(block_shape)
    sides = [(0, 0), *paddings, *[(0, 0)] * rest]
    if any(side for pair in sides for side in pair):
        widths = ctx.ints([pair[0] for pair in sides] + [pair[1] for pair in sides])
        value = np.asarray(pad_value).astype(numpy_dtype(type_.dtype))
        x = emit_pad(ctx, x, type_.dtype, widths, ctx.const(value, type_.dtype))
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
    """The inner axes of the blocks come first in the batch and go behind their axes."""
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
