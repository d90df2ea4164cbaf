"""Activations and softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.expr import Call
from serde.relay.shapes import is_float
from serde.relay.types import TensorType


@OPS.exports("nn.relu")
def export_relu(ctx: Ctx, x: Value) -> Value:
    """Before 14 Relu takes floats only."""
    if ctx.version >= 14 or is_float(ctx.type(x).dtype):
        return ctx.emit("Relu", x)
    zero = ctx.scalar_like(x, 0)
    return ctx.emit("Where", ctx.emit("Less", x, zero), zero, x)


def exact(dtype: str, *values: float) -> bool:
    """Whether attributes of ONNX, which are float32, hold values as a computation in `dtype`."""
    return dtype != "float64" or all(float(np.float32(value)) == value for value in values)


def _has_exact_attributes(node: Call) -> bool:
    data = node.args[0].type
    return isinstance(data, TensorType) and exact(data.dtype, *node.attrs.values())


@OPS.exports("nn.leaky_relu")
def export_leaky_relu(ctx: Ctx, x: Value, *, alpha: float) -> Value:
    if exact(ctx.type(x).dtype, alpha):
        return ctx.emit("LeakyRelu", x, alpha=alpha)
    negative = ctx.emit("Less", x, ctx.scalar_like(x, 0))
    return ctx.emit("Where", negative, ctx.emit("Mul", x, ctx.scalar_like(x, alpha)), x)


@OPS.exports("nn.prelu")
def export_prelu(ctx: Ctx, x: Value, slope: Value, *, axis: int) -> Value:
    """ONNX aligns the slopes with the last axes, so they get an axis of 1 for each that follows."""
    rank = ctx.type(x).rank
    following = rank - 1 - axis % rank
    return ctx.emit("PRelu", x, ctx.view(slope, (*ctx.type(slope).shape, *(1,) * following)))


@OPS.exports("serde.elu", when=_has_exact_attributes)
def export_elu(ctx: Ctx, x: Value, *, alpha: float) -> Value:
    return ctx.emit("Elu", x, alpha=alpha)


@OPS.exports("serde.selu", when=_has_exact_attributes)
def export_selu(ctx: Ctx, x: Value, *, alpha: float, gamma: float) -> Value:
    return ctx.emit("Selu", x, alpha=alpha, gamma=gamma)


@OPS.exports("serde.hard_sigmoid", when=_has_exact_attributes)
def export_hard_sigmoid(ctx: Ctx, x: Value, *, alpha: float, beta: float) -> Value:
    return ctx.emit("HardSigmoid", x, alpha=alpha, beta=beta)


@OPS.exports("serde.gelu", since=20)
def export_gelu(ctx: Ctx, x: Value, *, approximate: Literal["none", "tanh"]) -> Value:
    return ctx.emit("Gelu", x, approximate=approximate)


@OPS.exports("serde.swish", since=24)
def export_swish(ctx: Ctx, x: Value, *, alpha: float) -> Value:
    return ctx.emit("Swish", x, alpha=alpha)


def of_float32(node: Call) -> bool:
    """Whether the first operand of a call is float32, where an operator takes that alone."""
    data = node.args[0].type
    return isinstance(data, TensorType) and data.dtype == "float32"


def export_celu(ctx: Ctx, x: Value, *, alpha: float) -> Value:
    """Up to 27, Celu takes float32 only."""
    return ctx.emit("Celu", x, alpha=alpha)


OPS.exports("serde.celu", since=28)(export_celu)
OPS.exports("serde.celu", since=12, when=of_float32)(export_celu)


@OPS.exports("serde.thresholded_relu")
def export_thresholded_relu(ctx: Ctx, x: Value, *, alpha: float) -> Value:
    return ctx.emit("ThresholdedRelu", x, alpha=alpha)


@OPS.exports("serde.shrink")
def export_shrink(ctx: Ctx, x: Value, *, lambd: float, bias: float) -> Value:
    return ctx.emit("Shrink", x, lambd=lambd, bias=bias)


def _plain(target: str) -> Callable[..., Value]:
    def export_plain(ctx: Ctx, x: Value) -> Value:
        return ctx.emit(target, x)

    return export_plain


OPS.exports("serde.silu", since=24)(_plain("Swish"))
OPS.exports("serde.round_even")(_plain("Round"))
OPS.exports("serde.softplus")(_plain("Softplus"))
OPS.exports("serde.softsign")(_plain("Softsign"))
OPS.exports("serde.hard_swish", since=14)(_plain("HardSwish"))
OPS.exports("serde.mish", since=18)(_plain("Mish"))


@OPS.exports("nn.softmax", "nn.fast_softmax", since=13)
def export_softmax(ctx: Ctx, x: Value, *, axis: int) -> Value:
    return ctx.emit("Softmax", x, axis=axis)


@OPS.exports("nn.softmax", "nn.fast_softmax")
def export_softmax_v1(ctx: Ctx, x: Value, *, axis: int) -> Value:
    return _softmax_of_rows(ctx, "Softmax", x, axis)


@OPS.exports("nn.log_softmax", since=13)
def export_log_softmax(ctx: Ctx, x: Value, *, axis: int) -> Value:
    return ctx.emit("LogSoftmax", x, axis=axis)


@OPS.exports("nn.log_softmax")
def export_log_softmax_v1(ctx: Ctx, x: Value, *, axis: int) -> Value:
    return _softmax_of_rows(ctx, "LogSoftmax", x, axis)


@OPS.exports("serde.hardmax", since=13)
def export_hardmax(ctx: Ctx, x: Value, *, axis: int) -> Value:
    return ctx.emit("Hardmax", x, axis=axis)


@OPS.exports("serde.hardmax")
def export_hardmax_v1(ctx: Ctx, x: Value, *, axis: int) -> Value:
    return _softmax_of_rows(ctx, "Hardmax", x, axis)


def _softmax_of_rows(ctx: Ctx, op: str, x: Value, axis: int) -> Value:
    """Before 13, all dimensions from `axis` on form one row: the axis must be the last."""
    rank = ctx.type(x).rank
    if rank == 0:
        raise Unsupported("softmax of a scalar")
    axis %= rank
    if axis == rank - 1:
        return ctx.emit(op, x, axis=axis)
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    swapped = ctx.emit("Transpose", x, perm=order)
    return ctx.emit("Transpose", ctx.emit(op, swapped, axis=rank - 1), perm=order)
