"""Importers of activations."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.walk.pairs import reads

__all__: list[str] = []


@OPS.imports("relax.nn.prelu")
def import_prelu(ctx: ImportContext, data: Expr, alpha: Expr, *, axis: int) -> Expr:
    """One slope stands for all channels."""
    length = ctx.type(data).shape[axis]
    if ctx.type(alpha).shape == (1,) and length != 1:
        scaled = relay.multiply(data, alpha)
        return relay.where(relay.greater(data, ctx.like(data, 0)), data, scaled)
    return relay.nn.prelu(data, alpha, axis=axis)


@OPS.imports("relax.nn.softplus")
def import_softplus(ctx: ImportContext, data: Expr, *, beta: float, threshold: float) -> Expr:
    """Above the threshold it is the identity, as rounding has it from 20 on."""
    if beta == 0:
        raise Unsupported("beta=0.0 divides by zero")
    scaled = data if beta == 1 else relay.multiply(data, ctx.like(data, beta))
    grown = call("serde.softplus", scaled)
    found = grown if beta == 1 else relay.divide(grown, ctx.like(data, beta))
    if threshold >= 20 and ctx.dtype(data) in ("float16", "float32", "bfloat16"):
        return found
    return relay.where(relay.greater(scaled, ctx.like(data, threshold)), data, found)


@OPS.imports("relax.nn.dropout")
def import_dropout(ctx: ImportContext, data: Expr, *, rate: float) -> tuple[Expr, Expr]:
    """The second result is the mask, all ones outside of training."""
    return relay.nn.dropout(data, rate=rate), relay.ones_like(data)


OPS.pairs(
    reads("relax.nn.relu", "nn.relu"),
    reads("relax.nn.leakyrelu", "nn.leaky_relu", "alpha"),
    reads("relax.nn.gelu", "serde.gelu"),
    reads("relax.nn.gelu_tanh", "serde.gelu", fixed={"approximate": "tanh"}),
    reads("relax.nn.silu", "serde.silu"),
    reads("relax.nn.selu", "serde.selu"),
    reads("relax.nn.softmax", "nn.softmax", "axis"),
    reads("relax.nn.log_softmax", "nn.log_softmax", "axis"),
)
