"""Elements repeated, or in another order."""

from __future__ import annotations

from typing import Any as AnyValue

import serde.relay as relay
from serde.relax.export_context import ExportContext, Value
from serde.relax.import_context import ImportContext
from serde.relax.ops.shape.reshape import flatten
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.walk.pairs import reads

__all__: list[str] = []


@OPS.exports("tile")
def export_tile(ctx: ExportContext, data: Value, *, reps: tuple[int, ...]) -> Value:
    if not reps:
        return data
    if 0 in reps:
        return ctx.emit("zeros", ctx.shape_expr(ctx.result_type().shape), ctx.type(data).dtype)
    return ctx.emit("tile", data, list(reps))


@OPS.imports("relax.tile")
def import_tile(ctx: ImportContext, data: Expr, *, repeats: tuple[int, ...]) -> Expr:
    return relay.tile(data, repeats) if repeats else data


@OPS.exports("repeat")
def export_repeat(ctx: ExportContext, data: Value, *, repeats: int, axis: int | None) -> Value:
    if axis is not None:
        return ctx.emit("repeat", data, repeats, axis % ctx.type(data).rank)
    return ctx.emit("repeat", flatten(ctx, data), repeats, 0)


@OPS.imports("relax.repeat")
def import_repeat(ctx: ImportContext, data: Expr, *, repeats: int, axis: int | None) -> Expr:
    if axis is None:
        data, axis = relay.reshape(data, (-1,)), 0
    return relay.repeat(data, repeats, axis=axis)


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


@OPS.imports(
    "relax.builtin.stop_lift_params",
    "relax.grad.end_checkpoint",
    "relax.grad.no_grad",
    "relax.grad.start_checkpoint",
    "relax.memory.ensure_zero_offset",
)
@OPS.imports("relax.hint_on_device", ignored=("device_type", "index", "memory_scope"))
@OPS.imports("relax.to_vdevice", ignored=("dst_vdevice",))
def import_identity(ctx: ImportContext, x: Expr) -> Expr:
    return x


OPS.pairs(
    reads("relax.flatten", "reshape", fixed={"newshape": (-1,)}),
    reads("relax.nn.batch_flatten", "nn.batch_flatten"),
    reads("relax.permute_dims", "transpose", axes=None),
    reads("relax.flip", "reverse", "axis"),
    reads("relax.reverse_sequence", "reverse_sequence", "seq_axis", "batch_axis"),
)
