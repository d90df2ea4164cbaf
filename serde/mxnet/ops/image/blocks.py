"""Blocks of pixels moved between space and channels, or between space and batch."""

from __future__ import annotations

import serde.relay as relay
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.layout import arranged, fixed_shape
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
