"""Positions told to attention by turning pairs of features."""

from __future__ import annotations

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.table import OPS


@OPS.exports("serde.rotary_embedding", since=23)
def export_rotary_embedding(
    ctx: ExportContext,
    data: Value,
    cos: Value,
    sin: Value,
    positions: Value | None,
    *,
    num_heads: int,
    rotary_dim: int,
    interleaved: bool,
) -> Value:
    if positions is not None and ctx.type(positions).dtype != "int64":
        positions = cast(ctx, positions, "int64")
    return ctx.emit(
        "RotaryEmbedding",
        data,
        cos,
        sin,
        positions,
        num_heads=num_heads or None,
        rotary_embedding_dim=rotary_dim or None,
        interleaved=int(interleaved) or None,
    )
