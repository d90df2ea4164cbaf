"""Rotary position embeddings."""

from __future__ import annotations

import serde.relay as relay
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


def rotate(
    ctx: ImportContext, x: Expr, cos: Expr, sin: Expr, *, width: int, interleaved: bool
) -> Expr:
    """Return heads whose first elements are rotated: ``(a * cos - b * sin, a * sin + b * cos)``.

    Args:
        ctx: The context.
        x: (batch, heads, time, head width).
        cos: Cosines that broadcast to (batch, heads, time, width / 2).
        sin: Sines likewise.
        width: How many elements of a head are rotated.
        interleaved: Whether pairs are neighbours, rather than ``width / 2`` from each other.
    """
    (head,) = ctx.static_lengths(x, [3])
    half = width // 2
    cuts = ((0, width, 2), (1, width, 2)) if interleaved else ((0, half, 1), (half, width, 1))
    first, second = (
        relay.strided_slice(x, begin=[begin], end=[end], strides=[step], axes=[3])
        for begin, end, step in cuts
    )
    real = relay.subtract(relay.multiply(cos, first), relay.multiply(sin, second))
    imaginary = relay.add(relay.multiply(sin, first), relay.multiply(cos, second))
    if interleaved:
        pairs = relay.stack([real, imaginary], axis=-1)
        transposed = relay.reshape(pairs, (0, 0, 0, -3))
    else:
        transposed = relay.concatenate([real, imaginary], axis=3)
    if width == head:
        return transposed
    rest = relay.strided_slice(x, begin=[width], end=[head], strides=[1], axes=[3])
    return relay.concatenate([transposed, rest], axis=3)


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


@OPS.imports("RotaryEmbedding", since=23)
def import_rotary_embedding(
    ctx: ImportContext,
    x: Expr,
    cos_cache: Expr,
    sin_cache: Expr,
    position_ids: Expr | None = None,
    *,
    interleaved: bool = False,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Expr:
    return call(
        "serde.rotary_embedding",
        x,
        cos_cache,
        sin_cache,
        position_ids,
        num_heads=num_heads,
        rotary_dim=rotary_embedding_dim,
        interleaved=interleaved,
    )
