"""Windows that slide over a tensor."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.table import OPS
from serde.relay.ir.shapes import pool_dim

__all__: list[str] = []


@OPS.exports("sliding_window")
def export_sliding_window(
    ctx: ExportContext,
    data: Value,
    *,
    axis: int,
    window_shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> Value:
    te = ctx.framework.te
    shape = ctx.named_shape(data)
    first = axis % len(shape)
    sizes = zip(shape[first:], window_shape, strides, strict=True)
    counts = [pool_dim(dim, width, by, 0, 1, ceil_mode=False) for dim, width, by in sizes]
    wanted = ctx.wide(ctx.dims([*shape[:first], *counts, *window_shape]))

    def sliding_window(x: AnyValue) -> AnyValue:
        def one(*places: AnyValue) -> AnyValue:
            windows, inner = places[first : len(shape)], places[len(shape) :]
            moved = [w * by + i for w, by, i in zip(windows, strides, inner, strict=True)]
            return x(*places[:first], *moved)

        return te.compute(wanted, one, name="sliding_window")

    return ctx.emit_te(sliding_window, data)
