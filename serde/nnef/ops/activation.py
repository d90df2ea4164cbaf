"""Activations."""

from __future__ import annotations

from typing import Any as AnyValue

import serde.relay as relay
from serde.errors import Unsupported
from serde.nnef.export_context import EXACT, is_exact
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.relay.ir.expr import Expr
from serde.walk import FLOATS, Takes, pair, reads


@OPS.imports("softabs")
def import_softabs(ctx: Import, x: Expr, *, epsilon: float) -> Expr:
    return relay.sqrt(relay.add(relay.multiply(x, x), ctx.const(epsilon)))


@OPS.imports("softmax")
def import_softmax(ctx: Import, x: Expr, *, axes: tuple[int, ...] = (1,)) -> Expr:
    if len(axes) == 1:
        return relay.nn.softmax(x, axis=axes[0])
    power = relay.exp(relay.subtract(x, relay.max(x, axis=axes, keepdims=True)))
    return relay.divide(power, relay.sum(power, axis=axes, keepdims=True))


@OPS.exports("nn.softmax", "nn.fast_softmax")
def export_softmax(ctx: Export, data: Value, *, axis: int) -> Value:
    return ctx.emit("softmax", data, axes=[_positive_axis(ctx, data, axis)])


def _positive_axis(ctx: Export, data: Value, axis: int) -> int:
    rank = ctx.type(data).rank
    if not rank:
        raise Unsupported("softmax of a scalar")
    return axis % rank


@OPS.exports("serde.selu", takes=Takes(alpha=EXACT, gamma=EXACT))
def export_selu(ctx: Export, data: Value, *, alpha: float, gamma: float) -> Value:
    attributes: dict[str, AnyValue] = {"alpha": alpha, "lambda": gamma}
    return ctx.emit("selu", data, **attributes)


@OPS.exports("nn.leaky_relu")
def export_leaky_relu(ctx: Export, data: Value, *, alpha: float) -> Value:
    dtype = ctx.type(data).dtype
    if is_exact(dtype, alpha):
        return ctx.emit("leaky_relu", data, alpha=alpha)
    return ctx.emit("prelu", data, ctx.const(alpha, dtype))


@OPS.imports("prelu")
def import_prelu(ctx: Import, x: Expr, alpha: Expr) -> Expr:
    """One slope along an axis is a layer of Relay; others broadcast."""
    data, slopes = ctx.type(x), ctx.type(alpha).shape
    long = [axis for axis, length in enumerate(slopes) if length != 1]
    axis = long[0] if long else 1
    if len(long) < 2 and axis < len(slopes) <= data.rank and slopes[axis] == data.shape[axis]:
        return relay.nn.prelu(x, ctx.fold(relay.reshape(alpha, (slopes[axis],))), axis=axis)
    x, alpha = ctx.align(x, alpha)
    zero = ctx.const(0, data.dtype)
    return relay.where(relay.less(x, zero), relay.multiply(alpha, x), x)


@OPS.exports("nn.prelu")
def export_prelu(ctx: Export, data: Value, alpha: Value, *, axis: int) -> Value:
    axis %= ctx.type(data).rank
    shape = (*(1 for _ in range(axis)), *ctx.static_shape(alpha))
    return ctx.emit("prelu", data, ctx.reshape(alpha, shape))


OPS.pairs(
    pair("relu", "nn.relu", takes=Takes(data=FLOATS)),
    pair("softplus", "serde.softplus"),
    pair("elu", "serde.elu", alpha=1.0, takes=Takes(alpha=EXACT)),
    reads("selu", "serde.selu", alpha=1.67326319, lambda_=1.05070102, renamed={"lambda_": "gamma"}),
    # ``x * Phi(x)``, which the standard calls exact; what its body has approximates that.
    pair("gelu", "serde.gelu", fixed={"approximate": "none"}),
    pair("silu", "serde.silu"),
    reads("leaky_relu", "nn.leaky_relu", "alpha"),
)
