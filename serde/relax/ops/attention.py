"""Scaled dot-product attention, and the turning of features before it."""

from __future__ import annotations

from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relax.precision import compute_wide, make_wide_expansion
from serde.relay.ir import Call, Expr, call, same_length, tensor_type
from serde.relay.op.attention import decompose_attention, has_any
from serde.walk.takes import Takes

for _name in ("serde.embedding_bag", "serde.rotary_embedding"):
    OPS.expands(_name)(make_wide_expansion(_name))


OPS.expands("serde.attention")(
    make_wide_expansion("serde.attention", partial(decompose_attention, find_alive=has_any))
)


def _has_layer(node: Call) -> bool:
    """Whether Relax computes it as Relay does.

    Its mask makes no number where nothing is attended to, its causal one where all products are
    far below zero; it has neither groups of heads nor a soft cap.
    """
    query, key, *_ = node.args
    return same_length(tensor_type(query).shape[1], tensor_type(key).shape[1])


@OPS.exports(
    "serde.attention", takes=Takes(mask=None, is_causal=False, softcap=None), when=_has_layer
)
def export_attention(
    ctx: Export, query: Value, key: Value, value: Value, mask: Value | None, *, scale: float | None
) -> Value:
    """Relax has the heads behind the places."""

    def attend(*operands: Value) -> Value:
        turned = [ctx.emit("permute_dims", each, [0, 2, 1, 3]) for each in operands]
        factor = None if scale is None else ctx.framework.tir.FloatImm("float32", scale)
        made = ctx.emit("nn.attention", *turned, scale=factor)
        return ctx.emit("permute_dims", made, [0, 2, 1, 3])

    return compute_wide(ctx, attend, query, key, value)


@OPS.imports("relax.nn.attention", "relax.nn.attention_bias")
def import_attention(
    ctx: Import, query: Expr, key: Expr, value: Expr, bias: Expr | None = None,
    *, scale: AnyValue, causal_mask: str | None, window_size: AnyValue,
) -> Expr:  # fmt: skip
    """Heads are on axis 2, in Relay on axis 1."""
    if window_size is not None:
        raise Unsupported("attention within a window has no counterpart")
    mask, is_causal = bias, causal_mask == "TopLeft"
    if causal_mask == "BottomRight":
        queries, keys = (ctx.static_lengths(each, [1])[0] for each in (query, key))
        if queries > keys:
            raise Unsupported("more queries than keys, aligned at their ends")
        if queries == keys:
            is_causal = True
        else:
            allowed = allocation.tri(queries, keys, keys - queries, bool)
            mask = _with_mask(ctx, bias, allowed)
    elif causal_mask not in (None, "TopLeft"):
        raise Unsupported(f"causal_mask={causal_mask!r} has no counterpart")
    heads_first = [relay.transpose(x, axes=[0, 2, 1, 3]) for x in (query, key, value)]
    factor = None if scale is None else float(ctx.number(scale))
    found = call("serde.attention", *heads_first, mask, scale=factor, is_causal=is_causal)
    return relay.transpose(found, axes=[0, 2, 1, 3])


def _with_mask(ctx: Import, bias: Expr | None, allowed: AnyValue) -> Expr:
    """Return what says which keys take part, or what is added to the products."""
    if bias is None:
        return ctx.const(allowed, "bool")
    return relay.where(ctx.const(allowed, "bool"), bias, ctx.like(bias, -np.inf))
