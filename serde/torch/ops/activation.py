"""Activations and softmax."""

from __future__ import annotations

import math
from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float
from serde.torch.import_context import ImportContext, Scalar
from serde.torch.ops.elementwise.binary import scale
from serde.torch.ops.elementwise.convert import as_float
from serde.torch.ops.elementwise.paired import round_once
from serde.torch.ops.table import OPS
from serde.walk.pairs import reads

DType = np.dtype[AnyValue] | None
FLOAT32 = np.dtype(np.float32)


@OPS.imports("aten::log_sigmoid_forward")
def import_log_sigmoid_forward(ctx: ImportContext, self: Expr) -> tuple[Expr, Expr]:
    """The second result is for training alone, and without elements on the CPU."""
    return call("serde.log_sigmoid", self), relay.zeros((0,), ctx.dtype(self))


@OPS.imports("aten::leaky_relu")
def import_leaky_relu(ctx: ImportContext, self: Expr, *, negative_slope: Scalar = 0.01) -> Expr:
    return relay.nn.leaky_relu(self, alpha=as_float(negative_slope))


@OPS.imports("aten::rrelu", ignored=("generator",))
def import_rrelu(
    ctx: ImportContext,
    self: Expr,
    *,
    lower: Scalar = 1 / 8,
    upper: Scalar = 1 / 3,
    training: bool = False,
) -> Expr:
    if training:
        raise Unsupported("slopes that are drawn in training", hint="call eval() before")
    return relay.nn.leaky_relu(self, alpha=(as_float(lower) + as_float(upper)) / 2)


@OPS.imports("aten::elu")
def import_elu(
    ctx: ImportContext,
    self: Expr,
    *,
    alpha: Scalar = 1,
    scale: Scalar = 1,
    input_scale: Scalar = 1,
) -> Expr:
    below, whole, inner = map(as_float, (alpha, scale, input_scale))
    if inner == 1:
        if whole == 1:
            return call("serde.elu", self, alpha=below)
        return call("serde.selu", self, alpha=below, gamma=whole)

    def function(x: Expr) -> Expr:
        dtype = ctx.dtype(x)
        less: Expr = call("serde.expm1", relay.multiply(x, ctx.scalar(inner, dtype)))
        less = relay.multiply(less, ctx.scalar(below, dtype))
        found = relay.where(relay.greater(x, ctx.scalar(0, dtype)), x, less)
        return relay.multiply(found, ctx.scalar(whole, dtype))

    return round_once(ctx, function, self)


@OPS.imports("aten::celu")
def import_celu(ctx: ImportContext, self: Expr, *, alpha: Scalar = 1.0) -> Expr:
    return call("serde.celu", self, alpha=as_float(alpha))


@OPS.imports("aten::softplus")
def import_softplus(
    ctx: ImportContext, self: Expr, *, beta: Scalar = 1, threshold: Scalar = 20
) -> Expr:
    """Above the threshold it is the identity, in float32 without a difference from 20 on."""
    if (beta, threshold) == (1, 20) and ctx.dtype(self) != "float64":
        return call("serde.softplus", self)

    def function(x: Expr) -> Expr:
        dtype = ctx.dtype(x)
        inner = scale(ctx, x, beta)
        found = relay.divide(call("serde.softplus", inner), ctx.scalar(beta, dtype))
        return relay.where(relay.greater(inner, ctx.scalar(threshold, dtype)), x, found)

    return round_once(ctx, function, self)


@OPS.imports("aten::hardshrink")
def import_hardshrink(ctx: ImportContext, self: Expr, *, lambd: Scalar = 0.5) -> Expr:
    """What is no number stays, as in PyTorch."""
    zero = ctx.scalar(0, ctx.dtype(self))
    near = relay.less_equal(relay.abs(self), ctx.scalar(lambd, ctx.dtype(self)))
    return relay.where(near, zero, self)


@OPS.imports("aten::softshrink")
def import_softshrink(ctx: ImportContext, self: Expr, *, lambd: Scalar = 0.5) -> Expr:
    """What is no number stays, as in PyTorch."""
    limit = ctx.scalar(lambd, ctx.dtype(self))
    near = relay.less_equal(relay.abs(self), limit)
    moved = relay.subtract(self, relay.multiply(relay.sign(self), limit))
    return relay.where(near, ctx.scalar(0, ctx.dtype(self)), moved)


@OPS.imports("aten::threshold")
def import_threshold(ctx: ImportContext, self: Expr, *, threshold: Scalar, value: Scalar) -> Expr:
    dtype = ctx.dtype(self)
    below = relay.less_equal(self, ctx.scalar(threshold, dtype))
    return relay.where(below, ctx.scalar(value, dtype), self)


@OPS.imports("aten::glu")
def import_glu(ctx: ImportContext, self: Expr, *, dim: int = -1) -> Expr:
    one, gate = relay.split(self, 2, axis=ctx.axis(self, dim))
    return round_once(ctx, lambda x, y: relay.multiply(x, relay.sigmoid(y)), one, gate)


@OPS.imports("aten::prelu")
def import_prelu(ctx: ImportContext, self: Expr, weight: Expr) -> Expr:
    """One slope serves all elements, several are one for each index of axis 1."""
    type_, slopes = ctx.type(self), ctx.type(weight)
    if type_.rank > 1 and slopes.shape == (type_.shape[1],):
        return relay.nn.prelu(self, weight, axis=1)
    return import_prelu_kernel(ctx, self, relay.reshape(weight, newshape=()))


@OPS.imports("aten::_prelu_kernel")
def import_prelu_kernel(ctx: ImportContext, self: Expr, weight: Expr) -> Expr:
    above = relay.greater(self, ctx.scalar(0, ctx.dtype(self)))
    return relay.where(above, self, relay.multiply(self, weight))


def _normalize(ctx: ImportContext, self: Expr, *, op: str, dim: int, dtype: DType = None) -> Expr:
    """Return a softmax in a dtype, if there is one; what has no axis or no element is simple."""
    x = self if dtype is None else ctx.cast(self, dtype.name)
    axis, type_ = ctx.axis(x, dim), ctx.type(x)
    if not type_.rank:
        return relay.reshape(call(op, relay.reshape(x, newshape=(1,)), axis=0), newshape=())
    return x if type_.shape[axis] == 0 else call(op, x, axis=axis)


OPS.imports("aten::softmax", "aten::special_softmax")(partial(_normalize, op="nn.softmax"))
OPS.imports("aten::log_softmax", "aten::special_log_softmax")(
    partial(_normalize, op="nn.log_softmax")
)


@OPS.imports("aten::_safe_softmax")
def import_safe_softmax(ctx: ImportContext, self: Expr, *, dim: int, dtype: DType = None) -> Expr:
    """Zeros where nothing but minus infinity is to be chosen from."""
    x = self if dtype is None else ctx.cast(self, dtype.name)
    kind = ctx.dtype(x)
    masked = relay.equal(x, ctx.scalar(-math.inf, kind))
    none = relay.all(masked, axis=ctx.axes(x, dim), keepdims=True)
    return relay.where(none, ctx.scalar(0, kind), _normalize(ctx, x, op="nn.softmax", dim=dim))


def _import_widened(
    ctx: ImportContext, self: Expr, *, op: str, dim: int, half_to_float: bool
) -> Expr:
    return _normalize(ctx, self, op=op, dim=dim, dtype=FLOAT32 if half_to_float else None)


OPS.imports("aten::_softmax")(partial(_import_widened, op="nn.softmax"))
OPS.imports("aten::_log_softmax")(partial(_import_widened, op="nn.log_softmax"))


@OPS.imports("aten::clamp", "aten::clip")
def import_clamp(
    ctx: ImportContext, self: Expr, min: Expr | None = None, max: Expr | None = None
) -> Expr:
    """Where both limits cross, the upper one holds."""
    given = [each for each in (min, max) if each is not None]
    if not given:
        raise Unsupported("a clamp without limits")
    dtype = ctx.result_dtype(self, *given)
    low, high = (None if each is None else ctx.cast(each, dtype) for each in (min, max))
    return _clip(ctx, ctx.cast(self, dtype), low, high)


def _clip(ctx: ImportContext, x: Expr, low: Expr | None, high: Expr | None) -> Expr:
    known = [
        np.asarray(end) if each is None else ctx.known(each)
        for each, end in ((low, -math.inf), (high, math.inf))
    ]
    ends = [each.item() for each in known if each is not None and each.ndim == 0]
    if is_float(ctx.dtype(x)) and len(ends) == 2 and ends[0] <= ends[1]:
        return relay.clip(x, *map(float, ends))
    x = x if low is None else relay.maximum(x, low)
    return x if high is None else relay.minimum(x, high)


@OPS.imports("aten::clamp_min")
def import_clamp_min(ctx: ImportContext, self: Expr, min: Expr) -> Expr:
    return import_clamp(ctx, self, min)


@OPS.imports("aten::clamp_max")
def import_clamp_max(ctx: ImportContext, self: Expr, max: Expr) -> Expr:
    return import_clamp(ctx, self, None, max)


@OPS.imports("aten::hardtanh")
def import_hardtanh(
    ctx: ImportContext, self: Expr, *, min_val: Scalar = -1, max_val: Scalar = 1
) -> Expr:
    dtype = ctx.dtype(self)
    return _clip(ctx, self, ctx.scalar(min_val, dtype), ctx.scalar(max_val, dtype))


OPS.pairs(
    reads("aten::relu", "nn.relu"),
    reads("aten::relu6", "clip", fixed={"a_min": 0.0, "a_max": 6.0}),
    reads("aten::gelu", "serde.gelu", approximate="none"),
    reads("aten::hardsigmoid", "serde.hard_sigmoid", fixed={"alpha": 1 / 6}),
    reads("aten::selu", "serde.selu"),
    reads("aten::hardswish", "serde.hard_swish"),
    reads("aten::log_sigmoid", "serde.log_sigmoid"),
    reads("aten::mish", "serde.mish"),
    reads("aten::silu", "serde.silu"),
)
