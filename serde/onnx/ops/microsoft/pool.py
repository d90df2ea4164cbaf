"""Pooling with channels last."""

from __future__ import annotations

from serde.errors import Unsupported
from serde.onnx.ops.microsoft.conv import to_channels_first, to_channels_last
from serde.onnx.ops.pool.geometry import DilatedPoolAttributes
from serde.onnx.ops.pool.window import import_max_pool
from serde.onnx.ops.table import MICROSOFT, Import
from serde.relay.ir.expr import Expr


@MICROSOFT.imports("NhwcMaxPool")
def import_nhwc_max_pool(ctx: Import, x: Expr, *, pool: DilatedPoolAttributes) -> Expr:
    if ctx.wants(1):
        raise Unsupported("the places of the greatest values")
    found = import_max_pool(ctx, to_channels_first(ctx, x), pool=pool)
    return to_channels_last(ctx, found[0] if isinstance(found, list) else found)
