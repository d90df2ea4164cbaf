"""Attention as ONNX Runtime has it: with its projection and its cache."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.onnx.ops.attention import (
    ImplicitMask,
    arange_like,
    attend,
    join_heads,
    rotate,
    split_heads,
)
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.linalg.product import build_matmul
from serde.onnx.ops.microsoft.qnn import build_real_matmul
from serde.onnx.ops.shape.reshape import as_scalar
from serde.onnx.ops.table import MICROSOFT, Import
from serde.relay.ir import Expr, call
from serde.relay.lowering.lengths import length_of


@dataclass(frozen=True, kw_only=True)
class AttentionAttributes:
    """Attributes that the operators of attention share."""

    mask_filter_value: float = -10000.0
    num_heads: int
    scale: float = 0.0
    unidirectional: bool = False


@dataclass(frozen=True, kw_only=True)
class ProjectedAttributes(AttentionAttributes):
    """Those of operators that project to queries, keys and values themselves."""

    do_rotary: bool = False
    past_present_share_buffer: bool = False

    def require_own_buffer(self, past_sequence_length: Expr | None = None) -> None:
        """Refuse what is left to kernels of graphics processors."""
        shared = self.past_present_share_buffer or past_sequence_length is not None
        if self.do_rotary or shared:
            raise Unsupported("do_rotary, or a buffer that past and present share")


def _to_bias(ctx: Import, mask: Expr, query: Expr, key: Expr, hidden: float) -> Expr:
    """Return what a mask of integers adds to the products: `hidden` where it is not positive.

    A vector has the number of keys of each sample, and may have the first of them behind it.
    """
    type_ = ctx.type(mask)
    if type_.rank == 1:
        kept = _mask_by_length(ctx, mask, query, key)
    elif type_.rank in (2, 3):
        kept = relay.greater(mask, scalar_like(ctx, mask, 0))
        axes = 2 if type_.rank == 2 else 1
        kept = relay.expand_dims(kept, axis=1, num_newaxis=axes)
    else:
        raise Unsupported(f"a mask of {type_!r}")
    return relay.where(kept, scalar_like(ctx, query, 0), scalar_like(ctx, query, hidden))


def _mask_by_length(ctx: Import, stops: Expr, query: Expr, key: Expr) -> Expr:
    """Return which keys lie before the end of their sample, and not before its start."""
    keys = relay.cast(arange_like(ctx, key, 2), ctx.type(stops).dtype)
    if ctx.type(stops).shape[0] == ctx.type(query).shape[0]:
        return relay.less(keys, relay.expand_dims(stops, axis=1, num_newaxis=3))
    (count,), (batch,) = ctx.static_lengths(stops, [0]), ctx.static_lengths(query, [0])
    if count != 2 * batch:
        raise Unsupported(f"a mask of {count} numbers for {batch} samples")
    first, second = (
        relay.expand_dims(
            relay.strided_slice(stops, begin=[at], end=[at + batch], strides=[1], axes=[0]),
            axis=1,
            num_newaxis=3,
        )
        for at in (0, batch)
    )
    return relay.logical_and(relay.less(keys, first), relay.greater_equal(keys, second))


def _attend_with_past(
    ctx: Import,
    heads: tuple[Expr, Expr, Expr],
    past: tuple[Expr, Expr] | None,
    mask: Expr | None,
    bias: Expr | None,
    attributes: AttentionAttributes,
) -> tuple[Expr, Expr, Expr]:
    """Return attention with its heads joined, and the keys and values with those before them."""
    query, key, value = heads
    offset = None
    if past is not None:
        offset = length_of(past[0], 2, "int32")
        key = relay.concatenate([past[0], key], axis=2)
        value = relay.concatenate([past[1], value], axis=2)
    added = None if mask is None else _to_bias(ctx, mask, query, key, attributes.mask_filter_value)
    if bias is not None:
        added = bias if added is None else relay.add(bias, added)
    causal = attributes.unidirectional
    implicit = ImplicitMask(causal, offset if causal else None)
    found = attend(ctx, query, key, value, added, implicit, scale=attributes.scale or None)
    return join_heads(found), key, value


def _split_last(x: Expr, sizes: tuple[int, ...]) -> list[Expr]:
    parts = relay.split(x, list(np.cumsum(sizes[:-1]).tolist()), axis=-1)
    return [parts[index] for index in range(len(sizes))]


def _attend_projection(
    ctx: Import, projected: Expr, sizes: tuple[int, ...], mask: Expr | None, past: Expr | None,
    bias: Expr | None, attributes: AttentionAttributes,
) -> list[Expr]:  # fmt: skip
    """Return attention of a projection to queries, keys and values, and what it keeps."""
    (width,) = ctx.static_lengths(projected, [2])
    sizes = sizes or (width // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != width:
        raise Unsupported(f"qkv_hidden_sizes {list(sizes)} of {width} columns")
    query, key, value = (
        split_heads(x, attributes.num_heads) for x in _split_last(projected, sizes)
    )
    before = None
    if past is not None:
        rows = [relay.const(np.int32(index)) for index in (0, 1)]
        first, second = (relay.take(past, row, axis=0, mode="fast") for row in rows)
        before = (first, second)
    found, key, value = _attend_with_past(ctx, (query, key, value), before, mask, bias, attributes)
    return [found, relay.stack([key, value], axis=0)] if ctx.wants(1) else [found]


@MICROSOFT.imports("Attention")
def import_attention(
    ctx: Import, x: Expr, weights: Expr, bias: Expr | None = None, mask_index: Expr | None = None,
    past: Expr | None = None, attention_bias: Expr | None = None,
    past_sequence_length: Expr | None = None,
    *, attention: ProjectedAttributes, qkv_hidden_sizes: tuple[int, ...] = (),
    rotary_embedding_dim: int = 0,
) -> list[Expr]:  # fmt: skip
    attention.require_own_buffer(past_sequence_length)
    projected = build_matmul(ctx, x, weights)
    if bias is not None:
        projected = relay.add(projected, bias)
    return _attend_projection(
        ctx, projected, qkv_hidden_sizes, mask_index, past, attention_bias, attention
    )


@MICROSOFT.imports("QAttention")
def import_qattention(
    ctx: Import, x: Expr, weight: Expr, bias: Expr, input_scale: Expr, weight_scale: Expr,
    mask_index: Expr | None = None, input_zero_point: Expr | None = None,
    weight_zero_point: Expr | None = None, past: Expr | None = None,
    *, attention: ProjectedAttributes,
) -> list[Expr]:  # fmt: skip
    """The projection is a product of bytes; all else is in floats."""
    attention.require_own_buffer()
    factor = relay.multiply(input_scale, weight_scale)
    projected = build_real_matmul(ctx, x, weight, factor, input_zero_point, weight_zero_point, bias)
    return _attend_projection(ctx, projected, (), mask_index, past, None, attention)


def _unpack(x: Expr, count: int) -> list[Expr]:
    """Return the parts of (batch, time, heads, count, width) as (batch, heads, time, width)."""
    parts = relay.split(x, count, axis=3)
    flat = [relay.squeeze(parts[index], axis=[3]) for index in range(count)]
    return [relay.transpose(each, axes=[0, 2, 1, 3]) for each in flat]


@MICROSOFT.imports("MultiHeadAttention")
def import_multi_head_attention(
    ctx: Import, query: Expr, key: Expr | None = None, value: Expr | None = None,
    bias: Expr | None = None, key_padding_mask: Expr | None = None,
    attention_bias: Expr | None = None, past_key: Expr | None = None,
    past_value: Expr | None = None, past_sequence_length: Expr | None = None,
    cache_indirection: Expr | None = None,
    *, attention: AttentionAttributes,
) -> list[Expr]:  # fmt: skip
    """Keys and values may be packed with the queries or with each other, or have heads already."""
    if past_sequence_length is not None or cache_indirection is not None:
        raise Unsupported("a buffer that past and present share")
    if ctx.wants(3):
        raise Unsupported("the products of queries and keys")
    heads = _read_heads(ctx, query, key, value, bias, attention.num_heads)
    past = _pair_past(past_key, past_value)
    return list(_attend_with_past(ctx, heads, past, key_padding_mask, attention_bias, attention))


def _pair_past(keys: Expr | None, values: Expr | None) -> tuple[Expr, Expr] | None:
    """Return keys and values of the past, None where there is none."""
    if keys is None and values is None:
        return None
    if keys is None or values is None:
        raise Unsupported("keys of the past without values, or values without keys")
    return keys, values


def _read_heads(
    ctx: Import, query: Expr, key: Expr | None, value: Expr | None, bias: Expr | None, count: int
) -> tuple[Expr, Expr, Expr]:
    """Return queries, keys and values of (batch, heads, time, width)."""
    if ctx.type(query).rank == 5:
        if bias is not None:
            raise Unsupported("a bias of packed queries, keys and values")
        first, second, third = _unpack(query, 3)
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
        keys, values = _unpack(key, 2)
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


def _int32(value: int) -> Expr:
    return relay.const(np.int32(value))


@dataclass(frozen=True)
class _CacheStep:
    """Where the rows of one step belong; all numbers are of int32.

    Attributes:
        begins: Rows of each sample before the step, (batch,).
        ends: Rows of each sample with those of the step, (batch,).
        count: Rows of the step.
        total: Rows of the longest sample.
    """

    begins: Expr
    ends: Expr
    count: Expr
    total: Expr

    def position_ids(self, ctx: Import, rows: Expr) -> Expr:
        """Return the positions of rows of (batch, heads, time, width); padding is at position 1."""
        own = relay.add(arange_like(ctx, rows, 2), relay.expand_dims(self.begins, axis=1))
        inside = relay.less(own, relay.expand_dims(self.ends, axis=1))
        return relay.where(inside, own, _int32(1))

    def append(self, ctx: Import, past: Expr, new: Expr) -> Expr:
        """Return the rows of the past, behind them those of the step, and zeros from there on."""
        before = length_of(past, 2, "int32")
        blank = relay.zeros_like(
            relay.strided_slice(new, begin=[0], end=[1], strides=[1], axes=[2])
        )
        rows = relay.concatenate([past, new, blank], axis=2)
        number = ctx.fold(relay.maximum(before, self.total))
        slots = relay.arange(_int32(0), number, _int32(1), dtype="int32")
        begins, count = relay.expand_dims(self.begins, axis=1), self.count
        behind = relay.add(before, relay.subtract(slots, begins))
        unused = relay.add(before, count)
        written = relay.less(slots, relay.add(begins, count))
        source = relay.where(relay.less(slots, begins), slots, relay.where(written, behind, unused))
        table = relay.transpose(rows, axes=[0, 2, 1, 3])
        index = relay.cast(relay.expand_dims(source, axis=2), "int64")
        found = call("serde.gather_nd", table, index, batch_dims=1)
        return relay.transpose(found, axes=[0, 2, 1, 3])


def _read_step(
    ctx: Import, query: Expr, past: Expr | None, seqlens_k: Expr, total: Expr
) -> _CacheStep:
    """Return the step: the first one, if it has as many rows as there are in all."""
    count = length_of(query, 1, "int32")
    ends = relay.add(seqlens_k, _int32(1))
    if past is None:
        return _CacheStep(relay.zeros_like(ends), ends, count, count)
    total = as_scalar(ctx, total)
    begins = relay.where(
        relay.equal(total, count), relay.zeros_like(ends), relay.subtract(ends, count)
    )
    return _CacheStep(begins, ends, count, ctx.fold(total))


@MICROSOFT.imports("GroupQueryAttention")
def import_group_query_attention(
    ctx: Import, query: Expr, key: Expr | None, value: Expr | None, past_key: Expr | None,
    past_value: Expr | None, seqlens_k: Expr, total_sequence_length: Expr,
    cos_cache: Expr | None = None, sin_cache: Expr | None = None, position_ids: Expr | None = None,
    attention_bias: Expr | None = None, head_sink: Expr | None = None,
    *, causal: bool = True, do_rotary: bool = False, kv_num_heads: int, local_window_size: int = -1,
    num_heads: int, qk_output: int = 0, rotary_interleaved: bool = False, scale: float = 0.0,
    smooth_softmax: int = 0, softcap: float = 0.0,
) -> list[Expr]:  # fmt: skip
    """``seqlens_k`` counts the rows of each sample, less one; a window holds the query's own."""
    if head_sink is not None or smooth_softmax > 0 or qk_output or ctx.wants(3):
        raise Unsupported("a sink, a smooth softmax, or the products of queries and keys")
    step = _read_step(ctx, query, past_key, seqlens_k, total_sequence_length)
    queries, keys, values = _split_packed_heads(ctx, query, key, value, num_heads, kv_num_heads)
    if do_rotary:
        if cos_cache is None or sin_cache is None:
            raise Unsupported("do_rotary=1 without caches")
        ids = step.position_ids(ctx, queries) if position_ids is None else position_ids
        cos, sin = (
            relay.expand_dims(relay.take(each, ids, axis=0, mode="fast"), axis=1)
            for each in (cos_cache, sin_cache)
        )
        width = 2 * ctx.static_lengths(cos_cache, [1])[0]
        queries, keys = (
            rotate(ctx, x, cos, sin, width=width, interleaved=rotary_interleaved)
            for x in (queries, keys)
        )
    past = _pair_past(past_key, past_value)
    if past is not None:
        keys, values = step.append(ctx, past[0], keys), step.append(ctx, past[1], values)
    left = None if local_window_size < 1 else local_window_size - 1
    implicit = ImplicitMask(causal, None if past_key is None else step.begins, left=left)
    found = attend(
        ctx, queries, keys, values, attention_bias, implicit, scale=scale or None, softcap=softcap
    )
    return [join_heads(found), keys, values]


def _split_packed_heads(
    ctx: Import, query: Expr, key: Expr | None, value: Expr | None, count: int, groups: int
) -> tuple[Expr, Expr, Expr]:
    """Return queries, keys and values by heads; they may all stand in one tensor."""
    if key is not None and value is not None:
        return split_heads(query, count), split_heads(key, groups), split_heads(value, groups)
    whole = split_heads(query, count + 2 * groups)
    parts = relay.split(whole, [count, count + groups], axis=1)
    return parts[0], parts[1], parts[2]
