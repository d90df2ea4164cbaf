"""Elements repeated, or in another order."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.shape.reshape import flatten
from serde.relax.ops.table import OPS

__all__: list[str] = []


@OPS.exports("tile")
def export_tile(ctx: ExportContext, data: Value, *, reps: tuple[int, ...]) -> Value:
    if not reps:
        return data
    if 0 in reps:
        return ctx.emit("zeros", ctx.shape_expr(ctx.result_type().shape), ctx.type(data).dtype)
    return ctx.emit("tile", data, list(reps))


@OPS.exports("repeat")
def export_repeat(ctx: ExportContext, data: Value, *, repeats: int, axis: int | None) -> Value:
    if axis is not None:
        return ctx.emit("repeat", data, repeats, axis % ctx.type(data).rank)
    return ctx.emit("repeat", flatten(ctx, data), repeats, 0)


@OPS.exports("reverse_sequence")
def export_reverse_sequence(
    ctx: ExportContext, data: Value, seq_lengths: Value, *, seq_axis: int, batch_axis: int
) -> Value:
    te, tir = ctx.framework.te, ctx.framework.tir
    rank = ctx.type(data).rank
    time, batch = seq_axis % rank, batch_axis % rank

    def reverse_sequence(x: AnyValue, lengths: AnyValue) -> AnyValue:
        def one(*places: AnyValue) -> AnyValue:
            length = tir.min(lengths(places[batch]).astype("int64"), x.shape[time])
            step = places[time]
            source = tir.Select(step < length, length - 1 - step, step)
            return x(*places[:time], source, *places[time + 1 :])

        return te.compute(x.shape, one, name="reverse_sequence")

    return ctx.emit_te(reverse_sequence, data, seq_lengths)
