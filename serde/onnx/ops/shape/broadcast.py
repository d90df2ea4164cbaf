"""Broadcasting to a shape."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim


@OPS.exports("broadcast_to")
def export_broadcast_to(
    ctx: Ctx, x: Value, *, shape: tuple[Dim, ...] | None, dtype: np.dtype[AnyValue] | None
) -> Value:
    return ctx.emit("Expand", x, ctx.shape(ctx.result_type().shape))


@OPS.exports("broadcast_to_like")
def export_broadcast_to_like(ctx: Ctx, x: Value, like: Value) -> Value:
    return ctx.emit("Expand", x, ctx.emit("Shape", like))
