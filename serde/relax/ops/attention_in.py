"""Importers of attention."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call

__all__: list[str] = []


@OPS.imports("relax.nn.attention", "relax.nn.attention_bias")
def import_attention(
    ctx: ImportContext,
    query: Expr,
    key: Expr,
    value: Expr,
    bias: Expr | None = None,
    *,
    scale: AnyValue,
    causal_mask: str | None,
    window_size: AnyValue,
) -> Expr:
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


def _with_mask(ctx: ImportContext, bias: Expr | None, allowed: AnyValue) -> Expr:
    """Return what says which keys take part, or what is added to the products."""
    if bias is None:
        return ctx.const(allowed, "bool")
    return relay.where(ctx.const(allowed, "bool"), bias, ctx.like(bias, -np.inf))
