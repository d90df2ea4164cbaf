"""Normalisations by neighbours and to unit length, and the dropout that drops nothing."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.conv.windows import cast, sum_dtype
from serde.relax.ops.table import OPS

__all__: list[str] = []


@OPS.exports("nn.lrn")
def export_lrn(
    ctx: ExportContext, data: Value, *, size: int, axis: int, bias: float, alpha: float, beta: float
) -> Value:
    type_ = ctx.type(data)
    wide, axis = sum_dtype(type_.dtype, None), axis % type_.rank
    te, tir = ctx.framework.te, ctx.framework.tir

    def lrn(x: AnyValue) -> AnyValue:
        tap = te.reduce_axis((-(size // 2), size // 2 + 1), name="k")

        def add_up(*places: AnyValue) -> AnyValue:
            place = places[axis] + tap
            read = x[(*places[:axis], place, *places[axis + 1 :])]
            inside = tir.all(place >= 0, place < x.shape[axis])
            return te.sum(tir.if_then_else(inside, read * read, tir.const(0, wide)), axis=tap)

        power = te.compute(x.shape, add_up, name="power")

        def divide(*places: AnyValue) -> AnyValue:
            scale = tir.const(bias, wide) + tir.const(alpha / size, wide) * power[places]
            return x[places] / tir.power(scale, tir.const(beta, wide))

        return te.compute(x.shape, divide, name="lrn")

    made = ctx.emit_te(lrn, cast(ctx, data, type_.dtype, wide))
    return cast(ctx, made, wide, type_.dtype)


@OPS.exports("nn.l2_normalize")
def export_l2_normalize(
    ctx: ExportContext, data: Value, *, eps: float, axis: tuple[int, ...]
) -> Value:
    dtype = ctx.type(data).dtype
    wide = sum_dtype(dtype, None)
    x = cast(ctx, data, dtype, wide)
    power = ctx.emit("sum", ctx.emit("multiply", x, x), axis=list(axis) or None, keepdims=True)
    length = ctx.emit("sqrt", ctx.emit("maximum", power, ctx.const(eps, wide)))
    return cast(ctx, ctx.emit("divide", x, length), wide, dtype)


@OPS.exports("nn.dropout")
def export_dropout(ctx: ExportContext, data: Value, *, rate: float) -> tuple[Value, Value]:
    return data, ctx.emit("ones_like", data)
