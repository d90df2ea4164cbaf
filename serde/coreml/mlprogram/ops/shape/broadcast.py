"""A tensor spread over a larger shape, and summed back to a smaller one."""

from __future__ import annotations

from collections.abc import Sequence

from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.mlprogram.ops.shape.reshape import reshape
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.mlprogram.type_domains import NUMBERS_OR_BOOL, emit_in
from serde.coreml.value import Value
from serde.errors import Unsupported
from serde.relay.ir.dims import Any, Dim, same_length
from serde.relay.ir.types import TensorType


def spread(ctx: ExportContext, x: Value, dims: Sequence[Dim]) -> Value:
    """Return `x`, which gives the node's result, repeated along its axes of length 1."""
    own = ctx.type(x).shape
    if not dims:
        return x
    given: list[Dim] = [1] * (len(dims) - len(own)) + list(own)
    counts: list[Dim] = []
    for have, want in zip(given, dims, strict=True):
        if have != want and have != 1:
            raise Unsupported(f"a length {have} that may be 1 or {want}")
        counts.append(1 if same_length(have, want) else want)
    return tile(ctx, reshape(ctx, x, given), counts)


def tile(ctx: ExportContext, x: Value, counts: Sequence[Dim]) -> Value:
    """Return `x` as often along each axis as `counts` says; it gives the node's result."""
    if all(isinstance(count, int) and count == 1 for count in counts):
        return x
    if any(isinstance(count, int) and count == 0 for count in counts):
        raise Unsupported("a tensor without elements")
    return emit_in(ctx, NUMBERS_OR_BOOL, "tile", {"x": x}, reps=ctx.shape(counts))


@OPS.exports("broadcast_to", ignored=("shape", "dtype"))
def export_broadcast_to(ctx: ExportContext, data: Value) -> Value:
    return spread(ctx, data, ctx.result_type().shape)


def spread_as(ctx: ExportContext, x: Value, like: Value) -> Value:
    """Return `x`, which gives the node's result, in the shape of another tensor."""
    dims = ctx.result_type().shape
    if ctx.type(like).rank != len(dims):
        raise Unsupported("a length that is not known before the model runs")
    given = [1] * (len(dims) - ctx.type(x).rank) + list(ctx.type(x).shape)
    shape = ctx.emit("shape", TensorType((len(dims),), "int32"), x=like)
    return _spread_over(ctx, reshape(ctx, x, given), shape)


@OPS.exports("broadcast_to_like")
def export_broadcast_to_like(ctx: ExportContext, data: Value, like: Value) -> Value:
    dims = ctx.result_type().shape
    open_ = any(isinstance(dim, Any) for dim in dims)
    return spread_as(ctx, data, like) if open_ else spread(ctx, data, dims)


@OPS.exports("dyn.broadcast_to", ignored=("dtype",))
def export_dyn_broadcast_to(ctx: ExportContext, data: Value, shape: Value) -> Value:
    (rank,) = ctx.static_lengths(shape, [0])
    given = [1] * (rank - ctx.type(data).rank) + list(ctx.type(data).shape)
    return _spread_over(ctx, reshape(ctx, data, given), shape)


def _spread_over(ctx: ExportContext, x: Value, shape: Value) -> Value:
    """Repeat each axis as often as its length goes into the one that is asked for."""
    if all(dim == 1 for dim in ctx.type(x).shape):
        counts = shape
    else:
        own = ctx.shape(ctx.type(x).shape)
        counts = ctx.emit("floor_div", TensorType(ctx.type(shape).shape, "int32"), x=shape, y=own)
    return emit_in(ctx, NUMBERS_OR_BOOL, "tile", {"x": x}, reps=counts)
