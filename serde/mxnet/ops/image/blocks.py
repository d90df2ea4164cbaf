"""Blocks of pixels moved between space and channels, or between space and batch."""

from __future__ import annotations

import serde.relay as relay
from serde.mxnet.ops.layout import arranged, fixed_shape
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Call, Expr
from serde.walk.pairs import pair


def _blocks(call: Call) -> bool:
    attrs = call.attrs
    return attrs["layout"] == "NCHW" and attrs["mode"] in ("DCR", "")


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


OPS.pairs(
    pair(
        "depth_to_space",
        "nn.depth_to_space",
        "block_size",
        fixed={"layout": "NCHW", "mode": "DCR"},
        when=_blocks,
    ),
    pair(
        "space_to_depth",
        "nn.space_to_depth",
        "block_size",
        fixed={"mode": "", "layout": "NCHW"},
        when=_blocks,
    ),
)
