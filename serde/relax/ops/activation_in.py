"""Importers of activations."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call

__all__: list[str] = []


@OPS.imports("relax.nn.relu")
def import_relu(ctx: ImportContext, x: Expr) -> Expr:
    return relay.nn.relu(x)


@OPS.imports("relax.nn.leakyrelu")
def import_leakyrelu(ctx: ImportContext, data: Expr, *, alpha: float) -> Expr:
    return relay.nn.leaky_relu(data, alpha=alpha)


@OPS.imports("relax.nn.prelu")
def import_prelu(ctx: ImportContext, data: Expr, alpha: Expr, *, axis: int) -> Expr:
    """One slope stands for all channels."""
    length = ctx.type(data).shape[axis]
    if ctx.type(alpha).shape == (1,) and length != 1:
        scaled = relay.multiply(data, alpha)
        return relay.where(relay.greater(data, ctx.like(data, 0)), data, scaled)
    return relay.nn.prelu(data, alpha, axis=axis)


@OPS.imports("relax.nn.gelu")
def import_gelu(ctx: ImportContext, x: Expr) -> Expr:
    return call("serde.gelu", x)


@OPS.imports("relax.nn.gelu_tanh")
def import_gelu_tanh(ctx: ImportContext, x: Expr) -> Expr:
    return call("serde.gelu", x, approximate="tanh")


@OPS.imports("relax.nn.silu")
def import_silu(ctx: ImportContext, x: Expr) -> Expr:
    return call("serde.silu", x)


@OPS.imports("relax.nn.selu")
def import_selu(ctx: ImportContext, x: Expr) -> Expr:
    return call("serde.selu", x)


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


@OPS.imports("relax.nn.softmax")
def import_softmax(ctx: ImportContext, data: Expr, *, axis: int) -> Expr:
    return relay.nn.softmax(data, axis=axis)


@OPS.imports("relax.nn.log_softmax")
def import_log_softmax(ctx: ImportContext, data: Expr, *, axis: int) -> Expr:
    return relay.nn.log_softmax(data, axis=axis)


@OPS.imports("relax.nn.dropout")
def import_dropout(ctx: ImportContext, data: Expr, *, rate: float) -> tuple[Expr, Expr]:
    """The second result is the mask, all ones outside of training."""
    return relay.nn.dropout(data, rate=rate), relay.ones_like(data)
