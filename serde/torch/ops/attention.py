"""Attention: scaled dot products, and layers of several heads as PyTorch has them."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, call, same_length
from serde.torch.ops.norm.layer import import_layer_norm
from serde.torch.ops.table import OPS, Export, Import, Value

_OF_QUERIES, _OF_KEYS, _OF_ALL = range(3)
"""What a mask is of: (queries, keys), (batch, keys), or (batch, heads, queries, keys)."""


def _linear(x: Expr, weight: Expr, bias: Expr) -> Expr:
    return relay.nn.bias_add(relay.nn.dense(x, weight, units=None), bias, axis=-1)


def _split_heads(ctx: Import, x: Expr, heads: int) -> Expr:
    """Return (batch, heads, rows, width of a head)."""
    (width,) = ctx.static_lengths(x, [2])
    sizes = [ctx.size(x, 0), ctx.size(x, 1), heads, width // heads]
    split = relay.reshape(x, ctx.shape_vector(sizes))
    return relay.transpose(split, axes=[0, 2, 1, 3])


def _project(
    ctx: Import, given: tuple[Expr, Expr, Expr], weight: Expr, bias: Expr, heads: int
) -> list[Expr]:
    """Return queries, keys and values by heads; their weights lie behind each other."""
    weights = relay.split(weight, 3, axis=0)
    biases = relay.split(bias, 3, axis=0)
    return [
        _split_heads(ctx, _linear(x, weights[place], biases[place]), heads)
        for place, x in enumerate(given)
    ]


def _seen(ctx: Import, mask: Expr, mask_type: int | None) -> Expr:
    """Return where a mask lets keys be seen, broadcast to (batch, heads, queries, keys)."""
    hidden = mask
    if ctx.dtype(mask) != "bool":
        hidden = relay.not_equal(mask, ctx.scalar(0, ctx.dtype(mask)))
    rank = ctx.type(mask).rank
    if mask_type == _OF_KEYS and rank == 2:
        hidden = relay.expand_dims(hidden, axis=1, num_newaxis=2)
    elif mask_type == _OF_QUERIES and rank == 2:
        hidden = relay.expand_dims(hidden, axis=0, num_newaxis=2)
    elif rank != 4:
        raise Unsupported(f"a mask {ctx.type(mask)!r} of kind {mask_type}")
    return relay.logical_not(hidden)


def _weigh(ctx: Import, query: Expr, key: Expr, seen: Expr | None) -> Expr:
    """Return the weights of keys; those of a query that sees none are no numbers."""
    (width,) = ctx.static_lengths(query, [3])
    dtype = ctx.dtype(query)
    factor = ctx.scalar(1 / math.sqrt(width), dtype)
    keys = relay.transpose(key, axes=[0, 1, 3, 2])
    scores = call("serde.matmul", relay.multiply(query, factor), keys)
    if seen is None:
        return relay.nn.softmax(scores, axis=-1)
    low = ctx.scalar(-math.inf, dtype)
    return relay.nn.softmax(relay.where(seen, scores, low), axis=-1)


@OPS.imports("aten::_native_multi_head_attention")
def import_native_attention(
    ctx: Import, query: Expr, key: Expr, value: Expr, qkv_weight: Expr, qkv_bias: Expr,
    proj_weight: Expr, proj_bias: Expr, mask: Expr | None = None,
    *, embed_dim: int, num_head: int, need_weights: bool = True, average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Expr, Expr]:  # fmt: skip
    """A mask of floats hides what is not zero; there are weights only where they are asked for."""
    queries, keys, values = _project(ctx, (query, key, value), qkv_weight, qkv_bias, num_head)
    seen = None if mask is None else _seen(ctx, mask, mask_type)
    weights: Expr | None = None
    if need_weights or seen is not None:
        weights = _weigh(ctx, queries, keys, seen)
        found = call("serde.matmul", weights, values)
    else:
        found = call("serde.attention", queries, keys, values, None)
    rows = relay.transpose(found, axes=[0, 2, 1, 3])
    sizes = [ctx.size(query, 0), ctx.size(query, 1), embed_dim]
    joined = relay.reshape(rows, ctx.shape_vector(sizes))
    result = _linear(joined, proj_weight, proj_bias)
    if weights is None or not need_weights:
        return result, ctx.unread()
    return result, relay.mean(weights, axis=[1]) if average_attn_weights else weights


@OPS.imports("aten::_transformer_encoder_layer_fwd")
def import_encoder_layer(
    ctx: Import, src: Expr, qkv_weight: Expr, qkv_bias: Expr, proj_weight: Expr, proj_bias: Expr,
    norm_weight_1: Expr, norm_bias_1: Expr, norm_weight_2: Expr, norm_bias_2: Expr,
    ffn_weight_1: Expr, ffn_bias_1: Expr, ffn_weight_2: Expr, ffn_bias_2: Expr,
    mask: Expr | None = None,
    *, embed_dim: int, num_heads: int, use_gelu: bool, norm_first: bool, eps: float,
    mask_type: int | None = None,
) -> Expr:  # fmt: skip
    def normalise(x: Expr, weight: Expr, bias: Expr) -> Expr:
        return import_layer_norm(ctx, x, weight, bias, normalized_shape=(embed_dim,), eps=eps)

    entry = normalise(src, norm_weight_1, norm_bias_1) if norm_first else src
    attended, _ = import_native_attention(
        ctx, entry, entry, entry, qkv_weight, qkv_bias, proj_weight, proj_bias, mask,
        embed_dim=embed_dim, num_head=num_heads, need_weights=False, mask_type=mask_type,
    )  # fmt: skip
    x = relay.add(src, attended)
    if not norm_first:
        x = normalise(x, norm_weight_1, norm_bias_1)
    inner = normalise(x, norm_weight_2, norm_bias_2) if norm_first else x
    hidden = _linear(inner, ffn_weight_1, ffn_bias_1)
    hidden = call("serde.gelu", hidden) if use_gelu else relay.nn.relu(hidden)
    x = relay.add(x, _linear(hidden, ffn_weight_2, ffn_bias_2))
    return x if norm_first else normalise(x, norm_weight_2, norm_bias_2)


def _merge(ctx: Import, x: Expr, rank: int) -> Expr:
    """Return a tensor with four axes, those in front of the last three as one."""
    missing = rank - ctx.type(x).rank
    if missing > 0:
        x = relay.expand_dims(x, axis=0, num_newaxis=missing)
    if rank < 4:
        return relay.expand_dims(x, axis=0, num_newaxis=4 - rank)
    if rank == 4:
        return x
    tail = [ctx.size(x, axis) for axis in range(rank - 3, rank)]
    return relay.reshape(x, ctx.shape_vector([-1, *tail]))


def _broadcast_front(ctx: Import, x: Expr, front: list[int]) -> Expr:
    """Return a tensor whose first axes have given lengths."""
    rank = len(front) + 2
    missing = rank - ctx.type(x).rank
    if missing:
        x = relay.expand_dims(x, axis=0, num_newaxis=missing)
    shape = ctx.type(x).shape
    if list(shape[:-2]) == front:
        return x
    return relay.broadcast_to(x, (*front, *shape[-2:]))


def attend(
    ctx: Import, query: Expr, key: Expr, value: Expr, mask: Expr | None,
    *, dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
) -> Expr:  # fmt: skip
    """Return attention; all axes before the last two are batches, the last of them heads."""
    if dropout_p:
        raise Unsupported("attention that drops weights", hint="call eval() before")
    query, key, value = _align(ctx, query, key, value)
    rank = ctx.type(query).rank
    if rank == 3 and all(ctx.type(x).shape[0] == ctx.type(query).shape[0] for x in (key, value)):
        query, key, value = (relay.expand_dims(x, axis=1) for x in (query, key, value))
        if mask is not None and ctx.type(mask).rank == 3:
            mask = relay.expand_dims(mask, axis=1)
        found = attend(ctx, query, key, value, mask, is_causal=is_causal, scale=scale)
        return relay.squeeze(found, axis=[1])
    given = [_merge(ctx, x, rank) for x in (query, key, value)]
    if mask is not None:
        kind, dtype = ctx.dtype(mask), ctx.dtype(query)
        mask = mask if kind in ("bool", dtype) else ctx.cast(mask, dtype)
        mask = _arrange_mask(ctx, mask, query, rank)
    found = call("serde.attention", *given, mask, scale=scale, is_causal=is_causal)
    if rank < 4:
        return relay.squeeze(found, axis=list(range(4 - rank)))
    if rank == 4:
        return found
    head = [ctx.size(query, axis) for axis in range(rank - 1)]
    return relay.reshape(found, ctx.shape_vector([*head, ctx.size(value, -1)]))


def _align(ctx: Import, *operands: Expr) -> list[Expr]:
    """Return tensors whose batches are alike, but for heads of keys that queries share."""
    fronts = [ctx.type(x).shape[:-2] for x in operands]
    if all(len(front) == len(fronts[0]) and front[:-1] == fronts[0][:-1] for front in fronts):
        return list(operands)
    fixed = [[dim for dim in front if isinstance(dim, int)] for front in fronts]
    if any(len(a) < len(b) for a, b in zip(fixed, fronts, strict=True)):
        raise Unsupported(f"attention over batches of {fronts[0]} and {fronts[1]}")
    try:
        wanted = list(np.broadcast_shapes(*map(tuple, fixed)))
    except ValueError:
        raise Unsupported(f"attention over batches of {fronts[0]} and {fronts[1]}") from None
    return [_broadcast_front(ctx, x, wanted) for x in operands]


def _arrange_mask(ctx: Import, mask: Expr, query: Expr, rank: int) -> Expr:
    """Return a mask that broadcasts to (batch, heads, queries, keys)."""
    if rank <= 4:
        return mask
    lengths = ctx.static_lengths(query, range(rank - 2))
    plane = ctx.type(mask).shape[-2:]
    if ctx.type(mask).rank <= 3 or math.prod(ctx.static_shape(mask)[:-3]) == 1:
        return relay.reshape(mask, (1, 1, *plane)) if ctx.type(mask).rank == 2 else mask
    return _merge(ctx, _broadcast_front(ctx, mask, list(lengths)), rank)


def _log_sum(
    ctx: Import, query: Expr, key: Expr, mask: Expr | None, is_causal: bool, scale: float | None
) -> Expr:
    """Return the logarithm of the sum of a query's exponentials, in float32 at least."""
    (width,) = ctx.static_lengths(query, [-1])
    factor = 1 / math.sqrt(width) if scale is None else scale
    dtype = "float64" if ctx.dtype(query) == "float64" else "float32"
    left, right = ctx.cast(query, dtype), ctx.cast(key, dtype)
    transposed = relay.transpose(right, axes=[0, 1, 3, 2])
    scores = relay.multiply(call("serde.matmul", left, transposed), ctx.scalar(factor, dtype))
    never = ctx.scalar(-math.inf, dtype)
    if mask is not None:
        boolean = ctx.dtype(mask) == "bool"
        scores = (
            relay.where(mask, scores, never)
            if boolean
            else relay.add(scores, ctx.cast(mask, dtype))
        )
    if is_causal:
        rows, columns = ctx.static_lengths(scores, [2, 3])
        ones = relay.ones((rows, columns), "int32")
        seen = relay.cast(relay.trilu(ones, relay.const(0, "int32"), upper=False), "bool")
        scores = relay.where(seen, scores, never)
    return call("serde.logsumexp", scores, axis=[3])


def _import_attention(
    ctx: Import, query: Expr, key: Expr, value: Expr, attn_mask: Expr | None = None,
    *, dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, sums: bool,
) -> Expr | tuple[Expr, Expr]:  # fmt: skip
    """A kernel gives the logarithms of the sums, too."""
    found = attend(
        ctx, query, key, value, attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale
    )
    if not sums:
        return found
    return found, _log_sum(ctx, query, key, attn_mask, is_causal, scale)


OPS.imports("aten::scaled_dot_product_attention", ignored=("enable_gqa",))(
    partial(_import_attention, sums=False)
)
OPS.imports("aten::_scaled_dot_product_flash_attention_for_cpu")(
    partial(_import_attention, sums=True)
)


@OPS.imports(
    "aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_fused_attention_overrideable",
    ignored=("return_debug_mask", "compute_log_sumexp"),
)  # fmt: skip
def import_fused_attention(
    ctx: Import, query: Expr, key: Expr, value: Expr, attn_bias: Expr | None = None,
    *, dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
) -> tuple[Expr, ...]:  # fmt: skip
    """What follows the logarithms of the sums only training reads."""
    found = attend(
        ctx, query, key, value, attn_bias, dropout_p=dropout_p, is_causal=is_causal, scale=scale
    )
    rest = [ctx.unread() for _ in range(max(0, ctx.outputs - 2))]
    return found, _log_sum(ctx, query, key, attn_bias, is_causal, scale), *rest


@OPS.imports("aten::_scaled_dot_product_attention_math", ignored=("enable_gqa",))
def import_attention_math(
    ctx: Import, query: Expr, key: Expr, value: Expr, attn_mask: Expr | None = None,
    dropout_mask: Expr | None = None,
    *, dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
) -> tuple[Expr, Expr]:  # fmt: skip
    """The weights beside the result."""
    if dropout_mask is not None:
        raise Unsupported("attention that drops weights", hint="call eval() before")
    found = attend(
        ctx, query, key, value, attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale
    )
    columns = ctx.static_lengths(key, [-2])[0]
    eye = Constant(allocation.eye(columns).astype(numpy_dtype(ctx.dtype(query))))
    unit = relay.broadcast_to(eye, (*ctx.type(key).shape[:-1], columns))
    weights = attend(ctx, query, key, unit, attn_mask, is_causal=is_causal, scale=scale)
    return found, weights


@OPS.exports("serde.attention")
def export_attention(
    ctx: Export, query: Value, key: Value, value: Value, mask: Value | None,
    *, scale: float | None, is_causal: bool,
) -> Value:  # fmt: skip
    """PyTorch takes a mask or is causal; both become one mask."""
    options: dict[str, object] = {}
    if mask is not None and is_causal:
        options["attn_mask"] = ctx.call(ctx.helper("causal_mask"), query, key, mask)
    elif mask is not None:
        options["attn_mask"] = mask
    elif is_causal:
        options["is_causal"] = True
    if scale is not None:
        options["scale"] = scale
    if not same_length(ctx.type(query).shape[1], ctx.type(key).shape[1]):
        options["enable_gqa"] = True
    return ctx.call("F.scaled_dot_product_attention", query, key, value, **options)
