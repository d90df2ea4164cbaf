"""A tensor spread over a larger shape, and summed back to a smaller one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import serde.relay as relay
from serde.core.allocation import ones
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import to_int64
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Any, Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import broadcast


@OPS.exports("broadcast_to", ignored=("shape", "dtype"))
def export_broadcast_to(ctx: ExportContext, x: Value) -> Value:
    return ctx.emit("Expand", x, ctx.shape(ctx.result_type().shape))


@OPS.imports("Expand", since=(8, 13))
def import_expand(ctx: ImportContext, x: Expr, shape: Expr) -> Expr:
    """Both sides broadcast: a length of 1 that is asked for leaves an axis as it is."""
    count = ctx.axis_count(shape)
    dims, own = ctx.dims(shape), ctx.type(x).shape
    if dims is not None:
        wanted = broadcast(own, dims)
        if not any(isinstance(dim, Any) for dim in wanted):
            return relay.broadcast_to(x, wanted)
    have = relay.shape_of(x, dtype=ctx.type(shape).dtype)
    have, asked = _pad_shape(ctx, have, len(own), count), _pad_shape(ctx, shape, count, len(own))
    one = relay.Constant(np.ones((), ctx.type(shape).dtype))
    found = call("dyn.broadcast_to", x, relay.where(relay.equal(asked, one), have, asked))
    return _reshape_to_known(found, own, ctx.partial_dims(shape))


@OPS.exports("broadcast_to_like")
def export_broadcast_to_like(ctx: ExportContext, x: Value, like: Value) -> Value:
    return ctx.emit("Expand", x, ctx.emit("Shape", like))


def _reshape_to_known(x: Expr, own: Sequence[Dim], asked: Sequence[Dim] | None) -> Expr:
    """Return what was broadcast with the lengths that are known, where all but one are.

    Beside a length of 0 the number of elements does not give it.
    """
    if asked is None:
        return x
    lengths = broadcast(own, asked)
    unknown = [dim for dim in lengths if isinstance(dim, Any)]
    if len(unknown) != 1 or len(lengths) == 1 or 0 in lengths:
        return x
    return relay.reshape(x, [-1 if isinstance(dim, Any) else dim for dim in lengths])


def _pad_shape(ctx: ImportContext, shape: Expr, count: int, other: int) -> Expr:
    """Return a shape with leading ones up to the greater of two ranks."""
    if count >= other:
        return shape
    leading = relay.Constant(ones(other - count, ctx.type(shape).dtype))
    return relay.concatenate((leading, shape), 0)


@OPS.exports("dyn.broadcast_to", ignored=("dtype",))
def export_dyn_broadcast_to(ctx: ExportContext, x: Value, shape: Value) -> Value:
    return ctx.emit("Expand", x, to_int64(ctx, shape))
