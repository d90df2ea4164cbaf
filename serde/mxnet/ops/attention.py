"""Attention in the parts that MXNet has it in: products of queries and keys, sums of values.

Heads are dealt out of the last axis, and the batch and the heads are one axis of what comes out.
"""

from __future__ import annotations

import math

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.shape.create import axis_indices
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir.expr import Expr
from serde.relay.lowering.lengths import length_of

__all__ = ["scores", "weighted"]

_ROWS, _COLUMNS = (1, 0, 2), (1, 2, 0)
"""(time, batch and head, width) as matrices with a row, or a column, a time."""


def _dealt(ctx: Import, x: Expr, heads: int, parts: int) -> tuple[list[Expr], int]:
    """Return the parts that a head holds side by side, and how wide each is.

    Args:
        ctx: The context.
        x: (time, batch, heads times parts times width).
        heads: How many heads there are.
        parts: How many parts: queries, keys and values, or some of them.

    Returns:
        Tensors of (time, batch times heads, width), and the width.
    """
    (last,) = ctx.static_lengths(x, [2])
    if heads < 1 or last % (heads * parts):
        raise Unsupported(f"an axis of {last} in {heads} heads of {parts} parts")
    width = last // (heads * parts)
    rows = relay.reshape(x, (0, -1, parts * width))
    return [rows] if parts == 1 else list(relay.split(rows, parts, axis=2)), width


def scores(ctx: Import, query: Expr, key: Expr, width: int) -> Expr:
    """Return the products of queries and keys, each of (time, batch times heads, width)."""
    queries = relay.transpose(query, _ROWS)
    scaled = relay.multiply(queries, scalar_like(ctx, queries, 1 / math.sqrt(width)))
    keys = relay.transpose(key, _COLUMNS)
    return relay.nn.batch_matmul(scaled, keys, transpose_b=False)


def weighted(attention: Expr, value: Expr, heads: int, width: int) -> Expr:
    """Return sums of values of (time, batch times heads, width), with the heads joined."""
    sums = relay.nn.batch_matmul(attention, relay.transpose(value, _ROWS), transpose_b=False)
    return relay.reshape(relay.transpose(sums, _ROWS), (0, -1, heads * width))


@OPS.imports("_contrib_interleaved_matmul_selfatt_qk")
def import_selfatt_qk(ctx: Import, queries_keys_values: Expr, *, heads: int) -> Expr:
    (query, key, _), width = _dealt(ctx, queries_keys_values, heads, 3)
    return scores(ctx, query, key, width)


@OPS.imports("_contrib_interleaved_matmul_selfatt_valatt")
def import_selfatt_valatt(
    ctx: Import, queries_keys_values: Expr, attention: Expr, *, heads: int
) -> Expr:
    (_, _, value), width = _dealt(ctx, queries_keys_values, heads, 3)
    return weighted(attention, value, heads, width)


@OPS.imports("_contrib_interleaved_matmul_encdec_qk")
def import_encdec_qk(ctx: Import, queries: Expr, keys_values: Expr, *, heads: int) -> Expr:
    (query,), width = _dealt(ctx, queries, heads, 1)
    (key, _), _ = _dealt(ctx, keys_values, heads, 2)
    return scores(ctx, query, key, width)


@OPS.imports("_contrib_interleaved_matmul_encdec_valatt")
def import_encdec_valatt(ctx: Import, keys_values: Expr, attention: Expr, *, heads: int) -> Expr:
    (_, value), width = _dealt(ctx, keys_values, heads, 2)
    return weighted(attention, value, heads, width)


@OPS.imports("_contrib_div_sqrt_dim")
def import_div_sqrt_dim(ctx: Import, data: Expr) -> Expr:
    """The root is rounded to the dtype of the data before it divides."""
    (last,) = ctx.static_lengths(data, [-1])
    root = scalar_like(ctx, data, math.sqrt(last))
    whole = np.issubdtype(np.dtype(ctx.type(data).dtype), np.integer)
    return relay.trunc_divide(data, root) if whole else relay.divide(data, root)


class _Window:
    """The keys that a query sees: those at most `w` steps before it, or as many behind it too.

    Args:
        ctx: The context.
        x: (batch, time, heads, ...).
        dilation: How long a step of each head is: (heads,).
        w: How many steps there are to a side.
        symmetric: Whether those behind are seen.
    """

    def __init__(self, ctx: Import, x: Expr, dilation: Expr, w: int, symmetric: bool) -> None:
        (self.heads,) = ctx.static_lengths(x, [2])
        self._x = x
        steps = relay.const(allocation.arange(-w, w + 1 if symmetric else 1, dtype=np.int32))
        away = relay.multiply(relay.expand_dims(relay.cast(dilation, "int32"), 1), steps)
        self.own = relay.expand_dims(axis_indices(ctx, x, 1), 1, 2)
        self.at = relay.add(self.own, away)

    def inside(self, end: Expr) -> Expr:
        """Return whether positions (time, heads, steps) are outside 0 to `end`."""
        zero = relay.const(np.int32(0))
        return relay.logical_and(relay.greater_equal(self.at, zero), relay.less(self.at, end))

    def end(self) -> Expr:
        """Return the number of times as a scalar."""
        return length_of(self._x, 1, "int32")

    def seen(self, x: Expr) -> Expr:
        """Return for (batch, time, heads, width) what each sees: an axis of steps before the last.

        A place out of range yields what stands at an end.
        """
        rows = relay.reshape(x, (0, -3, 0))
        last = relay.subtract(self.end(), relay.const(np.int32(1)))
        within = relay.minimum(relay.maximum(self.at, relay.const(np.int32(0))), last)
        number = relay.const(allocation.arange(self.heads, dtype=np.int32)[:, None])
        flat = relay.add(relay.multiply(within, relay.const(np.int32(self.heads))), number)
        return relay.take(rows, flat, axis=1, mode="fast")


@OPS.imports("_contrib_sldwin_atten_score")
def import_sldwin_atten_score(
    ctx: Import, query: Expr, key: Expr, dilation: Expr, *, w: int, symmetric: bool
) -> Expr:
    """Of MXNet after 1.9.1; a key out of range has a product of 0."""
    window = _Window(ctx, query, dilation, w, symmetric)
    products = relay.einsum([query, window.seen(key)], "bthd,bthwd->bthw")
    return relay.where(window.inside(window.end()), products, scalar_like(ctx, query, 0))


@OPS.imports("_contrib_sldwin_atten_context")
def import_sldwin_atten_context(
    ctx: Import, score: Expr, value: Expr, dilation: Expr, *, w: int, symmetric: bool
) -> Expr:
    """Of MXNet after 1.9.1; a value out of range does not count."""
    window = _Window(ctx, value, dilation, w, symmetric)
    kept = relay.where(window.inside(window.end()), score, scalar_like(ctx, score, 0))
    return relay.einsum([kept, window.seen(value)], "bthw,bthwd->bthd")


@OPS.imports("_contrib_sldwin_atten_mask_like")
def import_sldwin_atten_mask_like(
    ctx: Import, score: Expr, dilation: Expr, valid_length: Expr, *, w: int, symmetric: bool
) -> Expr:
    """Of MXNet after 1.9.1: 1 where both query and key are before the end of their sample."""
    window = _Window(ctx, score, dilation, w, symmetric)
    end = relay.expand_dims(relay.cast(valid_length, "int32"), 1, 3)
    seen = relay.logical_and(window.inside(end), relay.less(window.own, end))
    return relay.cast(seen, ctx.type(score).dtype)
