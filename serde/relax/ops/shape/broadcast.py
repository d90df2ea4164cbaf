"""Tensors spread over a larger shape, and summed back to a smaller one."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.relax.broadcasting import make_spread
from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.table import OPS
from serde.relax.reducing import make_fallback
from serde.relay.ir.dims import Any, Dim

__all__ = ["spread"]


def spread(ctx: ExportContext, data: Value, lengths: list[AnyValue]) -> Value:
    """Write `data` spread over a shape; which of its axes are spread may show at run time only."""
    return ctx.emit_te(make_spread(ctx.framework, ctx.wide(lengths)), data)


@OPS.exports("broadcast_to", ignored=("dtype",))
def export_broadcast_to(ctx: ExportContext, data: Value, *, shape: tuple[Dim, ...] | None) -> Value:
    wanted = tuple(shape or ())
    offset = len(wanted) - ctx.type(data).rank
    own = ctx.named_shape(data)
    wanted = tuple(
        own[place - offset] if isinstance(dim, Any) and place >= offset else dim
        for place, dim in enumerate(wanted)
    )
    return _broadcast(ctx, data, ctx.dims(wanted))


@OPS.exports("broadcast_to_like")
def export_broadcast_to_like(ctx: ExportContext, data: Value, broadcast_type: Value) -> Value:
    return _broadcast(ctx, data, ctx.extents(broadcast_type))


def _broadcast(ctx: ExportContext, data: Value, lengths: list[AnyValue]) -> Value:
    """Use Relax's operator where it is known which axes are spread."""
    own, offset = ctx.extents(data), len(lengths) - ctx.type(data).rank
    for have, want in zip(own, lengths[offset:], strict=True):
        if not isinstance(have, int) and not ctx.framework.are_equal(have, want):
            return spread(ctx, data, lengths)
    shape = ctx.framework.relax.ShapeExpr(ctx.wide(lengths))
    return ctx.emit("broadcast_to", data, shape)


@OPS.exports("collapse_sum_like")
def export_collapse_sum_like(ctx: ExportContext, data: Value, collapse_type: Value) -> Value:
    return _collapse(ctx, data, ctx.extents(collapse_type))


@OPS.exports("collapse_sum_to", ignored=("dtype",))
def export_collapse_sum_to(ctx: ExportContext, data: Value, shape: Value) -> Value:
    return _collapse(ctx, data, ctx.read_shape(shape))


def _collapse(ctx: ExportContext, data: Value, lengths: list[AnyValue]) -> Value:
    """Sum over the axes in front of those wanted, and over all of which one element is wanted."""
    te, tir = ctx.framework.te, ctx.framework.tir
    dtype = ctx.type(data).dtype
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype
    shape = ctx.wide(lengths)
    one = tir.IntImm("int64", 1)

    def collapse_sum(x: AnyValue) -> AnyValue:
        offset = len(x.shape) - len(shape)
        spans = [te.reduce_axis((0, length)) for length in x.shape[:offset]]
        for have, want in zip(x.shape[offset:], shape, strict=True):
            known = getattr(want, "value", None)
            spread = have if known == 1 else one if known else tir.Select(want == 1, have, one)
            spans.append(te.reduce_axis((0, spread)))

        def total(*places: AnyValue) -> AnyValue:
            moved = [span + place for span, place in zip(spans[offset:], places, strict=True)]
            return te.sum(x(*spans[:offset], *moved).astype(wide), axis=spans)

        return te.compute(shape, total, name="collapse_sum")

    if not ctx.type(data).rank:
        return data
    made = ctx.emit_te(collapse_sum, data)
    own = ctx.extents(data)
    gone = own[: len(own) - len(lengths)]
    kept = zip(own[len(gone) :], lengths, strict=True)
    gone += [have for have, want in kept if isinstance(want, int) and want == 1]
    over = [each for each in gone if not isinstance(each, int)]
    if over:
        made = ctx.emit_te(make_fallback(ctx.framework, "sum"), made, *over)
    return made if wide == dtype else ctx.emit("astype", made, dtype)
