"""Activations."""

from __future__ import annotations

from functools import partial
from typing import Final

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relax.precision import compute_wide, make_wide_expansion
from serde.relay.ir import Call, Expr, call, is_float, tensor_type
from serde.walk import FLOATS, Takes, pair, reads

_LAYERS: Final = {
    "nn.softmax": "nn.softmax",
    "nn.fast_softmax": "nn.softmax",
    "nn.log_softmax": "nn.log_softmax",
}

_WIDENED: Final = (
    "serde.celu", "serde.elu", "serde.hard_sigmoid", "serde.hard_swish", "serde.log_sigmoid",
    "serde.selu", "serde.softsign", "serde.swiglu", "serde.swish",
)  # fmt: skip
"""What Relax has no operator for."""

_SELU: Final = {"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}
"""The numbers for which Relax has selu."""

for _name in _WIDENED:
    OPS.expands(_name)(make_wide_expansion(_name))


def _decompose_mish(data: Expr) -> Expr:
    """Return x * n / (n + 2) with n = exp(x) * (exp(x) + 2), which keeps its digits far below 0.

    Where n is large the quotient is one, so that what overflows need not be computed.
    """
    dtype = tensor_type(data).dtype
    most, two = relay.const(40.0 if dtype == "float64" else 20.0, dtype), relay.const(2, dtype)
    grown = relay.exp(relay.minimum(data, most))
    part = relay.multiply(grown, relay.add(grown, two))
    return relay.multiply(data, relay.divide(part, relay.add(part, two)))


OPS.expands("serde.mish")(make_wide_expansion("serde.mish", _decompose_mish))


def _export_softmax(ctx: Export, data: Value, *, op: str, axis: int) -> Value:
    return compute_wide(ctx, lambda x: ctx.emit(op, x, axis=axis), data)


for _name, _op in _LAYERS.items():
    OPS.exports(_name)(partial(_export_softmax, op=_op))


def _has_known_channels(node: Call) -> bool:
    """TVM needs to know how many channels there are, and floats that are not brain floats."""
    type_ = tensor_type(node.args[0])
    known = is_float(type_.dtype) and type_.dtype != "bfloat16"
    return known and isinstance(type_.shape[node.attrs["axis"]], int)


@OPS.exports("nn.prelu", when=_has_known_channels)
def export_prelu(ctx: Export, data: Value, alpha: Value, *, axis: int) -> Value:
    return ctx.emit("nn.prelu", data, alpha, axis=axis % ctx.type(data).rank)


@OPS.imports("relax.nn.prelu")
def import_prelu(ctx: Import, data: Expr, alpha: Expr, *, axis: int) -> Expr:
    """One slope stands for all channels."""
    length = ctx.type(data).shape[axis]
    if ctx.type(alpha).shape == (1,) and length != 1:
        scaled = relay.multiply(data, alpha)
        return relay.where(relay.greater(data, ctx.like(data, 0)), data, scaled)
    return relay.nn.prelu(data, alpha, axis=axis)


@OPS.exports("serde.silu")
def export_silu(ctx: Export, data: Value) -> Value:
    return compute_wide(ctx, lambda x: ctx.emit("nn.silu", x), data)


@OPS.exports("serde.softplus")
def export_softplus(ctx: Export, data: Value) -> Value:
    """From the threshold on it is the identity, as exactly as the dtype tells."""
    threshold = 40.0 if ctx.type(data).dtype == "float64" else 20.0
    return compute_wide(ctx, lambda x: ctx.emit("nn.softplus", x, threshold=threshold), data)


@OPS.imports("relax.nn.softplus")
def import_softplus(ctx: Import, data: Expr, *, beta: float, threshold: float) -> Expr:
    """Above the threshold it is the identity, as rounding has it from 20 on."""
    if beta == 0:
        raise Unsupported("beta=0.0 divides by zero")
    scaled = data if beta == 1 else relay.multiply(data, ctx.like(data, beta))
    grown = call("serde.softplus", scaled)
    found = grown if beta == 1 else relay.divide(grown, ctx.like(data, beta))
    if threshold >= 20 and ctx.dtype(data) in ("float16", "float32", "bfloat16"):
        return found
    return relay.where(relay.greater(scaled, ctx.like(data, threshold)), data, found)


@OPS.exports("serde.selu", takes=Takes(**_SELU))
def export_selu(ctx: Export, data: Value) -> Value:
    return compute_wide(ctx, lambda x: ctx.emit("nn.selu", x), data)


@OPS.exports("serde.gelu")
def export_gelu(ctx: Export, data: Value, *, approximate: str) -> Value:
    op = "nn.gelu" if approximate == "none" else "nn.gelu_tanh"
    return compute_wide(ctx, lambda x: ctx.emit(op, x), data)


@OPS.imports("relax.nn.dropout")
def import_dropout(ctx: Import, data: Expr, *, rate: float) -> tuple[Expr, Expr]:
    """The second result is the mask, all ones outside of training."""
    return relay.nn.dropout(data, rate=rate), relay.ones_like(data)


OPS.pairs(
    pair("relax.nn.relu", "nn.relu"),
    pair("relax.nn.leakyrelu", "nn.leaky_relu", "alpha", takes=Takes(data=FLOATS)),
    reads("relax.nn.gelu", "serde.gelu"),
    reads("relax.nn.gelu_tanh", "serde.gelu", fixed={"approximate": "tanh"}),
    reads("relax.nn.silu", "serde.silu"),
    reads("relax.nn.selu", "serde.selu"),
    reads("relax.nn.softmax", "nn.softmax", "axis"),
    reads("relax.nn.log_softmax", "nn.log_softmax", "axis"),
)
