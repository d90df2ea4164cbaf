"""Blocks of pixels moved between space and channels, or between space and batch."""

from __future__ import annotations

from serde.mxnet.ops.table import OPS
from serde.walk.pairs import one_of, pair
from serde.walk.takes import Takes

OPS.pairs(
    pair(
        "depth_to_space",
        "nn.depth_to_space",
        "block_size",
        fixed={"layout": "NCHW", "mode": "DCR"},
        takes=Takes(mode=one_of("DCR", "")),
    ),
    pair(
        "space_to_depth",
        "nn.space_to_depth",
        "block_size",
        fixed={"mode": "", "layout": "NCHW"},
        takes=Takes(mode=one_of("DCR", "")),
    ),
)
