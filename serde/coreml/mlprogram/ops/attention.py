"""Attention."""

from __future__ import annotations

import math

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.coreml.mlprogram.operators import HALVES
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, as_dtype, is_float, tensor_type
from serde.walk.expansion.tensors import fixed_shape
from serde.walk.takes import Takes


def _four_axes(x: Expr, rank: int) -> Expr:
    """Return a tensor with one axis between the batch and the last two."""
    if rank == 3:
        return relay.expand_dims(x, 1)
    if rank == 5:
        return relay.reshape(x, [0, -3, 0, 0])
    *between, rows, columns = fixed_shape(x, range(1, rank))
    return relay.reshape(x, [0, math.prod(between), rows, columns])


@OPS.imports("scaled_dot_product_attention", since=18)
def import_scaled_dot_product_attention(
    ctx: Import, query: Expr, key: Expr, value: Expr, attn_mask: Expr | None = None
) -> Expr:
    """Any number of axes lie between the batch and the last two; Relay has one, the heads."""
    type_ = ctx.type(query)
    rank = type_.rank
    if attn_mask is not None and ctx.type(attn_mask).dtype != "bool":
        attn_mask = as_dtype(attn_mask, type_.dtype)
    if rank == 4:
        return relay.serde.attention(query, key, value, attn_mask)
    if attn_mask is not None and ctx.type(attn_mask).rank > 2:
        rows, columns = ctx.type(attn_mask).shape[-2:]
        if rank > 3:
            wanted = [*ctx.static_shape(query)[:-2], rows, columns]
            attn_mask = relay.broadcast_to(attn_mask, wanted)
        attn_mask = _four_axes(attn_mask, rank)
    q, k, v = (_four_axes(each, rank) for each in (query, key, value))
    result = relay.serde.attention(q, k, v, attn_mask)
    if rank == 3:
        return relay.squeeze(result, [1])
    width = ctx.type(value).shape[-1]
    return relay.reshape(result, [*ctx.static_shape(query)[:-1], width])


def _says(node: Call) -> bool:
    """Whether heads and causal places are known, as MIL needs them."""
    query, key = map(tensor_type, node.args[:2])
    heads, groups = query.shape[1], key.shape[1]
    known = heads == groups or (isinstance(heads, int) and isinstance(groups, int))
    lengths = (query.shape[2], key.shape[2]) if node.attrs["is_causal"] else ()
    return known and all(isinstance(length, int) for length in (query.shape[3], *lengths))


@OPS.exports("serde.attention", since=18, takes=Takes(query=HALVES, softcap=None), when=_says)
def export_attention(
    ctx: Export, query: Value, key: Value, value: Value, mask: Value | None = None,
    *, scale: float | None, is_causal: bool, softcap: float | None,
) -> Value:  # fmt: skip
    """MIL scales by the root of the width; it knows no groups of heads and no causal mask."""
    _, heads, rows, width = ctx.type(query).shape
    groups, keys = ctx.type(key).shape[1:3]
    dtype = ctx.type(query).dtype
    if isinstance(width, int) and scale is not None and scale != 1 / math.sqrt(width):
        factor = relay.Constant(np.array(scale * math.sqrt(width), numpy_dtype(dtype)))
        query = ctx.spell(lambda q: relay.multiply(q, factor), query)
    if isinstance(heads, int) and isinstance(groups, int) and heads != groups:
        each = heads // groups
        key = ctx.spell(lambda x: relay.repeat(x, each, axis=1), key)
        value = ctx.spell(lambda x: relay.repeat(x, each, axis=1), value)
    may_be_blind = mask is not None
    if is_causal and isinstance(rows, int) and isinstance(keys, int):
        seen = relay.const(allocation.tri(rows, keys, dtype=bool))
        if mask is None:
            mask = ctx.const(allocation.tri(rows, keys, dtype=bool))
        else:
            mask = ctx.spell(lambda m: _both(m, seen), mask)
    result = ctx.emit(
        "scaled_dot_product_attention", query=query, key=key, value=value, attn_mask=mask
    )
    if mask is None or not may_be_blind:
        return result
    return ctx.spell(_without_blind, result, mask)


def _both(mask: Expr, seen: Expr) -> Expr:
    """Return a mask of what both a mask and a causal one let through."""
    dtype = tensor_type(mask).dtype
    if not is_float(dtype):
        return relay.logical_and(mask, seen)
    return relay.where(seen, mask, relay.Constant(np.array(-np.inf, numpy_dtype(dtype))))


def _without_blind(result: Expr, mask: Expr) -> Expr:
    """Return zeros for queries that may attend to nothing, of which MIL makes no numbers."""
    if is_float(tensor_type(mask).dtype):
        never = relay.Constant(np.array(-np.inf, numpy_dtype(tensor_type(mask).dtype)))
        alive = relay.not_equal(relay.max(mask, axis=(-1,), keepdims=True), never)
    else:
        whole = relay.cast(mask, "int32")
        most = relay.max(whole, axis=(-1,), keepdims=True)
        alive = relay.not_equal(most, relay.const(np.array(0, np.int32)))
    zero = relay.Constant(np.zeros((), numpy_dtype(tensor_type(result).dtype)))
    return relay.where(alive, result, zero)
