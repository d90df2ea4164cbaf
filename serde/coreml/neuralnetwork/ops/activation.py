"""Activations."""

from __future__ import annotations

from functools import partial
from typing import Any as AnyValue, Literal

import serde.relay as relay
from serde.coreml.neuralnetwork.import_context import number
from serde.coreml.neuralnetwork.message_view import MessageView
from serde.coreml.neuralnetwork.ops.table import LAYERS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Expr, call
from serde.walk.pairs import reads

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
def import_activation(ctx: Import, x: Expr, *, function: MessageView) -> Expr:
    """Vectors of parameters go along the third axis from the last."""
    kind = function.kind()
    if kind in PLAIN:
        return call(PLAIN[kind], x)
    parameters = function.submessage(kind) if kind else function
    if kind in ("PReLU", "parametricSoftplus"):
        channels = ctx.at_least(x, 3)[-3]
        alpha = _per_channel(ctx, parameters.submessage("alpha"), channels)
        if kind == "PReLU":
            return relay.where(relay.greater_equal(x, number(0)), x, relay.multiply(alpha, x))
        beta = _per_channel(ctx, parameters.submessage("beta"), channels)
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


def _per_channel(ctx: Import, part: MessageView, channels: object) -> Expr:
    length = ctx.length(part)
    if length not in (1, channels):
        raise Unsupported(f"{length} parameters for {channels} channels")
    return ctx.weight(part, (length, 1, 1))


@LAYERS.imports("softmax")
def import_softmax(ctx: Import, x: Expr) -> Expr:
    ctx.at_least(x, 3)
    return relay.nn.softmax(x, axis=-3)


@LAYERS.imports("gelu")
def import_gelu(ctx: Import, x: Expr, *, mode: Gelu = "EXACT") -> Expr:
    if mode == "SIGMOID_APPROXIMATION":
        return relay.serde.swish(x, alpha=1.702)
    return relay.serde.gelu(x, approximate="tanh" if mode == "TANH_APPROXIMATION" else "none")


@LAYERS.imports("clampedReLU")
def import_clamped_relu(ctx: Import, x: Expr, *, alpha: float = 0.0, beta: float = 0.0) -> Expr:
    return relay.minimum(relay.nn.leaky_relu(x, alpha=alpha), number(beta))


WITHOUT = {"relu": "ReLU", "sigmoid": "sigmoid", "softplus": "softplus", "softsign": "softsign"}
"""Operators of MIL without parameters, and the functions of a layer."""

WITH = {"elu": "ELU", "leaky_relu": "leakyReLU"}
"""Operators of MIL with a slope, and the functions of a layer."""


def _export_without(ctx: Export, x: Value, *, function: str) -> Value:
    fields: dict[str, AnyValue] = {function: {}}
    return ctx.layer("activation", x, **fields)


def _export_with(ctx: Export, x: Value, *, function: str, alpha: float) -> Value:
    fields: dict[str, AnyValue] = {function: {"alpha": alpha}}
    return ctx.layer("activation", x, **fields)


for _name, _function in WITHOUT.items():
    LAYERS.exports(_name)(partial(_export_without, function=_function))
for _name, _function in WITH.items():
    LAYERS.exports(_name)(partial(_export_with, function=_function))


@LAYERS.exports("sigmoid_hard")
def export_sigmoid_hard(ctx: Export, x: Value, *, alpha: float, beta: float) -> Value:
    return ctx.layer("activation", x, sigmoidHard={"alpha": alpha, "beta": beta})


@LAYERS.exports("prelu")
def export_prelu(ctx: Export, x: Value, alpha: Value) -> Value:
    """The axis of the slopes is the third from the last, which in an image is MIL's second."""
    return ctx.layer("activation", x, PReLU={"alpha": ctx.parameter(alpha)})


@LAYERS.exports("silu")
def export_silu(ctx: Export, x: Value) -> Value:
    gate = ctx.layer("activation", x, sigmoid={})
    return ctx.layer("multiplyBroadcastable", x, gate)


@LAYERS.exports("gelu")
def export_gelu(ctx: Export, x: Value, *, mode: Gelu = "EXACT") -> Value:
    return ctx.layer("gelu", x, mode=mode)


@LAYERS.exports("softmax")
def export_softmax(ctx: Export, x: Value, *, axis: int = -1) -> Value:
    return ctx.layer("softmaxND", x, axis=axis)


LAYERS.pairs(reads("softmaxND", "nn.softmax", axis=0))
