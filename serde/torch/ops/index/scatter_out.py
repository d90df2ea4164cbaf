"""Tensors with entries written or accumulated, as they are written."""

from __future__ import annotations

from serde.errors import Unsupported
from serde.relay.ir.shapes import is_float, normalize_axis
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.index.gather_out import as_index, from_start
from serde.torch.ops.table import OPS
from serde.torch.ops.written import cast, in_signed

_REDUCTIONS = {"mul": "prod", "mean": "mean", "min": "amin", "max": "amax"}


@OPS.exports("scatter_elements")
def export_scatter_elements(
    ctx: ExportContext, data: Value, indices: Value, updates: Value, *, axis: int, reduction: str
) -> Value:
    write = in_signed(_scatter_elements, ordered=reduction in ("min", "max"))
    return write(ctx, data, indices, updates, axis=axis, reduction=reduction)


def _scatter_elements(
    ctx: ExportContext, data: Value, indices: Value, updates: Value, *, axis: int, reduction: str
) -> Value:
    axis = normalize_axis(axis, ctx.type(data).rank)
    places = from_start(ctx, indices, data, axis)
    if reduction == "update":
        return ctx.method(data, "scatter", axis, places, updates)
    if reduction == "add":
        return ctx.method(data, "scatter_add", axis, places, updates)
    if reduction == "mean" and not is_float(ctx.type(data).dtype):
        raise Unsupported(f"a mean of {ctx.type(data).dtype}, which PyTorch rounds otherwise")
    return ctx.method(data, "scatter_reduce", axis, places, updates, _REDUCTIONS[reduction])


@OPS.exports("scatter_nd")
def export_scatter_nd(
    ctx: ExportContext, data: Value, indices: Value, updates: Value, *, mode: str
) -> Value:
    write = in_signed(_scatter_nd, ordered=mode in ("min", "max"))
    return write(ctx, data, indices, updates, mode=mode)


def _scatter_nd(
    ctx: ExportContext, data: Value, indices: Value, updates: Value, *, mode: str
) -> Value:
    if mode in ("update", "add"):
        (depth,) = ctx.static_lengths(indices, [0])
        given = as_index(ctx, indices)
        parts = [ctx.index(given, place) for place in range(depth)]
        options = {"accumulate": True} if mode == "add" else {}
        return ctx.method(data, "index_put", parts, updates, **options)
    rows = cast(ctx, indices, "int64")
    return ctx.call(ctx.helper("reduce_at"), data, rows, updates, _REDUCTIONS[mode])
