"""Activations."""

from __future__ import annotations

from typing import Literal

import serde.relay as relay
from serde.coreml.layers.table import LAYERS
from serde.coreml.networks import LayerContext as Ctx
from serde.coreml.networks import number
from serde.coreml.parts import Part
from serde.errors import Unsupported
from serde.relay.expr import Expr
from serde.relay.registry import call

Gelu = Literal["EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION"]

PLAIN = {
    "ReLU": "nn.relu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "softsign": "serde.softsign",
    "softplus": "serde.softplus",
}
"""Functions without parameters: Relay's."""


@LAYERS.imports("activation")
def import_activation(ctx: Ctx, x: Expr, *, function: Part) -> Expr:
    """Vectors of parameters go along the third axis from the last."""
    kind = function.kind()
    if kind in PLAIN:
        return call(PLAIN[kind], x)
    parameters = function.part(kind) if kind else function
    if kind in ("PReLU", "parametricSoftplus"):
        channels = ctx.at_least(x, 3)[-3]
        alpha = _per_channel(ctx, parameters.part("alpha"), channels)
        if kind == "PReLU":
            return relay.where(relay.greater_equal(x, number(0)), x, relay.multiply(alpha, x))
        beta = _per_channel(ctx, parameters.part("beta"), channels)
        return relay.multiply(alpha, relay.serde.softplus(relay.multiply(beta, x)))
    found = parameters.fields()
    alpha_, beta_ = float(found.get("alpha", 0)), float(found.get("beta", 0))
    if kind == "linear":
        return relay.add(relay.multiply(x, number(alpha_)), number(beta_))
    if kind == "leakyReLU":
        return relay.nn.leaky_relu(x, alpha=alpha_)
    if kind == "thresholdedReLU":
        bound = number(alpha_)
        return relay.where(relay.greater_equal(x, bound), x, number(0))
    if kind == "scaledTanh":
        return relay.multiply(relay.tanh(relay.multiply(x, number(beta_))), number(alpha_))
    if kind == "sigmoidHard":
        return relay.serde.hard_sigmoid(x, alpha=alpha_, beta=beta_)
    if kind == "ELU":
        return relay.serde.elu(x, alpha=alpha_)
    raise Unsupported(f"function {kind or 'unknown'}")


def _per_channel(ctx: Ctx, part: Part, channels: object) -> Expr:
    length = ctx.length(part)
    if length not in (1, channels):
        raise Unsupported(f"{length} parameters for {channels} channels")
    return ctx.weight(part, (length, 1, 1))


@LAYERS.imports("softmax")
def import_softmax(ctx: Ctx, x: Expr) -> Expr:
    ctx.at_least(x, 3)
    return relay.nn.softmax(x, axis=-3)


@LAYERS.imports("softmaxND")
def import_softmax_nd(ctx: Ctx, x: Expr, *, axis: int = 0) -> Expr:
    return relay.nn.softmax(x, axis=axis)


@LAYERS.imports("gelu")
def import_gelu(ctx: Ctx, x: Expr, *, mode: Gelu = "EXACT") -> Expr:
    if mode == "SIGMOID_APPROXIMATION":
        return relay.serde.swish(x, alpha=1.702)
    return relay.serde.gelu(x, approximate="tanh" if mode == "TANH_APPROXIMATION" else "none")


@LAYERS.imports("clampedReLU")
def import_clamped_relu(ctx: Ctx, x: Expr, *, alpha: float = 0.0, beta: float = 0.0) -> Expr:
    return relay.minimum(relay.nn.leaky_relu(x, alpha=alpha), number(beta))
