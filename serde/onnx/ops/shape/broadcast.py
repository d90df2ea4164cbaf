"""Broadcasting to a shape."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.onnx.context import ImportContext as ImportCtx
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.dims import Any, Dim
from serde.relay.expr import Expr
from serde.relay.registry import call
from serde.relay.shapes import broadcast


@OPS.exports("broadcast_to")
def export_broadcast_to(
    ctx: Ctx, x: Value, *, shape: tuple[Dim, ...] | None, dtype: np.dtype[AnyValue] | None
) -> Value:
    return ctx.emit("Expand", x, ctx.shape(ctx.result_type().shape))


@OPS.exports("broadcast_to_like")
def export_broadcast_to_like(ctx: Ctx, x: Value, like: Value) -> Value:
    return ctx.emit("Expand", x, ctx.emit("Shape", like))


@OPS.imports("Expand", since=(8, 13))
def import_expand(ctx: ImportCtx, x: Expr, shape: Expr) -> Expr:
    """Both sides broadcast: a length of 1 that is asked for leaves an axis as it is."""
    dims, own = ctx.dims(shape), ctx.type(x).shape
    if dims is not None:
        wanted = broadcast(own, dims)
        if not any(isinstance(dim, Any) for dim in wanted):
            return relay.broadcast_to(x, wanted)
    (count,) = ctx.static_shape(shape)
    have = relay.shape_of(x, dtype=ctx.type(shape).dtype)
    have, asked = _padded(ctx, have, len(own), count), _padded(ctx, shape, count, len(own))
    one = relay.const(np.ones((), ctx.type(shape).dtype))
    return call("dyn.broadcast_to", x, relay.where(relay.equal(asked, one), have, asked))


def _padded(ctx: ImportCtx, shape: Expr, count: int, other: int) -> Expr:
    """Return a shape with leading ones up to the greater of two ranks."""
    if count >= other:
        return shape
    ones = relay.const(np.ones(other - count, ctx.type(shape).dtype))
    return relay.concatenate((ones, shape), 0)
