"""Images read at coordinates that are computed: grids, boxes, and the window of a morphology."""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.mxnet.ops.table import COMPUTED, OPS, Export, Import, Value
from serde.relay.ir.expr import Expr
from serde.walk import Takes, like, pair, ranks


@OPS.imports("GridGenerator")
def import_grid_generator(
    ctx: Import,
    data: Expr,
    *,
    transform_type: Literal["affine", "warp"],
    target_shape: tuple[int, ...] = (0, 0),
) -> Expr:
    """A flow of pixels is added to their coordinates, which are then normalised."""
    if transform_type == "affine":
        return relay.image.affine_grid(relay.reshape(data, (-1, 2, 3)), target_shape)
    height, width = ctx.static_lengths(data, (2, 3))
    dtype = ctx.type(data).dtype
    rows, columns = allocation.indices((height, width))
    indices = relay.add(data, relay.Constant(np.stack([columns, rows])[None].astype(dtype)))
    spans = np.array([(width - 1) / 2, (height - 1) / 2], dtype).reshape(1, 2, 1, 1)
    normal = relay.divide(indices, relay.Constant(spans))
    return relay.subtract(normal, relay.const(1, dtype))


@OPS.imports("SpatialTransformer", ignored=("cudnn_off",))
def import_spatial_transformer(
    ctx: Import,
    data: Expr,
    loc: Expr,
    *,
    target_shape: tuple[int, ...] = (0, 0),
    transform_type: Literal["affine"] = "affine",
    sampler_type: Literal["bilinear"] = "bilinear",
) -> Expr:
    grid = relay.image.affine_grid(relay.reshape(loc, (-1, 2, 3)), target_shape)
    return relay.image.grid_sample(data, grid, "bilinear", "NCHW", "zeros", True)


@OPS.exports("image.affine_grid")
def export_affine_grid(ctx: Export, data: Value, *, target_shape: tuple[int, ...]) -> Value:
    flat = ctx.reshape(data, (ctx.type(data).shape[0], 6))
    return ctx.emit("GridGenerator", flat, transform_type="affine", target_shape=target_shape)


OPS.pairs(
    pair(
        "BilinearSampler",
        "image.grid_sample",
        fixed={
            "method": "bilinear",
            "layout": "NCHW",
            "padding_mode": "zeros",
            "align_corners": True,
        },
        ignored="cudnn_off",
        takes=Takes(data=(COMPUTED, ranks(4)), grid=like("data")),
    )
)
