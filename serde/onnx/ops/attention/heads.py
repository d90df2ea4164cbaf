"""Heads of attention, and the mask that says which keys a query attends to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import serde.relay as relay
from serde.core.allocation import arange
from serde.errors import Unsupported
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import const_int32, scalar_like
from serde.relay.ir.dims import Any
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


def split_heads(x: Expr, count: int) -> Expr:
    """Return (batch, time, heads times width) as (batch, heads, time, width)."""
    return relay.transpose(relay.reshape(x, (0, 0, count, -1)), axes=[0, 2, 1, 3])


def join_heads(x: Expr) -> Expr:
    """Return (batch, heads, time, width) as (batch, time, heads times width)."""
    return relay.reshape(relay.transpose(x, axes=[0, 2, 1, 3]), (0, 0, -3))


def length_of(ctx: ImportContext, x: Expr, axis: int) -> Expr:
    """Return the length of an axis as a scalar of int32."""
    length = ctx.dim_at(x, axis)
    if isinstance(length, int):
        return const_int32(length)
    shape = relay.shape_of(x, dtype="int32")
    return relay.take(shape, const_int32(axis), axis=0, mode="fast")


def arange_like(ctx: ImportContext, x: Expr, axis: int) -> Expr:
    """Return 0, 1, ... along an axis as a vector of int32."""
    length = ctx.dim_at(x, axis)
    if isinstance(length, int):
        return relay.const(arange(length, dtype=np.int32))
    return relay.arange(const_int32(0), length_of(ctx, x, axis), const_int32(1), dtype="int32")


@dataclass(frozen=True)
class ImplicitMask:
    """The part of an attention mask that follows a rule; query ``i`` is at position ``offset + i``.

    Attributes:
        causal: Whether keys behind the position of the query are hidden.
        offset: Keys before the first query: a scalar of int32, or one for each sample; None is 0.
        lengths: Keys that each sample has, of int32, or None for all.
        left: How many keys before its position a query sees, or None for all.
        right: How many behind it, or None for all.
    """

    causal: bool = False
    offset: Expr | None = None
    lengths: Expr | None = None
    left: int | None = None
    right: int | None = None

    @property
    def is_causal_only(self) -> bool:
        """Whether the operator itself says all of it."""
        parts = (self.offset, self.lengths, self.left, self.right)
        return all(each is None for each in parts)

    def build(self, ctx: ImportContext, query: Expr, key: Expr) -> Expr | None:
        """Return the mask as bool, of rank 2 or 4; None if nothing is hidden."""
        keys = arange_like(ctx, key, 2)
        found = []
        if self.causal or self.left is not None or self.right is not None:
            rows = relay.expand_dims(arange_like(ctx, query, 2), axis=1)
            if self.offset is not None:
                offset = self.offset
                if ctx.type(offset).rank:
                    offset = relay.expand_dims(offset, axis=1, num_newaxis=3)
                rows = relay.add(rows, offset)
            ahead = relay.subtract(keys, rows)
            bounds = [0] if self.causal else []
            bounds += [] if self.right is None else [self.right]
            found += [relay.less_equal(ahead, const_int32(b)) for b in bounds]
            if self.left is not None:
                found.append(relay.greater_equal(ahead, const_int32(-self.left)))
        if self.lengths is not None:
            counts = relay.expand_dims(self.lengths, axis=1, num_newaxis=3)
            found.append(relay.less(keys, counts))
        if not found:
            return None
        whole = found[0]
        for each in found[1:]:
            whole = relay.logical_and(whole, each)
        return whole


def combine_masks(ctx: ImportContext, mask: Expr | None, allowed: Expr | None) -> Expr | None:
    """Return a mask in which what is not allowed is hidden, too."""
    if mask is None or allowed is None:
        return allowed if mask is None else mask
    if ctx.type(mask).dtype == "bool":
        return relay.logical_and(mask, allowed)
    return relay.where(allowed, mask, scalar_like(ctx, mask, -np.inf))


def attend(
    ctx: ImportContext,
    query: Expr,
    key: Expr,
    value: Expr,
    mask: Expr | None,
    implicit: ImplicitMask,
    *,
    scale: float | None = None,
    softcap: float | None = None,
) -> Expr:
    """Return attention over heads; arguments as of the operator ``serde.attention``."""
    whole = mask
    if not implicit.is_causal_only:
        allowed = implicit.build(ctx, query, key)
        whole = combine_masks(ctx, mask, allowed)
        implicit = replace(implicit, causal=False)
    return call(
        "serde.attention",
        query,
        key,
        value,
        whole,
        scale=scale,
        is_causal=implicit.causal,
        softcap=softcap or None,
    )


def pad_mask(ctx: ImportContext, mask: Expr, key: Expr) -> Expr:
    """Return a mask whose rows are as long as there are keys: what it lacks is hidden."""
    row, keys = ctx.dim_at(mask, -1), ctx.dim_at(key, 2)
    if row == keys or isinstance(row, Any) or isinstance(keys, Any):
        return mask
    if not isinstance(row, int) or not isinstance(keys, int):
        raise Unsupported(f"a mask for {row} keys of {keys}")
    missing = [(0, 0)] * (ctx.type(mask).rank - 1) + [(0, keys - row)]
    if ctx.type(mask).dtype == "bool":
        padded = relay.nn.pad(relay.cast(mask, "int32"), missing, 0)
        return relay.cast(padded, "bool")
    return relay.nn.pad(mask, missing, scalar_like(ctx, mask, -np.inf))
