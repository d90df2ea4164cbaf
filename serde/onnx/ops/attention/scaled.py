"""Scaled dot-product attention as one operator."""

from __future__ import annotations

import math

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.attention.heads import (
    ImplicitMask,
    attend,
    combine_masks,
    join_heads,
    length_of,
    pad_mask,
    split_heads,
)
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.linalg.product import build_matmul
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Any
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.types import TensorType


def _has_known_lengths(node: Call) -> bool:
    """A mask has a row for each query and a column for each key, so their numbers must be known."""
    query, key, _, mask = (argument.type for argument in node.args)
    if not isinstance(mask, TensorType) or not isinstance(query, TensorType):
        return True
    known = isinstance(key, TensorType) and not isinstance(key.shape[2], Any)
    return known and not isinstance(query.shape[2], Any)


def _expand_mask(ctx: ExportContext, query: Value, key: Value, mask: Value | None) -> Value | None:
    """ONNX pads a row that is too short, and ONNX Runtime repeats neither rows nor columns."""
    if mask is None:
        return None
    plane = (ctx.type(query).shape[2], ctx.type(key).shape[2])
    if ctx.type(mask).shape[-2:] == plane:
        return mask
    return ctx.emit("Expand", mask, ctx.shape(plane))


@OPS.exports("serde.attention", since=23, when=_has_known_lengths)
def export_attention(
    ctx: ExportContext,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    *,
    scale: float | None,
    is_causal: bool,
    softcap: float | None,
) -> Value:
    return ctx.emit(
        "Attention",
        query,
        key,
        value,
        _expand_mask(ctx, query, key, mask),
        scale=scale,
        is_causal=int(is_causal) or None,
        softcap=softcap,
    )


@OPS.imports("Attention", since=(23, 24, 25), ignored=("softmax_precision",))
def import_attention(
    ctx: ImportContext,
    q: Expr,
    k: Expr,
    v: Expr,
    attn_mask: Expr | None = None,
    past_key: Expr | None = None,
    past_value: Expr | None = None,
    nonpad_kv_seqlen: Expr | None = None,
    *,
    is_causal: bool = False,
    kv_num_heads: int = 0,
    q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    left_window_size: int = -1,
    right_window_size: int = -1,
) -> list[Expr]:
    """Tensors of rank 3 have their heads on the last axis; what is cached comes first."""
    flat = ctx.type(q).rank == 3
    if flat and not (q_num_heads and kv_num_heads):
        raise Unsupported("tensors of rank 3 without q_num_heads and kv_num_heads")
    if flat:
        q = split_heads(q, q_num_heads)
        k, v = split_heads(k, kv_num_heads), split_heads(v, kv_num_heads)
    offset = None
    if past_key is not None and past_value is not None:
        offset = length_of(ctx, past_key, 2)
        k = relay.concatenate([past_key, k], axis=2)
        v = relay.concatenate([past_value, v], axis=2)
    lengths = None
    if nonpad_kv_seqlen is not None:
        lengths = relay.cast(nonpad_kv_seqlen, "int32")
        offset = relay.subtract(lengths, length_of(ctx, q, 2))
    left, right = (None if w < 0 else w for w in (left_window_size, right_window_size))
    bounded = is_causal or left is not None or right is not None
    implicit = ImplicitMask(is_causal, offset if bounded else None, lengths, left, right)
    mask = None if attn_mask is None else pad_mask(ctx, attn_mask, k)
    if mask is not None and ctx.type(mask).dtype not in ("bool", ctx.type(q).dtype):
        mask = relay.cast(mask, ctx.type(q).dtype)
    found = attend(ctx, q, k, v, mask, implicit, scale=scale, softcap=softcap)
    outputs = [join_heads(found) if flat else found, k, v]
    if ctx.wants(3):
        each = _Scores(ctx, q, k, scale, softcap or None)
        outputs.append(each.after(qk_matmul_output_mode, mask, implicit))
    return outputs


class _Scores:
    """What becomes of the products of queries and keys, as Attention can yield it."""

    def __init__(
        self, ctx: ImportContext, query: Expr, key: Expr, scale: float | None, softcap: float | None
    ) -> None:
        heads, groups = (ctx.static_lengths(x, [1])[0] for x in (query, key))
        shared = key if heads == groups else relay.repeat(key, heads // groups, axis=1)
        (width,) = ctx.static_lengths(query, [3])
        factor = 1 / math.sqrt(width) if scale is None else scale
        products = build_matmul(ctx, query, relay.transpose(shared, axes=[0, 1, 3, 2]))
        self.ctx, self.query, self.key, self.softcap = ctx, query, key, softcap
        self.products = relay.multiply(products, scalar_like(ctx, query, factor))

    def after(self, mode: int, mask: Expr | None, implicit: ImplicitMask) -> Expr:
        """Return the products, or after the soft cap (1), the mask (2) or the softmax (3)."""
        ctx, found = self.ctx, self.products
        if self.softcap is not None:
            cap = scalar_like(ctx, found, self.softcap)
            found = relay.multiply(relay.tanh(relay.divide(found, cap)), cap)
        if mode < 2:
            return found
        whole = combine_masks(ctx, mask, implicit.build(ctx, self.query, self.key))
        never = scalar_like(ctx, found, -np.inf)
        if whole is not None and ctx.type(whole).dtype == "bool":
            found = relay.where(whole, found, never)
        elif whole is not None:
            found = relay.add(found, whole)
        if mode == 2:
            return found
        alive = relay.greater(relay.max(found, axis=-1, keepdims=True), never)
        zero = scalar_like(ctx, found, 0)
        weights = relay.nn.softmax(relay.where(alive, found, zero), axis=-1)
        return relay.where(alive, weights, zero)
