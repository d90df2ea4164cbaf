"""Blocks of pixels moved into channels or samples, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.mlprogram.import_context import ImportContext
from serde.coreml.mlprogram.ops.shape.reshape import transpose
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.mlprogram.type_domains import FLOATS, emit_in
from serde.coreml.value import Value
from serde.errors import Unsupported
from serde.relay.ir.dims import Any, Dim, product
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.shapes import is_float
from serde.relay.ir.types import TensorType


@OPS.imports("depth_to_space")
def import_depth_to_space(ctx: ImportContext, x: Expr, *, block_size: int) -> Expr:
    return relay.nn.depth_to_space(x, block_size, layout="NCHW", mode="DCR")


@OPS.imports("pixel_shuffle")
def import_pixel_shuffle(ctx: ImportContext, x: Expr, *, upscale_factor: int) -> Expr:
    return relay.nn.depth_to_space(x, upscale_factor, layout="NCHW", mode="CRD")


def _is_image(node: Call) -> bool:
    type_ = node.args[0].type
    return isinstance(type_, TensorType) and type_.rank == 4 and is_float(type_.dtype)


def _is_planar(node: Call) -> bool:
    return _is_image(node) and node.attrs["layout"] == "NCHW"


@OPS.exports("nn.depth_to_space", when=_is_planar)
def export_depth_to_space(
    ctx: ExportContext, data: Value, *, block_size: int, layout: str, mode: str
) -> Value:
    if mode == "CRD":
        return emit_in(ctx, FLOATS, "pixel_shuffle", {"x": data}, upscale_factor=block_size)
    return emit_in(ctx, FLOATS, "depth_to_space", {"x": data}, block_size=block_size)


@OPS.expands("nn.depth_to_space")
def expand_depth_to_space(
    data: Expr, *, block_size: int, layout: str, mode: Literal["DCR", "CRD", ""]
) -> Expr:
    """Channels come first around it; integers are moved in plain steps."""
    if layout != "NCHW":
        planar = relay.transpose(data, axes=[layout.index(letter) for letter in "NCHW"])
        found = relay.nn.depth_to_space(planar, block_size, layout="NCHW", mode=mode)
        return relay.transpose(found, axes=["NCHW".index(letter) for letter in layout])
    n, c, h, w = _dims(data)
    b, channels = block_size, c // (block_size * block_size)
    if mode == "CRD":
        parts = relay.reshape(data, [n, channels, b, b, h, w])
        moved = relay.transpose(parts, axes=[0, 1, 4, 2, 5, 3])
    else:
        parts = relay.reshape(data, [n, b, b, channels, h, w])
        moved = relay.transpose(parts, axes=[0, 3, 4, 1, 5, 2])
    return relay.reshape(moved, [n, channels, h * b, w * b])


def _dims(x: Expr) -> tuple[Dim, ...]:
    """Return the lengths of a tensor, of which at most one has no name.

    Raises:
        Unsupported: More have none.
    """
    type_ = x.checked_type
    if not isinstance(type_, TensorType) or any(isinstance(dim, Any) for dim in type_.shape):
        raise Unsupported(f"blocks of {type_!r}, whose lengths have no names")
    return type_.shape


@OPS.imports("space_to_depth")
def import_space_to_depth(ctx: ImportContext, x: Expr, *, block_size: int) -> Expr:
    return relay.nn.space_to_depth(x, block_size, layout="NCHW")


@OPS.imports("pixel_unshuffle", since=16)
def import_pixel_unshuffle(ctx: ImportContext, x: Expr, *, downscale_factor: int) -> Expr:
    """What comes from one channel stays together, unlike in ``space_to_depth``."""
    n, c, h, w = _dims(x)
    b = downscale_factor
    split = relay.reshape(x, [n, c, h // b, b, w // b, b])
    moved = relay.transpose(split, axes=[0, 1, 3, 5, 2, 4])
    return relay.reshape(moved, [n, c * b * b, h // b, w // b])


@OPS.exports("nn.space_to_depth", when=_is_planar)
def export_space_to_depth(
    ctx: ExportContext, data: Value, *, block_size: int, layout: str, mode: str
) -> Value:
    return emit_in(ctx, FLOATS, "space_to_depth", {"x": data}, block_size=block_size)


@OPS.expands("nn.space_to_depth")
def expand_space_to_depth(data: Expr, *, block_size: int, layout: str, mode: str) -> Expr:
    """Channels come first around it; integers are moved in plain steps."""
    if layout != "NCHW":
        planar = relay.transpose(data, axes=[layout.index(letter) for letter in "NCHW"])
        found = relay.nn.space_to_depth(planar, block_size, layout="NCHW")
        return relay.transpose(found, axes=["NCHW".index(letter) for letter in layout])
    n, c, h, w = _dims(data)
    b = block_size
    parts = relay.reshape(data, [n, c, h // b, b, w // b, b])
    moved = relay.transpose(parts, axes=[0, 3, 5, 1, 2, 4])
    return relay.reshape(moved, [n, c * b * b, h // b, w // b])


def _pairs(flat: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(flat[0::2], flat[1::2], strict=True))


@OPS.imports("space_to_batch")
def import_space_to_batch(
    ctx: ImportContext, x: Expr, *, block_shape: tuple[int, ...], paddings: tuple[int, ...]
) -> Expr:
    """MIL has the channels before the axes that are cut, Relay behind them."""
    moved = relay.transpose(x, axes=[0, 2, 3, 1])
    found = relay.nn.space_to_batch_nd(moved, block_shape, _pairs(paddings))
    return relay.transpose(found, axes=[0, 3, 1, 2])


@OPS.imports("batch_to_space")
def import_batch_to_space(
    ctx: ImportContext, x: Expr, *, block_shape: tuple[int, ...], crops: tuple[int, ...]
) -> Expr:
    """MIL has the channels before the axes that are cut, Relay behind them."""
    moved = relay.transpose(x, axes=[0, 2, 3, 1])
    found = relay.nn.batch_to_space_nd(moved, block_shape, _pairs(crops))
    return relay.transpose(found, axes=[0, 3, 1, 2])


def _is_batched(node: Call) -> bool:
    return (
        _is_image(node) and len(node.attrs["block_shape"]) == 2 and not node.attrs.get("pad_value")
    )


def _planes(ctx: ExportContext, op: str, x: Value, **inputs: AnyValue) -> Value:
    """Append an operation on images whose channels come first, and turn what it gives back."""
    type_ = ctx.result_type()
    made = TensorType([type_.shape[axis] for axis in (0, 3, 1, 2)], type_.dtype)
    found = ctx.emit(op, made, x=transpose(ctx, x, [0, 3, 1, 2]), **inputs)
    return transpose(ctx, found, [0, 2, 3, 1])


@OPS.exports("nn.space_to_batch_nd", when=_is_batched)
def export_space_to_batch(
    ctx: ExportContext, data: Value, *, block_shape: AnyValue, paddings: AnyValue, pad_value: float
) -> Value:
    widths = ctx.const(np.array(paddings, np.int32))
    return _planes(ctx, "space_to_batch", data, block_shape=block_shape, paddings=widths)


@OPS.exports("nn.batch_to_space_nd", when=_is_batched)
def export_batch_to_space(
    ctx: ExportContext, data: Value, *, block_shape: AnyValue, crops: AnyValue
) -> Value:
    widths = ctx.const(np.array(crops, np.int32))
    return _planes(ctx, "batch_to_space", data, block_shape=block_shape, crops=widths)


@OPS.expands("nn.space_to_batch_nd")
def expand_space_to_batch(
    data: Expr, *, block_shape: tuple[int, ...], paddings: AnyValue, pad_value: float
) -> Expr:
    """Each axis is cut in two, and the places within the blocks go to the front."""
    rank, shape = len(block_shape), _dims(data)
    rest = len(shape) - 1 - rank
    if any(side for pair in paddings for side in pair):
        widths = ((0, 0), *paddings, *[(0, 0)] * rest)
        data = relay.nn.pad(
            data, widths, relay.cast(relay.const(pad_value, "float32"), _dtype(data))
        )
    whole = _dims(data)
    split: list[Dim] = [whole[0]]
    for length, block in zip(whole[1:], block_shape, strict=False):
        split += [length // block, block]
    places, blocks = range(1, 2 * rank, 2), range(2, 2 * rank + 1, 2)
    order = [*blocks, 0, *places, *range(2 * rank + 1, 2 * rank + 1 + rest)]
    moved = relay.transpose(relay.reshape(data, [*split, *whole[1 + rank :]]), axes=order)
    batch = product([whole[0], *block_shape])
    return relay.reshape(moved, [batch, *(split[axis] for axis in places), *whole[1 + rank :]])


@OPS.expands("nn.batch_to_space_nd")
def expand_batch_to_space(data: Expr, *, block_shape: tuple[int, ...], crops: AnyValue) -> Expr:
    """The places within the blocks come back behind their axes, which are then cut."""
    rank, shape = len(block_shape), _dims(data)
    batch = shape[0] // int(np.prod(block_shape))
    parts = relay.reshape(data, [*block_shape, batch, *shape[1:]])
    order = [rank]
    for axis in range(rank):
        order += [rank + 1 + axis, axis]
    order += range(2 * rank + 1, rank + len(shape))
    spaces = [length * block for length, block in zip(shape[1:], block_shape, strict=False)]
    whole = relay.reshape(relay.transpose(parts, axes=order), [batch, *spaces, *shape[1 + rank :]])
    for axis, (before, after) in enumerate(crops, start=1):
        if before or after:
            end = -after if after else 2**31 - 1
            whole = relay.strided_slice(whole, [before], [end], axes=[axis])
    return whole


def _dtype(x: Expr) -> str:
    return x.checked_type.dtype if isinstance(x.checked_type, TensorType) else "float32"
