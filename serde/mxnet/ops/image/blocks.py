"""Blocks of pixels moved between space and channels, or between space and batch."""

from __future__ import annotations

import serde.relay as relay
from serde.mxnet.ops.layout import fixed_shape
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Call, Expr
from serde.walk.pairs import pair


def _blocks(call: Call) -> bool:
    return call.attrs["mode"] in ("DCR", "")


@OPS.expands("nn.depth_to_space")
def expand_depth_to_space(data: Expr, *, block_size: int, layout: str, mode: str) -> Expr:
    """MXNet has the order DCR alone."""
    channels, height, width = fixed_shape(data, [1, 2, 3])
    inner = channels // block_size**2
    parts = relay.reshape(data, (-1, inner, block_size, block_size, height, width))
    parts = relay.transpose(parts, (0, 1, 4, 2, 5, 3))
    return relay.reshape(parts, (-1, inner, height * block_size, width * block_size))


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
