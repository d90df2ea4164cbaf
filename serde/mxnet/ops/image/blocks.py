"""Blocks of pixels moved between space and channels, or between space and batch."""

from __future__ import annotations

from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Call
from serde.walk.pairs import pair


def _blocks(call: Call) -> bool:
    """MXNet has the order DCR alone."""
    return call.attrs["mode"] in ("DCR", "")


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
