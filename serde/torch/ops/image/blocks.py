"""Blocks of pixels moved between space and channels."""

from __future__ import annotations

from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS


@OPS.exports("nn.depth_to_space")
def export_depth_to_space(ctx: ExportContext, data: Value, *, block_size: int, mode: str) -> Value:
    """PyTorch's order is CRD; in the other the channels of a block are first split off."""
    if mode != "CRD":
        data = ctx.method(data, "unflatten", 1, (block_size * block_size, -1))
        data = ctx.method(ctx.method(data, "transpose", 1, 2), "flatten", 1, 2)
    return ctx.call("F.pixel_shuffle", data, block_size)


@OPS.exports("nn.space_to_depth")
def export_space_to_depth(ctx: ExportContext, data: Value, *, block_size: int, mode: str) -> Value:
    found = ctx.call("F.pixel_unshuffle", data, block_size)
    found = ctx.method(found, "unflatten", 1, (-1, block_size * block_size))
    return ctx.method(ctx.method(found, "transpose", 1, 2), "flatten", 1, 2)
