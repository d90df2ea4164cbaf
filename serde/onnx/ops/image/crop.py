"""Boxes cut out of images, and blocks of pixels moved between space, channels and batch."""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.relay as relay
from serde.core.allocation import arange
from serde.errors import Unsupported
from serde.onnx.ops.conv.windows import require_fixed
from serde.onnx.ops.elementwise.convert import as_dtype, cast
from serde.onnx.ops.image.sampling import (
    LINEAR,
    flatten_pixels,
    is_outside,
    length_as_float64,
    round_half_away,
    sample,
)
from serde.onnx.ops.shape.reshape import to_attribute
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir.expr import Expr
from serde.relay.op.image.crop import CropAndResize
from serde.walk.pairs import pair
from serde.walk.takes import ANY, Takes

OPS.refuses(
    "ImageDecoder",
    reason="a compressed image, whose size its bytes tell, has no counterpart in Relay",
    hint="decode it in front of the model, and give the model its pixels",
)


@OPS.exports("image.crop_and_resize")
def export_crop_and_resize(
    ctx: Export, x: Value, boxes: Value, box_indices: Value, *, crop: CropAndResize
) -> Value:
    """A Resize of a region of ONNX takes one region for all images, and a number for each box."""
    source, dtype = ctx.type(x).dtype, ctx.result_type().dtype
    work = source if crop.method == "nearest_neighbor" or source == "float64" else "float32"
    shape = ctx.type(x).shape
    table = flatten_pixels(ctx, as_dtype(ctx, x, work), shape)
    edges = as_dtype(ctx, boxes, "float64")
    images = ctx.emit("Reshape", cast(ctx, box_indices, np.float64), ctx.ints([-1, 1, 1]))
    indices, lengths, outside = [], [], []
    for axis, size in enumerate(require_fixed(crop.crop_size or (), "crop_size")):
        length = length_as_float64(ctx, shape[2 + axis])
        last = ctx.emit("Sub", length, ctx.const([1], np.float64))
        position = _compute_positions(ctx, edges, axis, size, last)
        outside.append(is_outside(ctx, position, last))
        indices.append(
            round_half_away(ctx, position) if crop.method == "nearest_neighbor" else position
        )
        lengths.append(length)
    taps = None if crop.method == "nearest_neighbor" else LINEAR
    values = sample(ctx, table, images, indices, 3, lengths, taps, work)
    mask = ctx.emit(
        "Reshape", ctx.emit("Or", *outside), ctx.shape([-1, *(crop.crop_size or ()), 1])
    )
    filled = ctx.emit("Where", mask, ctx.const(np.float64(crop.extrapolation_value), work), values)
    result = filled if work == dtype else cast(ctx, filled, dtype)
    return ctx.emit("Transpose", result, perm=[0, 3, 1, 2])


def _compute_positions(ctx: Export, edges: Value, axis: int, size: int, last: Value) -> Value:
    """Return where the pixels of each box lie along an axis, on that axis of three."""
    shape = ctx.ints([-1, 1, 1])
    start, end = (
        ctx.emit("Reshape", ctx.emit("Gather", edges, ctx.const(each, np.int64), axis=1), shape)
        for each in (axis, 2 + axis)
    )
    if size == 1:
        both = ctx.emit("Mul", ctx.const([0.5], np.float64), ctx.emit("Add", start, end))
        return ctx.emit("Mul", both, last)
    steps = arange(size).reshape([-1, 1] if axis == 0 else [1, -1])
    span = ctx.emit("Mul", ctx.emit("Sub", end, start), last)
    along = ctx.emit("Mul", ctx.const(steps, np.float64), span)
    moved = ctx.emit("Div", along, ctx.const([size - 1], np.float64))
    return ctx.emit("Add", ctx.emit("Mul", start, last), moved)


@OPS.exports("nn.depth_to_space")
def export_depth_to_space(ctx: Export, x: Value, *, block_size: int, mode: str) -> Value:
    """An empty mode, which ONNX does not know, is DCR."""
    return ctx.emit("DepthToSpace", x, blocksize=block_size, mode=mode or "DCR")


@OPS.imports("DepthToSpace", since=(1, 11, 13, 28))
def import_depth_to_space(
    ctx: Import, x: Expr, *, blocksize: int, mode: Literal["DCR", "CRD"] = "DCR"
) -> Expr:
    return relay.nn.depth_to_space(x, blocksize, layout="NCHW", mode=mode)


OPS.pairs(
    pair(
        "SpaceToDepth",
        "nn.space_to_depth",
        "blocksize",
        since=(1, 13),
        renamed={"blocksize": "block_size"},
        fixed={"mode": ""},
        takes=Takes(mode=ANY),
    )
)


@OPS.imports("SpaceToDepth", since=28)
def import_space_to_depth_v28(
    ctx: Import, x: Expr, *, blocksize: int, mode: Literal["DCR", "CRD"] = "DCR"
) -> Expr:
    """CRD keeps what comes from one channel together."""
    if mode == "DCR":
        return relay.nn.space_to_depth(x, blocksize, layout="NCHW")
    if ctx.type(x).rank != 4 or blocksize < 1:
        raise Unsupported(f"blocks of {blocksize} of {ctx.type(x)!r}")
    n, c, h, w = ctx.type(x).shape
    rows, columns = h // blocksize, w // blocksize
    split = relay.reshape(x, to_attribute([n, c, rows, blocksize, columns, blocksize]))
    moved = relay.transpose(split, axes=[0, 1, 3, 5, 2, 4])
    return relay.reshape(moved, to_attribute([n, c * blocksize * blocksize, rows, columns]))
