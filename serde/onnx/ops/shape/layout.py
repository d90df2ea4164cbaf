"""Orders of axes."""

from __future__ import annotations

from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.table import OPS
from serde.relay.ir.layout import LayoutPlan


def to_layout(ctx: ExportContext, x: Value, layout: str, wanted: str) -> Value:
    """Return `x`, whose axes are `layout`, with its axes in the order `wanted`.

    Raises:
        Unsupported: The layout does not have these axes.
    """
    if layout == wanted:
        return x
    if sorted(layout) != sorted(wanted):
        raise Unsupported(f"layout {layout!r} has no counterpart", hint=f"use {wanted}")
    return ctx.emit("Transpose", x, perm=[layout.index(letter) for letter in wanted])


@OPS.exports("layout_transform")
def export_layout_transform(
    ctx: ExportContext, x: Value, *, src_layout: str, dst_layout: str
) -> Value:
    """The pieces of each letter are brought together, cut anew, and put in order."""
    plan = LayoutPlan(ctx.type(x).shape, src_layout, dst_layout)
    dims = [ctx.type(x).shape[axis] for axis in plan.gather]
    if list(dims) == list(plan.parts):
        return _transpose(ctx, x, [plan.gather[axis] for axis in plan.spread])
    pieces = ctx.emit("Reshape", _transpose(ctx, x, plan.gather), ctx.shape(plan.parts))
    return _transpose(ctx, pieces, plan.spread)


def _transpose(ctx: ExportContext, x: Value, order: list[int]) -> Value:
    return x if order == sorted(order) else ctx.emit("Transpose", x, perm=order)
