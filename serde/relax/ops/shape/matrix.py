"""Triangles of the innermost matrices."""

from __future__ import annotations

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Constant

__all__: list[str] = []


@OPS.exports("trilu", when=lambda node: isinstance(node.args[1], Constant))
def export_trilu(ctx: ExportContext, data: Value, k: Value, *, upper: bool) -> Value:
    return ctx.emit("triu" if upper else "tril", data, int(ctx.constant(k)))
