"""Attention as ONNX Runtime has it: with its projection, and of queries, keys and values."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.attention.heads import (
    Sight,
    attend,
    join_heads,
    length_of,
    places,
    split_heads,
)
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.linalg import product_of
from serde.onnx.ops.microsoft.qnn import real_product
from serde.onnx.ops.table import MICROSOFT
from serde.relay.ir.expr import Expr


def _added_mask(ctx: ImportContext, mask: Expr, query: Expr, key: Expr, hidden: float) -> Expr:
    """Return what a mask of integers adds to the products: `hidden` where it is not positive.

    A vector has the number of keys of each sample, and may have the first of them behind it.

    Raises:
        Unsupported: The mask has another form.
    """
    type_ = ctx.type(mask)
    if type_.rank == 1:
        kept = _within(ctx, mask, query, key)
    elif type_.rank in (2, 3):
        kept = relay.greater(mask, scalar_like(ctx, mask, 0))
        axes = 2 if type_.rank == 2 else 1
        kept = relay.expand_dims(kept, axis=1, num_newaxis=axes)
    else:
        raise Unsupported(f"a mask of {type_!r}")
    return relay.where(kept, scalar_like(ctx, query, 0), scalar_like(ctx, query, hidden))


def _within(ctx: ImportContext, ends: Expr, query: Expr, key: Expr) -> Expr:
    """Return which keys lie before the end of their sample, and not before its start."""
    keys = relay.cast(places(ctx, key, 2), ctx.type(ends).dtype)
    if ctx.type(ends).shape[0] == ctx.type(query).shape[0]:
        return relay.less(keys, relay.expand_dims(ends, axis=1, num_newaxis=3))
    (count,), (batch,) = ctx.static_lengths(ends, [0]), ctx.static_lengths(query, [0])
    if count != 2 * batch:
        raise Unsupported(f"a mask of {count} numbers for {batch} samples")
    first, second = (
        relay.expand_dims(
            relay.strided_slice(ends, begin=[at], end=[at + batch], strides=[1], axes=[0]),
            axis=1,
            num_newaxis=3,
        )
        for at in (0, batch)
    )
    return relay.logical_and(relay.less(keys, first), relay.greater_equal(keys, second))


def _attended(
    ctx: ImportContext,
    heads: tuple[Expr, Expr, Expr],
    past: tuple[Expr, Expr] | None,
    mask: Expr | None,
    bias: Expr | None,
    *,
    causal: bool,
    hidden: float,
    scale: float,
) -> tuple[Expr, Expr, Expr]:
    """Return attention with its heads joined, and the keys and values with those before them."""
    query, key, value = heads
    offset = None
    if past is not None:
        offset = length_of(ctx, past[0], 2)
        key = relay.concatenate([past[0], key], axis=2)
        value = relay.concatenate([past[1], value], axis=2)
    added = None if mask is None else _added_mask(ctx, mask, query, key, hidden)
    if bias is not None:
        added = bias if added is None else relay.add(bias, added)
    sight = Sight(causal, offset if causal else None)
    found = attend(ctx, query, key, value, added, sight, scale=scale or None)
    return join_heads(found), key, value


def _split_last(x: Expr, sizes: tuple[int, ...]) -> list[Expr]:
    parts = relay.split(x, list(np.cumsum(sizes[:-1]).tolist()), axis=-1)
    return [parts[index] for index in range(len(sizes))]


def _self_attention(
    ctx: ImportContext,
    projected: Expr,
    num_heads: int,
    sizes: tuple[int, ...],
    mask: Expr | None,
    past: Expr | None,
    bias: Expr | None,
    *,
    causal: bool,
    hidden: float,
    scale: float,
) -> list[Expr]:
    """Return attention of a projection to queries, keys and values, and what it keeps."""
    (width,) = ctx.static_lengths(projected, [2])
    sizes = sizes or (width // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != width:
        raise Unsupported(f"qkv_hidden_sizes {list(sizes)} of {width} columns")
    query, key, value = (split_heads(x, num_heads) for x in _split_last(projected, sizes))
    before = None
    if past is not None:
        rows = [relay.const(np.int32(index)) for index in (0, 1)]
        first, second = (relay.take(past, row, axis=0, mode="fast") for row in rows)
        before = (first, second)
    found, key, value = _attended(
        ctx, (query, key, value), before, mask, bias, causal=causal, hidden=hidden, scale=scale
    )
    return [found, relay.stack([key, value], axis=0)] if ctx.wants(1) else [found]


@MICROSOFT.imports("Attention")
def import_attention(
    ctx: ImportContext,
    x: Expr,
    weights: Expr,
    bias: Expr | None = None,
    mask_index: Expr | None = None,
    past: Expr | None = None,
    attention_bias: Expr | None = None,
    past_sequence_length: Expr | None = None,
    *,
    do_rotary: bool = False,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: bool = False,
    qkv_hidden_sizes: tuple[int, ...] = (),
    rotary_embedding_dim: int = 0,
    scale: float = 0.0,
    unidirectional: bool = False,
) -> list[Expr]:
    if do_rotary or past_present_share_buffer or past_sequence_length is not None:
        raise Unsupported("do_rotary, or a buffer that past and present share")
    projected = product_of(ctx, x, weights)
    if bias is not None:
        projected = relay.add(projected, bias)
    return _self_attention(
        ctx,
        projected,
        num_heads,
        qkv_hidden_sizes,
        mask_index,
        past,
        attention_bias,
        causal=unidirectional,
        hidden=mask_filter_value,
        scale=scale,
    )


@MICROSOFT.imports("QAttention")
def import_qattention(
    ctx: ImportContext,
    x: Expr,
    weight: Expr,
    bias: Expr,
    input_scale: Expr,
    weight_scale: Expr,
    mask_index: Expr | None = None,
    input_zero_point: Expr | None = None,
    weight_zero_point: Expr | None = None,
    past: Expr | None = None,
    *,
    do_rotary: bool = False,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: bool = False,
    scale: float = 0.0,
    unidirectional: bool = False,
) -> list[Expr]:
    """The projection is a product of bytes; all else is in floats."""
    if do_rotary or past_present_share_buffer:
        raise Unsupported("do_rotary, or a buffer that past and present share")
    factor = relay.multiply(input_scale, weight_scale)
    projected = real_product(ctx, x, weight, factor, input_zero_point, weight_zero_point, bias)
    return _self_attention(
        ctx,
        projected,
        num_heads,
        (),
        mask_index,
        past,
        None,
        causal=unidirectional,
        hidden=mask_filter_value,
        scale=scale,
    )


def _unpacked(x: Expr, count: int) -> list[Expr]:
    """Return the parts of (batch, time, heads, count, width) as (batch, heads, time, width)."""
    parts = relay.split(x, count, axis=3)
    flat = [relay.squeeze(parts[index], axis=[3]) for index in range(count)]
    return [relay.transpose(each, axes=[0, 2, 1, 3]) for each in flat]


@MICROSOFT.imports("MultiHeadAttention")
def import_multi_head_attention(
    ctx: ImportContext,
    query: Expr,
    key: Expr | None = None,
    value: Expr | None = None,
    bias: Expr | None = None,
    key_padding_mask: Expr | None = None,
    attention_bias: Expr | None = None,
    past_key: Expr | None = None,
    past_value: Expr | None = None,
    past_sequence_length: Expr | None = None,
    cache_indirection: Expr | None = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float = 0.0,
    unidirectional: bool = False,
) -> list[Expr]:
    """Keys and values may be packed with the queries or with each other, or have heads already."""
    if past_sequence_length is not None or cache_indirection is not None:
        raise Unsupported("a buffer that past and present share")
    if ctx.wants(3):
        raise Unsupported("the products of queries and keys")
    heads = _given_heads(ctx, query, key, value, bias, num_heads)
    past = None if past_key is None or past_value is None else (past_key, past_value)
    return list(
        _attended(
            ctx,
            heads,
            past,
            key_padding_mask,
            attention_bias,
            causal=unidirectional,
            hidden=mask_filter_value,
            scale=scale,
        )
    )


def _given_heads(
    ctx: ImportContext,
    query: Expr,
    key: Expr | None,
    value: Expr | None,
    bias: Expr | None,
    count: int,
) -> tuple[Expr, Expr, Expr]:
    """Return queries, keys and values of (batch, heads, time, width)."""
    if ctx.type(query).rank == 5:
        if bias is not None:
            raise Unsupported("a bias of packed queries, keys and values")
        first, second, third = _unpacked(query, 3)
        return first, second, third
    if key is None:
        raise Unsupported("queries without keys")
    biases: list[Expr | None] = [None, None, None]
    (hidden,) = ctx.static_lengths(query, [2])
    if bias is not None:
        (total,) = ctx.static_lengths(bias, [0])
        biases = [*_split_last(bias, (hidden, hidden, total - 2 * hidden))]
    rows = query if biases[0] is None else relay.add(query, biases[0])
    queries = split_heads(rows, count)
    if ctx.type(key).rank == 5:
        if bias is not None:
            raise Unsupported("a bias of packed keys and values")
        keys, values = _unpacked(key, 2)
        return queries, keys, values
    if value is None:
        raise Unsupported("keys without values")
    found = []
    for each, added in ((key, biases[1]), (value, biases[2])):
        if ctx.type(each).rank == 4:
            if added is not None:
                raise Unsupported("a bias of keys that have their heads already")
            found.append(each)
        else:
            found.append(split_heads(each if added is None else relay.add(each, added), count))
    return queries, found[0], found[1]
