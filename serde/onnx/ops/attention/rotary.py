"""Rotary position embeddings."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.attention.heads import join_heads, places, split_heads
from serde.onnx.ops.table import MICROSOFT, OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call

__all__ = ["rotated"]


def rotated(
    ctx: ImportContext, x: Expr, cos: Expr, sin: Expr, *, width: int, interleaved: bool
) -> Expr:
    """Return heads whose first elements are turned, pair by pair.

    Args:
        ctx: The context.
        x: (batch, heads, time, head width).
        cos: Cosines that broadcast to (batch, heads, time, width / 2).
        sin: Sines likewise.
        width: How many elements of a head are turned.
        interleaved: Whether pairs are neighbours, rather than half of `width` apart.
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
        turned = relay.reshape(pairs, (0, 0, 0, -3))
    else:
        turned = relay.concatenate([real, imaginary], axis=3)
    if width == head:
        return turned
    rest = relay.strided_slice(x, begin=[width], end=[head], strides=[1], axes=[3])
    return relay.concatenate([turned, rest], axis=3)


def _at_places(cache: Expr, position_ids: Expr) -> Expr:
    """Return rows of a cache in front of which there is an axis for heads."""
    rows = relay.take(cache, position_ids, axis=0, mode="fast")
    return relay.expand_dims(rows, axis=-3)


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


@MICROSOFT.imports("RotaryEmbedding")
def import_microsoft_rotary_embedding(
    ctx: ImportContext,
    x: Expr,
    position_ids: Expr,
    cos_cache: Expr,
    sin_cache: Expr,
    *,
    interleaved: bool = False,
    is_packed_batching: bool = False,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Expr:
    """One place is that of the first time. ONNX Runtime makes nothing of ``scale``."""
    if is_packed_batching:
        raise Unsupported("is_packed_batching=1")
    if scale != 1.0:
        raise Unsupported(f"scale={scale}")
    (half,) = ctx.static_lengths(cos_cache, [1])
    flat = ctx.type(x).rank == 3
    if flat and not num_heads:
        (hidden,) = ctx.static_lengths(x, [2])
        num_heads = hidden // (2 * half)
    if ctx.type(position_ids).rank == 2:
        return import_rotary_embedding(
            ctx,
            x,
            cos_cache,
            sin_cache,
            position_ids,
            interleaved=interleaved,
            num_heads=num_heads,
            rotary_embedding_dim=rotary_embedding_dim,
        )
    heads = split_heads(x, num_heads) if flat else x
    time = relay.cast(places(ctx, heads, 2), ctx.type(position_ids).dtype)
    position_ids = relay.add(time, position_ids)
    cos, sin = (_at_places(each, position_ids) for each in (cos_cache, sin_cache))
    width = rotary_embedding_dim or ctx.static_lengths(heads, [3])[0]
    found = rotated(ctx, heads, cos, sin, width=width, interleaved=interleaved)
    return join_heads(found) if flat else found
