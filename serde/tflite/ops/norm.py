"""Normalisation over channels, which are the last axis."""

from __future__ import annotations

import serde.relay as relay
from serde.relay.ir import Expr
from serde.tflite.ops.table import OPS, Import

_LEAST = 1e-6
"""The norm that the kernels divide by at least."""


@OPS.imports("L2_NORMALIZATION")
def import_l2_normalization(ctx: Import, x: Expr, *, fused_activation_function: int = 0) -> Expr:
    dtype = ctx.type(x).dtype
    norm = relay.sqrt(relay.sum(relay.multiply(x, x), axis=-1, keepdims=True))
    found = relay.divide(x, relay.maximum(norm, ctx.const(_LEAST, dtype)))
    return ctx.activated(found, fused_activation_function)


@OPS.imports("LOCAL_RESPONSE_NORMALIZATION")
def import_local_response_normalization(
    ctx: Import,
    x: Expr,
    *,
    radius: int = 0,
    bias: float = 0.0,
    alpha: float = 0.0,
    beta: float = 0.0,
) -> Expr:
    """`alpha` holds for each channel, and is not divided by how many there are."""
    size = 2 * radius + 1
    axis = ctx.rank(x) - 1
    return relay.nn.lrn(x, size=size, axis=axis, bias=bias, alpha=alpha * size, beta=beta)
