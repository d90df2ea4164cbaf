"""Blocks of pixels moved between space and channels, or between space and batch."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.layout import arranged, fixed_shape, tensor_type
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Call, Expr


@OPS.imports("depth_to_space")
def import_depth_to_space(ctx: ImportContext, data: Expr, *, block_size: int) -> Expr:
    return relay.nn.depth_to_space(data, block_size, mode="DCR")


@OPS.imports("space_to_depth")
def import_space_to_depth(ctx: ImportContext, data: Expr, *, block_size: int) -> Expr:
    return relay.nn.space_to_depth(data, block_size)


def _blocks(call: Call) -> bool:
    attrs = call.attrs
    return attrs["layout"] == "NCHW" and attrs["mode"] in ("DCR", "")


@OPS.exports("nn.depth_to_space", when=_blocks)
def export_depth_to_space(
    ctx: ExportContext, data: Value, *, block_size: int, layout: str, mode: str
) -> Value:
    return ctx.emit("depth_to_space", data, block_size=block_size)


@OPS.exports("nn.space_to_depth", when=_blocks)
def export_space_to_depth(
    ctx: ExportContext, data: Value, *, block_size: int, layout: str, mode: str
) -> Value:
    return ctx.emit("space_to_depth", data, block_size=block_size)


@OPS.expands("nn.depth_to_space")
def expand_depth_to_space(data: Expr, *, block_size: int, layout: str, mode: str) -> Expr:
    """MXNet has the order DCR alone, of images with channels behind the batch axis."""
    moved = arranged(data, layout, "NCHW")
    if mode != "CRD":
        result = relay.nn.depth_to_space(moved, block_size)
        return arranged(result, "NCHW", layout)
    channels, height, width = fixed_shape(moved, [1, 2, 3])
    inner = channels // block_size**2
    parts = relay.reshape(moved, (-1, inner, block_size, block_size, height, width))
    parts = relay.transpose(parts, (0, 1, 4, 2, 5, 3))
    result = relay.reshape(parts, (-1, inner, height * block_size, width * block_size))
    return arranged(result, "NCHW", layout)


@OPS.expands("nn.space_to_depth")
def expand_space_to_depth(data: Expr, *, block_size: int, layout: str, mode: str) -> Expr:
    result = relay.nn.space_to_depth(arranged(data, layout, "NCHW"), block_size)
    return arranged(result, "NCHW", layout)


@OPS.expands("nn.space_to_batch_nd")
def expand_space_to_batch_nd(
    data: Expr,
    *,
    block_shape: tuple[int, ...],
    paddings: tuple[tuple[int, int], ...],
    pad_value: float,
) -> Expr:
    """Padding, then a transposition between two views."""
    type_, rank = tensor_type(data), len(block_shape)
    rest = type_.rank - 1 - rank
    if any(map(any, paddings)):
        value = relay.Constant(np.asarray(pad_value).astype(type_.dtype))
        data = relay.nn.pad(data, [(0, 0), *paddings, *[(0, 0)] * rest], value)
    shape = fixed_shape(data)
    split = [shape[0]]
    for length, block in zip(shape[1:], block_shape, strict=False):
        split += [length // block, block]
    indices, blocks = range(1, 2 * rank, 2), range(2, 2 * rank + 1, 2)
    order = (*blocks, 0, *indices, *range(2 * rank + 1, 2 * rank + 1 + rest))
    tail = shape[1 + rank :]
    moved = relay.transpose(relay.reshape(data, (*split, *tail)), order)
    return relay.reshape(moved, (-1, *(split[place] for place in indices), *tail))


@OPS.expands("nn.batch_to_space_nd")
def expand_batch_to_space_nd(
    data: Expr, *, block_shape: tuple[int, ...], crops: tuple[tuple[int, int], ...]
) -> Expr:
    """A transposition between two views, then a slice."""
    shape, rank = fixed_shape(data), len(block_shape)
    lengths, tail = shape[1 : 1 + rank], shape[1 + rank :]
    batch = shape[0] // int(np.prod(block_shape))
    parts = relay.reshape(data, (*block_shape, batch, *lengths, *tail))
    order = [rank]
    for axis in range(rank):
        order += [rank + 1 + axis, axis]
    order += range(2 * rank + 1, 2 * rank + 1 + len(tail))
    spread = [length * block for length, block in zip(lengths, block_shape, strict=True)]
    whole = relay.reshape(relay.transpose(parts, order), (batch, *spread, *tail))
    begin = [first for first, _ in crops]
    end = [length - last for length, (_, last) in zip(spread, crops, strict=True)]
    return relay.strided_slice(whole, begin, end, [1] * rank, axes=list(range(1, 1 + rank)))
