"""Activations."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.relay.ir import Call, Expr
from serde.tflite.ops.table import OPS, Export, Import, Value
from serde.walk import pair, reads

OPS.pairs(
    pair("RELU", "nn.relu"),
    pair(("LOGISTIC", "STABLEHLO_LOGISTIC"), "sigmoid"),
    pair(("TANH", "STABLEHLO_TANH"), "tanh"),
    pair("HARD_SWISH", "serde.hard_swish"),
    pair("LEAKY_RELU", "nn.leaky_relu", alpha=0.0),
    pair("LOG_SOFTMAX", "nn.log_softmax"),
    pair("ELU", "serde.elu", fixed={"alpha": 1.0}),
    reads("RELU6", "clip", fixed={"a_min": 0.0, "a_max": 6.0}),
    reads("RELU_N1_TO_1", "clip", fixed={"a_min": -1.0, "a_max": 1.0}),
    reads("RELU_0_TO_1", "clip", fixed={"a_min": 0.0, "a_max": 1.0}),
)


@OPS.imports("GELU")
def import_gelu(ctx: Import, x: Expr, *, approximate: bool = False) -> Expr:
    return relay.serde.gelu(x, "tanh" if approximate else "none")


@OPS.imports("PRELU")
def import_prelu(ctx: Import, x: Expr, alpha: Expr) -> Expr:
    """The slope broadcasts from the last axis on."""
    zero = ctx.const(0, ctx.type(x).dtype)
    return relay.where(relay.less(x, zero), relay.multiply(x, alpha), x)


@OPS.imports("SOFTMAX")
def import_softmax(ctx: Import, x: Expr, *, beta: float = 0.0) -> Expr:
    scaled = x if beta == 1 else relay.multiply(x, ctx.const(beta, ctx.type(x).dtype))
    return relay.nn.softmax(scaled)


@OPS.exports("nn.softmax")
def export_softmax(ctx: Export, data: Value, *, axis: int) -> Value:
    """It runs along the last axis; another is moved there."""
    rank = ctx.type(data).rank
    if axis % rank == rank - 1:
        return ctx.emit("SOFTMAX", data, beta=1.0)
    order = [i for i in range(rank) if i != axis % rank] + [axis % rank]
    back = tuple(order.index(i) for i in range(rank))
    return ctx.spell(
        lambda x: relay.transpose(relay.nn.softmax(relay.transpose(x, tuple(order))), back), data
    )


@OPS.exports("serde.gelu")
def export_gelu(ctx: Export, data: Value, *, approximate: str) -> Value:
    return ctx.emit("GELU", data, approximate=approximate == "tanh")


def _is_sixth(node: Call) -> bool:
    alpha, beta = node.attrs["alpha"], node.attrs["beta"]
    return bool(np.isclose(alpha, 1 / 6, rtol=1e-6)) and beta == 0.5


@OPS.exports("serde.hard_sigmoid", when=_is_sixth, ignored=("alpha", "beta"))
def export_hard_sigmoid(ctx: Export, data: Value) -> Value:
    """A sum that is limited from 0 to 6, and a sixth of it."""
    dtype = ctx.type(data).dtype
    found = ctx.emit("ADD", data, ctx.const(3, dtype), fused_activation_function=3)
    return ctx.emit("MUL", found, ctx.const(1 / 6, dtype), fused_activation_function=0)


@OPS.exports("nn.prelu")
def export_prelu(ctx: Export, data: Value, alpha: Value, *, axis: int) -> Value:
    """The slope broadcasts from the last axis on."""
    rank = ctx.type(data).rank
    ones = rank - 1 - axis % rank
    if ones:
        alpha = ctx.spell(lambda a: relay.expand_dims(a, axis=1, num_newaxis=ones), alpha)
    if rank - 1 - ones > 0 and ctx.type(alpha).rank < rank - 1:
        more = rank - 1 - ctx.type(alpha).rank
        alpha = ctx.spell(lambda a: relay.expand_dims(a, axis=0, num_newaxis=more), alpha)
    return ctx.emit("PRELU", data, alpha)
