"""Blocks of pixels that are moved between space and channels."""

from __future__ import annotations

import serde.relay as relay
from serde.relax.ops.table import OPS, Import
from serde.relay.ir import Expr


@OPS.imports("relax.nn.pixel_shuffle")
def import_pixel_shuffle(ctx: Import, data: Expr, *, upscale_factor: int) -> Expr:
    """What leads the last three axes are samples."""
    shape = ctx.type(data).shape
    x = data if len(shape) == 4 else relay.reshape(data, (-1, *shape[-3:]))
    found = relay.nn.depth_to_space(x, upscale_factor, mode="CRD")
    if len(shape) == 4:
        return found
    return relay.reshape(found, (*shape[:-3], *ctx.type(found).shape[-3:]))
