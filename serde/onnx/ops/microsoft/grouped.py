"""Attention whose keys and values serve groups of heads, kept in a buffer from step to step."""

from __future__ import annotations

from dataclasses import dataclass

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
from serde.onnx.ops.attention.rotary import rotated
from serde.onnx.ops.table import MICROSOFT
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


def _int(value: int) -> Expr:
    return relay.const(np.int32(value))


@dataclass(frozen=True)
class _Step:
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

    def places(self, ctx: ImportContext, rows: Expr) -> Expr:
        """Return where rows of (batch, heads, time, width) belong; padding is at place 1."""
        own = relay.add(places(ctx, rows, 2), relay.expand_dims(self.begins, axis=1))
        inside = relay.less(own, relay.expand_dims(self.ends, axis=1))
        return relay.where(inside, own, _int(1))

    def kept(self, ctx: ImportContext, past: Expr, new: Expr) -> Expr:
        """Return the rows of the past, behind them those of the step, and zeros from there on."""
        before = length_of(ctx, past, 2)
        blank = relay.zeros_like(
            relay.strided_slice(new, begin=[0], end=[1], strides=[1], axes=[2])
        )
        rows = relay.concatenate([past, new, blank], axis=2)
        number = ctx.fold(relay.maximum(before, self.total))
        slots = relay.arange(_int(0), number, _int(1), dtype="int32")
        begins, count = relay.expand_dims(self.begins, axis=1), self.count
        behind = relay.add(before, relay.subtract(slots, begins))
        unused = relay.add(before, count)
        written = relay.less(slots, relay.add(begins, count))
        source = relay.where(relay.less(slots, begins), slots, relay.where(written, behind, unused))
        table = relay.transpose(rows, axes=[0, 2, 1, 3])
        index = relay.cast(relay.expand_dims(source, axis=2), "int64")
        found = call("serde.gather_nd", table, index, batch_dims=1)
        return relay.transpose(found, axes=[0, 2, 1, 3])


def _step(
    ctx: ImportContext, query: Expr, past: Expr | None, seqlens_k: Expr, total: Expr
) -> _Step:
    """Return the step: the first one, if it has as many rows as there are in all."""
    count = length_of(ctx, query, 1)
    ends = relay.add(seqlens_k, _int(1))
    if past is None:
        return _Step(relay.zeros_like(ends), ends, count, count)
    if ctx.type(total).rank:
        total = relay.reshape(total, ())
    begins = relay.where(
        relay.equal(total, count), relay.zeros_like(ends), relay.subtract(ends, count)
    )
    return _Step(begins, ends, count, ctx.fold(total))


@MICROSOFT.imports("GroupQueryAttention")
def import_group_query_attention(
    ctx: ImportContext,
    query: Expr,
    key: Expr | None,
    value: Expr | None,
    past_key: Expr | None,
    past_value: Expr | None,
    seqlens_k: Expr,
    total_sequence_length: Expr,
    cos_cache: Expr | None = None,
    sin_cache: Expr | None = None,
    position_ids: Expr | None = None,
    attention_bias: Expr | None = None,
    head_sink: Expr | None = None,
    *,
    do_rotary: bool = False,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    qk_output: int = 0,
    rotary_interleaved: bool = False,
    scale: float = 0.0,
    smooth_softmax: int = 0,
    softcap: float = 0.0,
) -> list[Expr]:
    """``seqlens_k`` counts the rows of each sample, less one; a window holds the query's own."""
    if head_sink is not None or smooth_softmax > 0 or qk_output or ctx.wants(3):
        raise Unsupported("a sink, a smooth softmax, or the products of queries and keys")
    step = _step(ctx, query, past_key, seqlens_k, total_sequence_length)
    queries, keys, values = _heads(ctx, query, key, value, num_heads, kv_num_heads)
    if do_rotary:
        if cos_cache is None or sin_cache is None:
            raise Unsupported("do_rotary=1 without caches")
        ids = step.places(ctx, queries) if position_ids is None else position_ids
        cos, sin = (
            relay.expand_dims(relay.take(each, ids, axis=0, mode="fast"), axis=1)
            for each in (cos_cache, sin_cache)
        )
        width = 2 * ctx.static_lengths(cos_cache, [1])[0]
        queries, keys = (
            rotated(ctx, x, cos, sin, width=width, interleaved=rotary_interleaved)
            for x in (queries, keys)
        )
    if past_key is not None and past_value is not None:
        keys, values = step.kept(ctx, past_key, keys), step.kept(ctx, past_value, values)
    left = None if local_window_size < 1 else local_window_size - 1
    sight = Sight(True, None if past_key is None else step.begins, left=left)
    found = attend(
        ctx, queries, keys, values, attention_bias, sight, scale=scale or None, softcap=softcap
    )
    return [join_heads(found), keys, values]


def _heads(
    ctx: ImportContext,
    query: Expr,
    key: Expr | None,
    value: Expr | None,
    count: int,
    groups: int,
) -> tuple[Expr, Expr, Expr]:
    """Return queries, keys and values by heads; they may all stand in one tensor."""
    if key is not None and value is not None:
        return split_heads(query, count), split_heads(key, groups), split_heads(value, groups)
    whole = split_heads(query, count + 2 * groups)
    parts = relay.split(whole, [count, count + groups], axis=1)
    return parts[0], parts[1], parts[2]
