"""Blocks of images as columns, and images put together from them."""

from __future__ import annotations

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.conv.direct import Window
from serde.mxnet.ops.table import COMPUTED, OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, TensorType, call, split_padding
from serde.relay.op.shape.columns import Columns
from serde.walk.takes import Takes


def _require_images(window: Window) -> None:
    if window.ndim != 2:
        raise Unsupported(f"kernel {list(window.kernel)}; MXNet computes blocks of two axes alone")


@OPS.imports("im2col")
def import_im2col(ctx: Import, data: Expr, *, window: Window) -> Expr:
    """Each axis is read at the indices of all blocks, which make two axes of it."""
    _require_images(window)
    lengths = ctx.static_lengths(data, (2, 3))
    kernel, strides = window.kernel, window.strides
    dilation, padding = window.dilation, window.padding
    if any(padding):
        around = [(0, 0), (0, 0), *((side, side) for side in padding)]
        data = relay.nn.pad(data, around, relay.const(0, ctx.type(data).dtype))
    number = 1
    for axis, length in enumerate(lengths):
        reach = dilation[axis] * (kernel[axis] - 1) + 1
        count = (length + 2 * padding[axis] - reach) // strides[axis] + 1
        taps = allocation.arange(kernel[axis]) * dilation[axis]
        steps = allocation.arange(count) * strides[axis]
        indices = relay.const(allocation.outer_sum(taps, steps).astype(np.int32))
        data = relay.take(data, indices, 2 + 2 * axis, mode="fast")
        number *= count
    return relay.reshape(relay.transpose(data, (0, 1, 2, 4, 3, 5)), (0, -1, number))


@OPS.imports("col2im")
def import_col2im(ctx: Import, data: Expr, *, output_size: tuple[int, ...], window: Window) -> Expr:
    _require_images(window)
    return call(
        "serde.col2im", data, image_shape=output_size, block_shape=window.kernel,
        strides=window.stride or None, padding=window.padding * 2,
        dilation=window.dilate or None,
    )  # fmt: skip


def _is_symmetric(node: Call) -> bool:
    rank = len(node.attrs["block_shape"])
    before, after = split_padding(node.attrs["padding"], rank)
    return rank == 2 and before == after


@OPS.exports("serde.col2im", takes=Takes(data=COMPUTED), when=_is_symmetric)
def export_col2im(ctx: Export, data: Value, *, col2im: Columns) -> Value:
    size = TensorType(col2im.image_shape, "int32").concrete_shape
    if size is None:
        raise Unsupported(f"an image of open lengths {col2im.image_shape}")
    rank = len(col2im.block_shape)
    ones = (1,) * rank
    return ctx.emit(
        "col2im", data, output_size=size, kernel=col2im.block_shape, stride=col2im.strides or ones,
        dilate=col2im.dilation or ones, pad=split_padding(col2im.padding, rank)[0],
    )  # fmt: skip
