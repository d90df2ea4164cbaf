"""Diagonals and triangles of the innermost matrices."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.table import OPS
from serde.relay.op.shape.matrix import Diagonals

__all__: list[str] = []


@OPS.exports("trilu")
def export_trilu(ctx: ExportContext, data: Value, k: Value, *, upper: bool) -> Value:
    if k.data is not None:
        return ctx.emit("triu" if upper else "tril", data, int(k.data))
    te, tir = ctx.framework.te, ctx.framework.tir

    def trilu(x: AnyValue, diagonal: AnyValue) -> AnyValue:
        def one(*places: AnyValue) -> AnyValue:
            apart = places[-1] - places[-2]
            wanted = diagonal().astype("int64")
            kept = apart >= wanted if upper else apart <= wanted
            return tir.if_then_else(kept, x(*places), tir.const(0, str(x.dtype)))

        return te.compute(x.shape, one, name="trilu")

    return ctx.emit_te(trilu, data, k)


@OPS.exports("matrix_set_diag")
def export_matrix_set_diag(
    ctx: ExportContext, input: Value, diagonal: Value, *, diagonals: Diagonals
) -> Value:
    te, tir = ctx.framework.te, ctx.framework.tir

    def matrix_set_diag(x: AnyValue, lines: AnyValue) -> AnyValue:
        zero = tir.IntImm("int64", 0)

        def one(*places: AnyValue) -> AnyValue:
            *batch, row, column = places
            apart = column - row
            length = tir.min(x.shape[-2] + tir.min(apart, zero), x.shape[-1] - tir.max(apart, zero))
            skip = lines.shape[-1] - length
            above = skip if diagonals.super_diag_right_align else zero
            below = skip if diagonals.sub_diag_right_align else zero
            step = tir.min(row, column) + tir.Select(apart >= 0, above, below)
            line = [] if diagonals.k1 == diagonals.k2 else [diagonals.k2 - apart]
            found = lines(*batch, *line, step)
            return tir.if_then_else(
                tir.And(apart >= diagonals.k1, apart <= diagonals.k2), found, x(*places)
            )

        return te.compute(x.shape, one, name="matrix_set_diag")

    return ctx.emit_te(matrix_set_diag, input, diagonal)
