"""Tensors spread over a larger shape, and summed back to a smaller one."""

from __future__ import annotations

from typing import Any as AnyValue
from typing import Literal

import serde.relay as relay
from serde.relax.broadcasting import make_spread
from serde.relax.export_context import ExportContext, Value
from serde.relax.import_context import ImportContext, Shape
from serde.relax.ops.table import OPS
from serde.relay.ir.dims import Any, Dim
from serde.relay.ir.expr import Expr, Tuple

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


@OPS.imports("relax.broadcast_to")
def import_broadcast_to(ctx: ImportContext, x: Expr, *, shape: Shape) -> Expr:
    return ctx.broadcast_to(x, shape)


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


@OPS.imports("relax.meshgrid")
def import_meshgrid(
    ctx: ImportContext, tensors: Expr, *, indexing: Literal["ij", "xy"] | None
) -> list[Expr]:
    fields = ctx.fields(tensors)
    found = relay.meshgrid(Tuple(fields), indexing=indexing or "ij")
    return [found[place] for place in range(len(fields))]
