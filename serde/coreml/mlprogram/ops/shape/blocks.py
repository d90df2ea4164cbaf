"""Blocks of pixels moved into channels or samples, and back; windows that slide over a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.coreml.mlprogram.operators import (
    FLOATS,
    MOVE_DTYPES,
    NUMBERS,
    cast_to,
    compute_dtype,
    emit_in,
)
from serde.coreml.mlprogram.ops.shape.reshape import transpose
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Dim, Expr, TensorType, normalize_axis
from serde.relay.lowering.image import named_dims
from serde.walk.pairs import reads
from serde.walk.takes import FLOATS as REALS, Takes, ranks


@OPS.imports("pixel_shuffle")
def import_pixel_shuffle(ctx: Import, x: Expr, *, upscale_factor: int) -> Expr:
    return relay.nn.depth_to_space(x, upscale_factor, layout="NCHW", mode="CRD")


_IMAGE = Takes(data=(REALS, ranks(4)))
_PADDED = _IMAGE.over({"pad_value": 0})


@OPS.exports("nn.depth_to_space", takes=_IMAGE)
def export_depth_to_space(ctx: Export, data: Value, *, block_size: int, mode: str) -> Value:
    if mode == "CRD":
        return emit_in(ctx, FLOATS, "pixel_shuffle", {"x": data}, upscale_factor=block_size)
    return emit_in(ctx, FLOATS, "depth_to_space", {"x": data}, block_size=block_size)


@OPS.imports("pixel_unshuffle", since=16)
def import_pixel_unshuffle(ctx: Import, x: Expr, *, downscale_factor: int) -> Expr:
    """What comes from one channel stays together, unlike in ``space_to_depth``."""
    n, c, h, w = named_dims(x)
    b = downscale_factor
    split = relay.reshape(x, [n, c, h // b, b, w // b, b])
    moved = relay.transpose(split, axes=[0, 1, 3, 5, 2, 4])
    return relay.reshape(moved, [n, c * b * b, h // b, w // b])


@OPS.exports("nn.space_to_depth", takes=_IMAGE, ignored=("mode",))
def export_space_to_depth(ctx: Export, data: Value, *, block_size: int) -> Value:
    return emit_in(ctx, FLOATS, "space_to_depth", {"x": data}, block_size=block_size)


def _pairs(flat: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(flat[0::2], flat[1::2], strict=True))


@OPS.imports("space_to_batch")
def import_space_to_batch(
    ctx: Import, x: Expr, *, block_shape: tuple[int, ...], paddings: tuple[int, ...]
) -> Expr:
    """MIL has the channels before the axes that are cut, Relay behind them."""
    moved = relay.transpose(x, axes=[0, 2, 3, 1])
    found = relay.nn.space_to_batch_nd(moved, block_shape, _pairs(paddings))
    return relay.transpose(found, axes=[0, 3, 1, 2])


@OPS.imports("batch_to_space")
def import_batch_to_space(
    ctx: Import, x: Expr, *, block_shape: tuple[int, ...], crops: tuple[int, ...]
) -> Expr:
    """MIL has the channels before the axes that are cut, Relay behind them."""
    moved = relay.transpose(x, axes=[0, 2, 3, 1])
    found = relay.nn.batch_to_space_nd(moved, block_shape, _pairs(crops))
    return relay.transpose(found, axes=[0, 3, 1, 2])


def _is_batched(node: Call) -> bool:
    return len(node.attrs["block_shape"]) == 2


def _planes(ctx: Export, op: str, x: Value, **inputs: AnyValue) -> Value:
    """Append an operation on images whose channels come first, and turn what it gives back."""
    type_ = ctx.result_type()
    made = TensorType([type_.shape[axis] for axis in (0, 3, 1, 2)], type_.dtype)
    found = ctx.emit(op, made, x=transpose(ctx, x, [0, 3, 1, 2]), **inputs)
    return transpose(ctx, found, [0, 2, 3, 1])


@OPS.exports("nn.space_to_batch_nd", takes=_PADDED, when=_is_batched)
def export_space_to_batch(
    ctx: Export, data: Value, *, block_shape: AnyValue, paddings: AnyValue
) -> Value:
    widths = ctx.const(np.array(paddings, np.int32))
    return _planes(ctx, "space_to_batch", data, block_shape=block_shape, paddings=widths)


@OPS.exports("nn.batch_to_space_nd", takes=_IMAGE, when=_is_batched)
def export_batch_to_space(
    ctx: Export, data: Value, *, block_shape: AnyValue, crops: AnyValue
) -> Value:
    widths = ctx.const(np.array(crops, np.int32))
    return _planes(ctx, "batch_to_space", data, block_shape=block_shape, crops=widths)


OPS.pairs(
    reads("depth_to_space", "nn.depth_to_space", "block_size"),
    reads("space_to_depth", "nn.space_to_depth", "block_size", fixed={"mode": ""}),
)


@OPS.imports("sliding_windows", since=(1, 17))
def import_sliding_windows(ctx: Import, x: Expr, *, axis: int, size: int, stride: int = 1) -> Expr:
    """The places within a window lie behind its number; in Relay, at the end."""
    rank = ctx.type(x).rank
    along = normalize_axis(axis, rank)
    order = [*(each for each in range(rank) if each != along), along]
    moved = relay.transpose(x, axes=order) if along < rank - 1 else x
    windows = relay.sliding_window(moved, -1, [size], [stride])
    if along == rank - 1:
        return windows
    return relay.transpose(windows, axes=[*range(along), rank - 1, rank, *range(along, rank - 1)])


@OPS.exports("sliding_window")
def export_sliding_window(
    ctx: Export, data: Value, *, axis: int, window_shape: tuple[int, ...], strides: tuple[int, ...]
) -> Value:
    """Each axis becomes two; those within the windows then go to the end."""
    dtype, rank = ctx.type(data).dtype, ctx.type(data).rank
    first = axis % rank
    work = compute_dtype(ctx, dtype, MOVE_DTYPES if ctx.version >= 17 else NUMBERS)
    found = cast_to(ctx, data, work)
    for index in reversed(range(first, rank)):
        size, stride = window_shape[index - first], strides[index - first]
        dims: list[Dim] = list(ctx.type(found).shape)
        dims[index : index + 1] = [(dims[index] - size) // stride + 1, size]
        found = ctx.emit(
            "sliding_windows", TensorType(dims, work), x=found, axis=index, size=size, stride=stride
        )
    last = rank + len(window_shape)
    order = [*range(first), *range(first, last, 2), *range(first + 1, last, 2)]
    return cast_to(ctx, transpose(ctx, found, order), dtype)
