"""Conversion between layouts."""

from __future__ import annotations

from collections.abc import Sequence

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.shape.pad import pad_with
from serde.relax.ops.table import OPS
from serde.relay.ir.layout import LayoutPlan

__all__: list[str] = []


@OPS.exports("layout_transform")
def export_layout_transform(
    ctx: ExportContext, data: Value, *, src_layout: str, dst_layout: str
) -> Value:
    """The pieces of each letter are brought together, filled, cut anew, and put in order."""
    shape = ctx.named_shape(data)
    plan = LayoutPlan(shape, src_layout, dst_layout, filled=True)
    if len(plan.gather) == len(plan.parts) == len(plan.merged):
        return _transpose(ctx, data, [plan.gather[axis] for axis in plan.spread])
    dtype = ctx.type(data).dtype
    whole = _transpose(ctx, data, plan.gather)
    if len(plan.merged) < len(plan.gather):
        whole = ctx.emit("reshape", whole, ctx.shape_expr(plan.merged))
    if any(each != 0 for each in plan.padding):
        widths = [(0, ctx.dim(each)) for each in plan.padding]
        whole = pad_with(ctx, whole, ctx.const(0, dtype), widths, "constant")
    filled = [one + more for one, more in zip(plan.merged, plan.padding, strict=True)]
    if filled != plan.parts:
        whole = ctx.emit("reshape", whole, ctx.shape_expr(plan.parts))
    return _transpose(ctx, whole, plan.spread)


def _transpose(ctx: ExportContext, data: Value, order: Sequence[int]) -> Value:
    order = list(order)
    return data if order == sorted(order) else ctx.emit("permute_dims", data, order)
