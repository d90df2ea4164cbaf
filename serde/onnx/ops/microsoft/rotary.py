"""Rotary position embeddings, of one position each or of three."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.core.allocation import zeros
from serde.errors import Unsupported
from serde.onnx.ops.attention import (
    arange_like,
    import_rotary_embedding,
    join_heads,
    rotate,
    split_heads,
)
from serde.onnx.ops.elementwise.convert import const_int32
from serde.onnx.ops.table import MICROSOFT, Import
from serde.relay.ir.expr import Expr


def _take_positions(cache: Expr, position_ids: Expr) -> Expr:
    """Return rows of a cache in front of which there is an axis for heads."""
    rows = relay.take(cache, position_ids, axis=0, mode="fast")
    return relay.expand_dims(rows, axis=-3)


@MICROSOFT.imports("RotaryEmbedding")
def import_microsoft_rotary_embedding(
    ctx: Import, x: Expr, position_ids: Expr, cos_cache: Expr, sin_cache: Expr,
    *, interleaved: bool = False, is_packed_batching: bool = False, num_heads: int = 0,
    rotary_embedding_dim: int = 0, scale: float = 1.0,
) -> Expr:  # fmt: skip
    """A single position is that of the first row. ONNX Runtime ignores ``scale``."""
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
            ctx, x, cos_cache, sin_cache, position_ids, interleaved=interleaved,
            num_heads=num_heads, rotary_embedding_dim=rotary_embedding_dim,
        )  # fmt: skip
    heads = split_heads(x, num_heads) if flat else x
    time = relay.cast(arange_like(ctx, heads, 2), ctx.type(position_ids).dtype)
    position_ids = relay.add(time, position_ids)
    cos, sin = (_take_positions(each, position_ids) for each in (cos_cache, sin_cache))
    width = rotary_embedding_dim or ctx.static_lengths(heads, [3])[0]
    found = rotate(ctx, heads, cos, sin, width=width, interleaved=interleaved)
    return join_heads(found) if flat else found


@MICROSOFT.imports("MRotaryEmbedding")
def import_mrotary_embedding(
    ctx: Import, x: Expr, position_ids: Expr, cos_cache: Expr, sin_cache: Expr,
    *, interleaved: bool = False, is_packed_batching: bool = False, mrope_layout: int = 0,
    mrope_section: tuple[int, ...], num_heads: int = 0, rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Expr:  # fmt: skip
    """Each angle is of one of three positions: time, height and width.

    The angles of a position follow each other, or (layout 1) the second and third of every three
    are of height and width, as far as these go.
    """
    if is_packed_batching or scale != 1.0:
        raise Unsupported(f"is_packed_batching={int(is_packed_batching)}, scale={scale}")
    (half,) = ctx.static_lengths(cos_cache, [1])
    fits = len(mrope_section) == 3 and min(mrope_section) >= 0 and sum(mrope_section) == half
    if not fits or mrope_layout not in (0, 1):
        raise Unsupported(
            f"mrope_section={list(mrope_section)} of {half} angles, mrope_layout={mrope_layout}"
        )
    owner = zeros(half, np.int64)
    for part in (1, 2):
        if mrope_layout:
            owner[part : 3 * mrope_section[part] : 3] = part
        else:
            owner[sum(mrope_section[:part]) :] = part

    def merge(cache: Expr) -> Expr:
        rows = relay.take(cache, position_ids, axis=0, mode="fast")
        time, *others = (
            relay.take(rows, const_int32(part), axis=0, mode="fast") for part in range(3)
        )
        for part, other in enumerate(others, 1):
            time = relay.where(relay.const(owner == part), other, time)
        return time

    return import_rotary_embedding(
        ctx, x, merge(cos_cache), merge(sin_cache), interleaved=interleaved, num_heads=num_heads,
        rotary_embedding_dim=rotary_embedding_dim,
    )  # fmt: skip
