"""Boxes cut out of images, and blocks of pixels moved between space, channels and batch."""

from __future__ import annotations

from typing import Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.ops.shape.reshape import to_attribute
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir.expr import Expr
from serde.walk.pairs import pair
from serde.walk.takes import ANY, Takes

OPS.refuses(
    "ImageDecoder",
    reason="a compressed image, whose size its bytes tell, has no counterpart in Relay",
    hint="decode it in front of the model, and give the model its pixels",
)


@OPS.exports("nn.depth_to_space")
def export_depth_to_space(ctx: Export, x: Value, *, block_size: int, mode: str) -> Value:
    """An empty mode, which ONNX does not know, is DCR."""
    return ctx.emit("DepthToSpace", x, blocksize=block_size, mode=mode or "DCR")


@OPS.imports("DepthToSpace", since=(1, 11, 13, 28))
def import_depth_to_space(
    ctx: Import, x: Expr, *, blocksize: int, mode: Literal["DCR", "CRD"] = "DCR"
) -> Expr:
    return relay.nn.depth_to_space(x, blocksize, layout="NCHW", mode=mode)


OPS.pairs(
    pair(
        "SpaceToDepth",
        "nn.space_to_depth",
        "blocksize",
        since=(1, 13),
        renamed={"blocksize": "block_size"},
        fixed={"mode": ""},
        takes=Takes(mode=ANY),
    )
)


@OPS.imports("SpaceToDepth", since=28)
def import_space_to_depth_v28(
    ctx: Import, x: Expr, *, blocksize: int, mode: Literal["DCR", "CRD"] = "DCR"
) -> Expr:
    """CRD keeps what comes from one channel together."""
    if mode == "DCR":
        return relay.nn.space_to_depth(x, blocksize, layout="NCHW")
    if ctx.type(x).rank != 4 or blocksize < 1:
        raise Unsupported(f"blocks of {blocksize} of {ctx.type(x)!r}")
    n, c, h, w = ctx.type(x).shape
    rows, columns = h // blocksize, w // blocksize
    split = relay.reshape(x, to_attribute([n, c, rows, blocksize, columns, blocksize]))
    moved = relay.transpose(split, axes=[0, 1, 3, 5, 2, 4])
    return relay.reshape(moved, to_attribute([n, c * blocksize * blocksize, rows, columns]))
