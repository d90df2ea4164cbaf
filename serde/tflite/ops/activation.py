"""Activations."""

from __future__ import annotations

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.tflite.import_context import ImportContext
from serde.tflite.ops.table import OPS
from serde.walk.pairs import pair

OPS.pairs(
    pair("RELU", "nn.relu"),
    pair("LOGISTIC", "sigmoid"),
    pair("TANH", "tanh"),
    pair("HARD_SWISH", "serde.hard_swish"),
    pair("LEAKY_RELU", "nn.leaky_relu", alpha=0.0),
    pair("LOG_SOFTMAX", "nn.log_softmax"),
)


@OPS.imports("ELU")
def import_elu(ctx: ImportContext, x: Expr) -> Expr:
    return relay.serde.elu(x)


@OPS.imports("RELU6")
def import_relu6(ctx: ImportContext, x: Expr) -> Expr:
    return relay.clip(x, 0.0, 6.0)


@OPS.imports("RELU_N1_TO_1")
def import_relu_n1_to_1(ctx: ImportContext, x: Expr) -> Expr:
    return relay.clip(x, -1.0, 1.0)


@OPS.imports("RELU_0_TO_1")
def import_relu_0_to_1(ctx: ImportContext, x: Expr) -> Expr:
    return relay.clip(x, 0.0, 1.0)


@OPS.imports("GELU")
def import_gelu(ctx: ImportContext, x: Expr, *, approximate: bool = False) -> Expr:
    return relay.serde.gelu(x, "tanh" if approximate else "none")


@OPS.imports("PRELU")
def import_prelu(ctx: ImportContext, x: Expr, alpha: Expr) -> Expr:
    """The slope broadcasts from the last axis on."""
    zero = ctx.const(0, ctx.type(x).dtype)
    return relay.where(relay.less(x, zero), relay.multiply(x, alpha), x)


@OPS.imports("SOFTMAX")
def import_softmax(ctx: ImportContext, x: Expr, *, beta: float = 0.0) -> Expr:
    scaled = x if beta == 1 else relay.multiply(x, ctx.const(beta, ctx.type(x).dtype))
    return relay.nn.softmax(scaled)
