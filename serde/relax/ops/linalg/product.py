"""Products of matrices."""

from __future__ import annotations

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.table import OPS

__all__: list[str] = []


@OPS.exports("nn.dense")
def export_dense(
    ctx: ExportContext,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    units: int | None,
    out_dtype: str,
) -> Value:
    made = ctx.emit("matmul", data, ctx.emit("permute_dims", weight), out_dtype=out_dtype or None)
    return made if bias is None else ctx.emit("add", made, bias)
