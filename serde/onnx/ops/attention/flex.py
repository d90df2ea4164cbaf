"""Attention whose scores and weights go through graphs of the user's."""

from __future__ import annotations

import math

import onnx

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.attention.heads import ImplicitMask, attend
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.linalg.product import build_matmul
from serde.onnx.ops.table import PREVIEW
from serde.relay.ir.expr import Expr


@PREVIEW.imports("FlexAttention")
def import_flex_attention(
    ctx: ImportContext,
    q: Expr,
    k: Expr,
    v: Expr,
    *,
    prob_mod: onnx.GraphProto | None = None,
    scale: float | None = None,
    score_mod: onnx.GraphProto | None = None,
    softmax_precision: int | None = None,
) -> Expr:
    """Without graphs it is attention as it is everywhere."""
    dtype = ctx.type(q).dtype
    wide = "float64" if dtype == "float64" else "float32"
    if softmax_precision is not None:
        wide = ctx.dtype(softmax_precision)
    if score_mod is None and prob_mod is None and wide in (dtype, "float32"):
        return attend(ctx, q, k, v, None, ImplicitMask(), scale=scale)
    heads, width = ctx.static_lengths(q, [1, 3])
    (groups,) = ctx.static_lengths(k, [1])
    if heads % groups:
        raise Unsupported(f"{heads} heads of queries for {groups} of keys")
    if heads != groups:
        k, v = (relay.repeat(each, heads // groups, axis=1) for each in (k, v))
    product = build_matmul(ctx, q, relay.transpose(k, axes=[0, 1, 3, 2]))
    factor = scalar_like(ctx, q, 1 / math.sqrt(width) if scale is None else scale)
    scores = relay.cast(relay.multiply(product, factor), wide)
    if score_mod is not None:
        (scores,) = ctx.subgraph(score_mod, scores, label="score_mod")
    weights = relay.nn.softmax(scores, axis=-1)
    if prob_mod is not None:
        (weights,) = ctx.subgraph(prob_mod, weights, label="prob_mod")
    return build_matmul(ctx, relay.cast(weights, dtype), v)
