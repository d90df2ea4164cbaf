"""Blocks of images as columns, and images put together from them."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.layout import FLOATS, tensor_type
from serde.mxnet.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import split_padding
from serde.relay.ir.types import TensorType


def _require_images(kernel: tuple[int, ...]) -> None:
    if len(kernel) != 2:
        raise Unsupported(f"kernel {list(kernel)}; MXNet computes blocks of two axes alone")


@OPS.imports("im2col")
def import_im2col(
    ctx: ImportContext,
    data: Expr,
    *,
    kernel: tuple[int, ...],
    stride: tuple[int, ...] = (),
    dilate: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
) -> Expr:
    """Each axis is read at the places of all blocks, which make two axes of it."""
    _require_images(kernel)
    lengths = ctx.static_lengths(data, (2, 3))
    strides, gaps, sides = stride or (1, 1), dilate or (1, 1), pad or (0, 0)
    if any(sides):
        around = [(0, 0), (0, 0), *((side, side) for side in sides)]
        data = relay.nn.pad(data, around, relay.const(0, ctx.type(data).dtype))
    number = 1
    for axis, length in enumerate(lengths):
        reach = gaps[axis] * (kernel[axis] - 1) + 1
        count = (length + 2 * sides[axis] - reach) // strides[axis] + 1
        taps = np.arange(kernel[axis])[:, None] * gaps[axis]
        places = relay.const((taps + np.arange(count) * strides[axis]).astype(np.int32))
        data = relay.take(data, places, 2 + 2 * axis, mode="fast")
        number *= count
    return relay.reshape(relay.transpose(data, (0, 1, 2, 4, 3, 5)), (0, -1, number))


@OPS.imports("col2im")
def import_col2im(
    ctx: ImportContext,
    data: Expr,
    *,
    output_size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...] = (),
    dilate: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
) -> Expr:
    _require_images(kernel)
    sides = pad or (0, 0)
    return call(
        "serde.col2im", data, image_shape=output_size, block_shape=kernel,
        strides=stride or None, padding=sides * 2, dilation=dilate or None,
    )  # fmt: skip


def _even(node: Call) -> bool:
    rank = len(node.attrs["block_shape"])
    before, after = split_padding(node.attrs["padding"], rank)
    return rank == 2 and before == after and tensor_type(node.args[0]).dtype in FLOATS


@OPS.exports("serde.col2im", when=_even)
def export_col2im(
    ctx: ExportContext,
    data: Value,
    *,
    image_shape: tuple[Dim, ...],
    block_shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    padding: tuple[int, ...],
    dilation: tuple[int, ...] | None,
) -> Value:
    size = TensorType(image_shape, "int32").concrete_shape
    if size is None:
        raise Unsupported(f"an image of open lengths {image_shape}")
    ones = (1,) * len(block_shape)
    return ctx.emit(
        "col2im", data, output_size=size, kernel=block_shape, stride=strides or ones,
        dilate=dilation or ones, pad=split_padding(padding, len(block_shape))[0],
    )  # fmt: skip
