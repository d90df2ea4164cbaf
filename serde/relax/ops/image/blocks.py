"""Blocks of pixels moved between space and channels."""

from __future__ import annotations

import serde.relay as relay
from serde.relax.import_context import ImportContext
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr

__all__: list[str] = []


@OPS.imports("relax.nn.pixel_shuffle")
def import_pixel_shuffle(ctx: ImportContext, data: Expr, *, upscale_factor: int) -> Expr:
    """What leads the last three axes are samples."""
    shape = ctx.type(data).shape
    x = data if len(shape) == 4 else relay.reshape(data, (-1, *shape[-3:]))
    found = relay.nn.depth_to_space(x, upscale_factor, mode="CRD")
    if len(shape) == 4:
        return found
    return relay.reshape(found, (*shape[:-3], *ctx.type(found).shape[-3:]))
