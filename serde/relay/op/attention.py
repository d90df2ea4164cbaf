"""Scaled dot-product attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, TensorType, UsuallyInRange, const, ranges, tensor_type, widen
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import broadcast, join_dim, require_float, require_same_dtype
from serde.relay.ir.work import pairs

__all__ = ["decompose_attention", "has_any", "scale_of"]


def _attention_type(
    query: TensorType,
    key: TensorType,
    value: TensorType,
    mask: TensorType | None,
    *,
    softcap: float | None,
    **_: AnyValue,
) -> TensorType:
    """Heads must be a multiple of key heads; rows, width and batch must agree."""
    require_float(query)
    dtype = require_same_dtype(query, key, value)
    if not query.rank == key.rank == value.rank == 4:
        raise TypeInferenceError(
            f"expected query, key and value of rank 4, found {query!r}, {key!r} and {value!r}"
        )
    if softcap is not None and softcap <= 0:
        raise TypeInferenceError(f"softcap {softcap} is not positive")
    try:
        batch = join_dim(join_dim(query.shape[0], key.shape[0]), value.shape[0])
        join_dim(key.shape[1], value.shape[1])
        keys = join_dim(key.shape[2], value.shape[2])
        join_dim(query.shape[3], key.shape[3])
    except TypeInferenceError as error:
        raise TypeInferenceError(f"{query!r}, {key!r} and {value!r} do not fit: {error}") from None
    heads, groups = query.shape[1], key.shape[1]
    if isinstance(heads, int) and isinstance(groups, int) and (not groups or heads % groups):
        raise TypeInferenceError(f"{heads} heads of the query do not share {groups} of the key")
    if keys == 0:
        raise TypeInferenceError("there are no keys to attend to")
    if mask is not None:
        _check_mask(mask, (batch, heads, query.shape[2], keys), dtype)
    return TensorType((batch, heads, query.shape[2], value.shape[3]), dtype)


def _check_mask(mask: TensorType, scores: tuple[Dim, ...], dtype: str) -> None:
    if mask.dtype not in ("bool", dtype):
        raise TypeInferenceError(f"expected a mask of bool or {dtype}, found {mask.dtype}")
    joint = broadcast(mask.shape, scores)
    fits = len(joint) == 4 and all(
        left == right or not (isinstance(left, int) and isinstance(right, int))
        for left, right in zip(joint, scores, strict=True)
    )
    if not fits:
        shown = ", ".join(map(str, scores))
        raise TypeInferenceError(f"a mask {mask!r} does not broadcast to ({shown})")


def _heads(x: Expr, operand: str) -> int:
    heads = tensor_type(x).shape[1]
    if not isinstance(heads, int):
        raise TypeInferenceError(f"{operand}: {heads} heads cannot be decomposed")
    return heads


def _reshape(x: Expr, *codes: int) -> Expr:
    return call("reshape", x, newshape=codes)


def _positions(x: Expr, axis: int) -> Expr:
    """Return the places along an axis, counted from one, as a vector of int32."""
    length = tensor_type(x).shape[axis]
    if isinstance(length, int):
        return const(np.arange(1, length + 1, dtype=np.int32))
    others = tuple(other for other in range(4) if other != axis)
    row = call("cast", call("sum", x, axis=others), dtype="int32")
    return call("cumsum", call("ones_like", row), axis=0)


def _scores(query: Expr, key: Expr, heads: int, groups: int) -> Expr:
    """Return products of every query and key; query heads of one key head are rows of one."""
    each = heads // groups
    if each == 1:
        rows = _reshape(query, -3, -2)
    else:
        rows = _reshape(_reshape(query, 0, -4, groups, each, -2), -3, -3, 0)
    product = call("nn.batch_matmul", rows, _reshape(key, -3, -2), transpose_b=True)
    return _by_head(product, groups, each)


def _by_head(product: Expr, groups: int, each: int) -> Expr:
    parted = _reshape(product, -4, -1, groups, -2)
    if each == 1:
        return parted
    return _reshape(_reshape(parted, 0, 0, -4, each, -1, 0), 0, -3, -2)


def _has_greatest(scores: Expr, never: Expr) -> Expr:
    return call("not_equal", call("max", scores, axis=(-1,), keepdims=True), never)


def has_any(scores: Expr, never: Expr) -> Expr:
    """Find rows with something else where a target's maximum of infinities alone is finite."""
    return call("any", call("not_equal", scores, never), axis=(-1,), keepdims=True)


def decompose_attention(
    query: Expr, key: Expr, value: Expr, mask: Expr | None,
    *, scale: float | None, is_causal: bool, softcap: float | None,
    find_alive: Callable[[Expr, Expr], Expr] = _has_greatest,
) -> Expr:  # fmt: skip
    """Return attention in plain Relay.

    Heads that share a key are joined with the rows of its batch matrix product.

    Args:
        query: As the operator's, like the others.
        key: Likewise.
        value: Likewise.
        mask: Likewise.
        scale: Likewise.
        is_causal: Likewise.
        softcap: Likewise.
        find_alive: Gets the masked products and minus infinity; returns in which rows there is
            something else, with an axis of length 1 for the last one.
    """
    dtype = tensor_type(query).dtype
    heads, groups = _heads(query, "query"), _heads(key, "key")
    factor = scale_of(tensor_type(query).shape[3], scale)
    scores = _scores(call("multiply", query, const(factor, dtype)), key, heads, groups)
    if softcap is not None:
        inner = call("tanh", call("divide", scores, const(softcap, dtype)))
        scores = call("multiply", inner, const(softcap, dtype))
    never = const(-np.inf, dtype)
    if mask is not None and tensor_type(mask).dtype == "bool":
        scores = call("where", mask, scores, never)
    elif mask is not None:
        scores = call("add", scores, mask)
    if is_causal:
        rows = call("expand_dims", _positions(query, 2), axis=1)
        scores = call("where", call("less_equal", _positions(key, 2), rows), scores, never)
    if mask is None:
        weights = call("nn.softmax", scores, axis=-1)
    else:
        alive = find_alive(scores, never)
        zero = const(0.0, dtype)
        weights = call("nn.softmax", call("where", alive, scores, zero), axis=-1)
        weights = call("where", alive, weights, zero)
    return _weigh_values(weights, value, groups, heads // groups)


def _weigh_values(weights: Expr, value: Expr, groups: int, each: int) -> Expr:
    if each == 1:
        rows = _reshape(weights, -3, -2)
    else:
        rows = _reshape(_reshape(weights, 0, -4, groups, each, -2), -3, -3, 0)
    return _by_head(call("nn.batch_matmul", rows, _reshape(value, -3, -2)), groups, each)


def scale_of(width: Dim, scale: float | None) -> float:
    """Return the factor of the products, one over the root of the width if None."""
    if scale is not None:
        return scale
    if not isinstance(width, int):
        raise TypeInferenceError(f"a head of {width} elements has no scale before the model runs")
    return 1 / math.sqrt(width)


@relay_op(
    "serde.attention",
    traits=(pairs(1), UsuallyInRange(ranges.boolean_mask)),
    infer=_attention_type,
    decompose=decompose_attention,
    samples=[
        sample((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7)),
        sample((2, 3, 4, 5), (2, 3, 4, 5), (2, 3, 4, 5), scale=0.25, is_causal=True),
        sample(
            (2, 6, 4, 5), (2, 2, 6, 5), (2, 2, 6, 7), tensor((2, 1, 4, 6), "bool"), is_causal=True
        ),
        sample((2, 4, 3, 5), (2, 2, 6, 5), (2, 2, 6, 5), (3, 6), softcap=0.75),
    ],
)
def attention(
    query: Array, key: Array, value: Array, mask: Array | None,
    *, scale: float | None = None, is_causal: bool = False, softcap: float | None = None,
) -> Array:  # fmt: skip
    """``y = softmax(scale * query @ key.T + mask) @ value`` (Vaswani, 2017).

    A query that may attend to nothing yields zeros, as in PyTorch and ONNX.

    Args:
        query: (batch, heads, queries, width).
        key: (batch, key heads, keys, width); heads are a multiple of key heads, and follow
            each other in groups that share one.
        value: (batch, key heads, keys, value width).
        mask: Of bool, what takes part; or of the dtype of the others, what is added to the
            products. It broadcasts to (batch, heads, queries, keys).
        scale: Factor of the products; one over the root of the width if None.
        is_causal: Whether the query at place i attends to the keys up to place i only.
        softcap: Products s become ``softcap * tanh(s / softcap)`` before the mask, if given.

    Returns:
        (batch, heads, queries, value width).
    """
    batch, heads, rows, width = query.shape
    grouped = widen(query).reshape(batch, key.shape[1], -1, rows, width)
    keys, values = (widen(x)[:, :, np.newaxis] for x in (key, value))
    scores = (grouped * scale_of(width, scale)) @ keys.swapaxes(-1, -2)
    scores = scores.astype(grouped.dtype).reshape(batch, heads, rows, -1)
    if softcap is not None:
        scores = (softcap * np.tanh(scores / softcap)).astype(grouped.dtype)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + widen(mask)
    if is_causal:
        scores = np.where(np.tri(rows, key.shape[2], dtype=bool), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    alive = top != -np.inf
    weights = np.exp(scores - np.where(alive, top, 0))
    weights = weights / np.where(alive, weights.sum(-1, keepdims=True), 1)
    result = weights.astype(grouped.dtype).reshape(*grouped.shape[:4], -1) @ values
    return result.reshape(batch, heads, rows, -1).astype(query.dtype, copy=False)
