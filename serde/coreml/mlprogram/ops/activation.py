"""Activations."""

from __future__ import annotations

from typing import Literal

import serde.relay as relay
from serde.coreml.mlprogram.ops.elementwise import like
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, as_dtype, is_float, tensor_type
from serde.walk.expansion.tensors import along
from serde.walk.pairs import pair, reads, writes
from serde.walk.takes import FLOATS as REALS, Takes

Gelu = Literal["EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION"]


@OPS.imports("clamped_relu", since=(1, 17))
def import_clamped_relu(ctx: Import, x: Expr, *, alpha: float, beta: float) -> Expr:
    return relay.minimum(relay.nn.leaky_relu(x, alpha=alpha), like(ctx, x, beta))


@OPS.imports("thresholded_relu", since=(1, 17))
def import_thresholded_relu(ctx: Import, x: Expr, *, alpha: float) -> Expr:
    """The threshold itself passes; in Relay, as in ONNX, it does not."""
    bound = like(ctx, x, alpha)
    return relay.where(relay.greater_equal(x, bound), x, like(ctx, x, 0))


@OPS.imports("prelu", since=(1, 17))
def import_prelu(ctx: Import, x: Expr, alpha: Expr) -> Expr:
    return relay.nn.prelu(x, as_dtype(alpha, ctx.type(x).dtype), axis=1)


def _has_channels(node: Call) -> bool:
    """MIL has slopes that are constants, one a channel, for tensors of four axes."""
    data, slopes = map(tensor_type, node.args)
    fits = data.rank == 4 and node.attrs["axis"] % 4 == 1 and slopes.shape == data.shape[1:2]
    return fits and is_float(data.dtype)


@OPS.imports("linear_activation", since=(1, 17))
def import_linear_activation(ctx: Import, x: Expr, *, alpha: float, beta: float) -> Expr:
    return relay.add(relay.multiply(x, like(ctx, x, alpha)), like(ctx, x, beta))


@OPS.imports("scaled_tanh", since=(1, 17))
def import_scaled_tanh(ctx: Import, x: Expr, *, alpha: float, beta: float) -> Expr:
    inner = relay.tanh(relay.multiply(x, like(ctx, x, beta)))
    return relay.multiply(inner, like(ctx, x, alpha))


@OPS.imports("softplus_parametric", since=(1, 17))
def import_softplus_parametric(ctx: Import, x: Expr, alpha: Expr, beta: Expr) -> Expr:
    """Factors lie along the second axis."""
    type_ = ctx.type(x)
    outer, inner = (along(as_dtype(each, type_.dtype), type_.rank, 1) for each in (alpha, beta))
    return relay.multiply(relay.serde.softplus(relay.multiply(x, inner)), outer)


QUICK = 1.702
"""With this factor a swish is known as the quick form of gelu."""


@OPS.imports("gelu")
def import_gelu(ctx: Import, x: Expr, *, mode: Gelu = "EXACT") -> Expr:
    if mode == "SIGMOID_APPROXIMATION":
        return relay.serde.swish(x, alpha=QUICK)
    return relay.serde.gelu(x, approximate="tanh" if mode == "TANH_APPROXIMATION" else "none")


@OPS.exports("serde.gelu")
def export_gelu(ctx: Export, data: Value, *, approximate: str) -> Value:
    mode: Gelu = "TANH_APPROXIMATION" if approximate == "tanh" else "EXACT"
    return ctx.emit("gelu", x=data, mode=mode)


@OPS.exports("serde.swish", takes=Takes(alpha=QUICK))
def export_swish(ctx: Export, data: Value) -> Value:
    return ctx.emit("gelu", x=data, mode="SIGMOID_APPROXIMATION")


OPS.pairs(
    writes("prelu", "nn.prelu", operands="x alpha", fixed={"axis": 1}, when=_has_channels),
    pair("relu", "nn.relu", takes=Takes(data=REALS)),
    reads("relu6", "clip", fixed={"a_min": 0.0, "a_max": 6.0}),
    pair("leaky_relu", "nn.leaky_relu", "alpha", since=(1, 17), takes=Takes(data=REALS)),
    pair("sigmoid_hard", "serde.hard_sigmoid", "alpha", "beta", since=(1, 17)),
    pair("elu", "serde.elu", "alpha", since=(1, 17)),
    pair("softmax", ("nn.softmax", "nn.fast_softmax"), axis=-1),
    pair("sigmoid", "sigmoid"),
    pair("silu", "serde.silu"),
    pair("softplus", "serde.softplus"),
    pair("softsign", "serde.softsign"),
)
