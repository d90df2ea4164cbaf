"""Attention: of several heads, scaled, linear, and rotary position embeddings."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.core import arange, dataclass, replace
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import cast, const_int32, scalar_like
from serde.onnx.ops.linalg.product import build_matmul
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Any, Call, Expr, TensorType, TupleGetItem, call
from serde.relay.lowering.lengths import length_of


def split_heads(x: Expr, count: int) -> Expr:
    """Return (batch, time, heads times width) as (batch, heads, time, width)."""
    return relay.transpose(relay.reshape(x, (0, 0, count, -1)), axes=[0, 2, 1, 3])


def join_heads(x: Expr) -> Expr:
    """Return (batch, heads, time, width) as (batch, time, heads times width)."""
    return relay.reshape(relay.transpose(x, axes=[0, 2, 1, 3]), (0, 0, -3))


def arange_like(ctx: Import, x: Expr, axis: int) -> Expr:
    """Return 0, 1, ... along an axis as a vector of int32."""
    length = ctx.dim_at(x, axis)
    if isinstance(length, int):
        return relay.const(arange(length, dtype=np.int32))
    return relay.arange(const_int32(0), length_of(x, axis, "int32"), const_int32(1), dtype="int32")


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

    def build(self, ctx: Import, query: Expr, key: Expr) -> Expr | None:
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


def combine_masks(ctx: Import, mask: Expr | None, allowed: Expr | None) -> Expr | None:
    """Return a mask in which what is not allowed is hidden, too."""
    if mask is None or allowed is None:
        return allowed if mask is None else mask
    if ctx.type(mask).dtype == "bool":
        return relay.logical_and(mask, allowed)
    return relay.where(allowed, mask, scalar_like(ctx, mask, -np.inf))


def attend(
    ctx: Import, query: Expr, key: Expr, value: Expr, mask: Expr | None, implicit: ImplicitMask,
    *, scale: float | None = None, softcap: float | None = None,
) -> Expr:  # fmt: skip
    """Return attention over heads; arguments as of the operator ``serde.attention``."""
    whole = mask
    if not implicit.is_causal_only:
        allowed = implicit.build(ctx, query, key)
        whole = combine_masks(ctx, mask, allowed)
        implicit = replace(implicit, causal=False)
    return call(
        "serde.attention", query, key, value, whole, scale=scale, is_causal=implicit.causal,
        softcap=softcap or None,
    )  # fmt: skip


def pad_mask(ctx: Import, mask: Expr, key: Expr) -> Expr:
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


UpdateRule = Literal["linear", "gated", "delta", "gated_delta"]


@OPS.exports("serde.linear_attention", since=27)
def export_linear_attention(
    ctx: Export, query: Value, key: Value, value: Value, decay: Value | None, beta: Value | None,
    state: Value | None,
    *, num_heads: int, num_key_heads: int, scale: float | None,
) -> tuple[Value, ...]:  # fmt: skip
    """The rule that ONNX names follows from what is given."""
    names = [name for name, x in (("gated", decay), ("delta", beta)) if x is not None]
    return ctx.emit_tuple(
        "LinearAttention", query, key, value, state, decay, beta, outputs=2, q_num_heads=num_heads,
        kv_num_heads=num_key_heads, scale=scale, update_rule="_".join(names) or "linear",
    )  # fmt: skip


@OPS.imports("LinearAttention", since=27, ignored=("chunk_size",))
def import_linear_attention(
    ctx: Import, query: Expr, key: Expr, value: Expr, past_state: Expr | None = None,
    decay: Expr | None = None, beta: Expr | None = None,
    *, kv_num_heads: int, q_num_heads: int, scale: float = 0.0,
    update_rule: UpdateRule = "gated_delta",
) -> list[Expr]:  # fmt: skip
    """The size of a chunk bears on speed alone."""
    if (decay is not None) != ("gated" in update_rule):
        raise Unsupported(f"update_rule {update_rule!r} and decay do not go together")
    if (beta is not None) != ("delta" in update_rule):
        raise Unsupported(f"update_rule {update_rule!r} and beta do not go together")
    found = call(
        "serde.linear_attention", query, key, value, decay, beta, past_state, num_heads=q_num_heads,
        num_key_heads=kv_num_heads, scale=scale or None,
    )  # fmt: skip
    return [TupleGetItem(found, index) for index in range(2)]


def rotate(ctx: Import, x: Expr, cos: Expr, sin: Expr, *, width: int, interleaved: bool) -> Expr:
    """Return heads whose first elements are rotated: ``(a * cos - b * sin, a * sin + b * cos)``.

    Args:
        ctx: The context.
        x: (batch, heads, time, head width).
        cos: Cosines that broadcast to (batch, heads, time, width / 2).
        sin: Sines likewise.
        width: How many elements of a head are rotated.
        interleaved: Whether pairs are neighbours, rather than ``width / 2`` from each other.
    """
    (head,) = ctx.static_lengths(x, [3])
    half = width // 2
    cuts = ((0, width, 2), (1, width, 2)) if interleaved else ((0, half, 1), (half, width, 1))
    first, second = (
        relay.strided_slice(x, begin=[begin], end=[end], strides=[step], axes=[3])
        for begin, end, step in cuts
    )
    real = relay.subtract(relay.multiply(cos, first), relay.multiply(sin, second))
    imaginary = relay.add(relay.multiply(sin, first), relay.multiply(cos, second))
    if interleaved:
        pairs = relay.stack([real, imaginary], axis=-1)
        transposed = relay.reshape(pairs, (0, 0, 0, -3))
    else:
        transposed = relay.concatenate([real, imaginary], axis=3)
    if width == head:
        return transposed
    rest = relay.strided_slice(x, begin=[width], end=[head], strides=[1], axes=[3])
    return relay.concatenate([transposed, rest], axis=3)


@OPS.exports("serde.rotary_embedding", since=23)
def export_rotary_embedding(
    ctx: Export, data: Value, cos: Value, sin: Value, positions: Value | None,
    *, num_heads: int, rotary_dim: int, interleaved: bool,
) -> Value:  # fmt: skip
    if positions is not None and ctx.type(positions).dtype != "int64":
        positions = cast(ctx, positions, "int64")
    return ctx.emit(
        "RotaryEmbedding", data, cos, sin, positions, num_heads=num_heads or None,
        rotary_embedding_dim=rotary_dim or None, interleaved=int(interleaved) or None,
    )  # fmt: skip


@OPS.imports("RotaryEmbedding", since=23)
def import_rotary_embedding(
    ctx: Import, x: Expr, cos_cache: Expr, sin_cache: Expr, position_ids: Expr | None = None,
    *, interleaved: bool = False, num_heads: int = 0, rotary_embedding_dim: int = 0,
) -> Expr:  # fmt: skip
    return call(
        "serde.rotary_embedding", x, cos_cache, sin_cache, position_ids, num_heads=num_heads,
        rotary_dim=rotary_embedding_dim, interleaved=interleaved,
    )  # fmt: skip


def _has_known_lengths(node: Call) -> bool:
    """A mask has a row for each query and a column for each key, so their numbers must be known."""
    query, key, _, mask = (argument.type for argument in node.args)
    if not isinstance(mask, TensorType) or not isinstance(query, TensorType):
        return True
    known = isinstance(key, TensorType) and not isinstance(key.shape[2], Any)
    return known and not isinstance(query.shape[2], Any)


def _expand_mask(ctx: Export, query: Value, key: Value, mask: Value | None) -> Value | None:
    """ONNX pads a row that is too short, and ONNX Runtime repeats neither rows nor columns."""
    if mask is None:
        return None
    plane = (ctx.type(query).shape[2], ctx.type(key).shape[2])
    if ctx.type(mask).shape[-2:] == plane:
        return mask
    return ctx.emit("Expand", mask, ctx.shape(plane))


@OPS.exports("serde.attention", since=23, when=_has_known_lengths)
def export_attention(
    ctx: Export, query: Value, key: Value, value: Value, mask: Value | None,
    *, scale: float | None, is_causal: bool, softcap: float | None,
) -> Value:  # fmt: skip
    return ctx.emit(
        "Attention", query, key, value, _expand_mask(ctx, query, key, mask), scale=scale,
        is_causal=int(is_causal) or None, softcap=softcap,
    )  # fmt: skip


@OPS.imports("Attention", since=(23, 24, 25), ignored=("softmax_precision",))
def import_attention(
    ctx: Import, q: Expr, k: Expr, v: Expr, attn_mask: Expr | None = None,
    past_key: Expr | None = None, past_value: Expr | None = None,
    nonpad_kv_seqlen: Expr | None = None,
    *, is_causal: bool = False, kv_num_heads: int = 0, q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0, scale: float | None = None, softcap: float = 0.0,
    left_window_size: int = -1, right_window_size: int = -1,
) -> list[Expr]:  # fmt: skip
    """Tensors of rank 3 have their heads on the last axis; what is cached comes first."""
    flat = ctx.type(q).rank == 3
    if flat and not (q_num_heads and kv_num_heads):
        raise Unsupported("tensors of rank 3 without q_num_heads and kv_num_heads")
    if flat:
        q = split_heads(q, q_num_heads)
        k, v = split_heads(k, kv_num_heads), split_heads(v, kv_num_heads)
    offset = None
    if past_key is not None and past_value is not None:
        offset = length_of(past_key, 2, "int32")
        k = relay.concatenate([past_key, k], axis=2)
        v = relay.concatenate([past_value, v], axis=2)
    lengths = None
    if nonpad_kv_seqlen is not None:
        lengths = relay.cast(nonpad_kv_seqlen, "int32")
        offset = relay.subtract(lengths, length_of(q, 2, "int32"))
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
        self, ctx: Import, query: Expr, key: Expr, scale: float | None, softcap: float | None
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
