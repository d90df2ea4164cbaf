"""Operands of convolutions in the layouts that Relax computes in, and sums in wider numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.relax.export_context import ExportContext, Value
from serde.relay.ir.dims import Dim, product
from serde.relay.ir.expr import Call
from serde.relay.ir.layout import is_blocked
from serde.relay.ir.shapes import layout_axes
from serde.relay.op.conv.windows import SPATIAL
from serde.weights import dtype_name

__all__ = ["add_bias", "arrange", "arrange_weight", "cast", "has_plain_layouts", "sum_dtype"]


def has_plain_layouts(node: Call) -> bool:
    """Whether no layout of a call splits an axis into blocks."""
    layouts = [str(value) for name, value in node.attrs.items() if "layout" in name]
    return not any(each and is_blocked(each) for each in layouts)


def arrange(ctx: ExportContext, x: Value, layout: str, wanted: str) -> Value:
    """Write `x` with its axes in the order of another layout; itself where that is the same."""
    if layout == wanted:
        return x
    return ctx.emit("permute_dims", x, axes=list(layout_axes(layout, wanted)))


def arrange_weight(
    ctx: ExportContext, weight: Value, layout: str, filters: str, rank: int
) -> tuple[Value, Sequence[Dim]]:
    """Write a weight with the axes `filters` and then space, and return its lengths too.

    A layout with a G has the groups as an axis of their own; they are merged into the first.
    """
    wanted = filters + SPATIAL[rank]
    shape = ctx.type(weight).shape
    if "G" not in layout:
        moved = arrange(ctx, weight, layout, wanted)
        return moved, [shape[axis] for axis in layout_axes(layout, wanted)]
    moved = arrange(ctx, weight, layout, "G" + wanted)
    groups, first, *rest = (shape[axis] for axis in layout_axes(layout, "G" + wanted))
    merged = [product([groups, first]), *rest]
    return ctx.emit("reshape", moved, ctx.shape_expr(merged)), merged


def cast(ctx: ExportContext, x: Value, before: str, dtype: str) -> Value:
    """Write `x`, which is of the dtype `before`, in another dtype."""
    return x if before == dtype else ctx.emit("astype", x, dtype)


def sum_dtype(dtype: str, out_dtype: np.dtype[AnyValue] | None) -> str:
    """Return the dtype in which products of tensors of a dtype are summed."""
    wanted = dtype if out_dtype is None else dtype_name(out_dtype)
    return "float32" if wanted in ("float16", "bfloat16") else wanted


def add_bias(ctx: ExportContext, x: Value, bias: Value | None, rank: int) -> Value:
    """Write the addition of a bias to an image of `rank` spatial axes, channels first."""
    if bias is None:
        return x
    (channels,) = ctx.type(bias).shape
    column = ctx.emit("reshape", bias, ctx.shape_expr([1, channels, *[1] * rank]))
    return ctx.emit("add", x, column)
