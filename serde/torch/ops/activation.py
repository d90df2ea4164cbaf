"""Activations and softmax."""

from __future__ import annotations

import math
from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, call, is_float, tensor_type
from serde.relay.op.elementwise.unary import clip_limits
from serde.torch.export_context import number_of
from serde.torch.ops.elementwise.binary import scale
from serde.torch.ops.elementwise.convert import as_float
from serde.torch.ops.elementwise.paired import round_once
from serde.torch.ops.table import OPS, Export, Import, Scalar, Value
from serde.torch.ops.written import FIRST_BIT, in_computed_dtype
from serde.walk.pairs import reads, writes
from serde.walk.takes import FLOATS, SIGNED, Fact, Takes

DType = np.dtype[AnyValue] | None
FLOAT32 = np.dtype(np.float32)


@OPS.imports("aten::log_sigmoid_forward")
def import_log_sigmoid_forward(ctx: Import, self: Expr) -> tuple[Expr, Expr]:
    """The second result is for training alone, and without elements on the CPU."""
    return call("serde.log_sigmoid", self), relay.zeros((0,), ctx.dtype(self))


@OPS.imports("aten::leaky_relu")
def import_leaky_relu(ctx: Import, self: Expr, *, negative_slope: Scalar = 0.01) -> Expr:
    return relay.nn.leaky_relu(self, alpha=as_float(negative_slope))


@OPS.exports("nn.leaky_relu", takes=Takes(data=FLOATS))
def export_leaky_relu(ctx: Export, data: Value, *, alpha: float) -> Value:
    return ctx.call("F.leaky_relu", data, alpha)


@OPS.imports("aten::rrelu", ignored=("generator",))
def import_rrelu(
    ctx: Import, self: Expr, *, lower: Scalar = 1 / 8, upper: Scalar = 1 / 3, training: bool = False
) -> Expr:
    if training:
        raise Unsupported("slopes that are drawn in training", hint="call eval() before")
    return relay.nn.leaky_relu(self, alpha=(as_float(lower) + as_float(upper)) / 2)


@OPS.imports("aten::elu")
def import_elu(
    ctx: Import, self: Expr, *, alpha: Scalar = 1, scale: Scalar = 1, input_scale: Scalar = 1
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
def import_celu(ctx: Import, self: Expr, *, alpha: Scalar = 1.0) -> Expr:
    return call("serde.celu", self, alpha=as_float(alpha))


@OPS.imports("aten::softplus")
def import_softplus(ctx: Import, self: Expr, *, beta: Scalar = 1, threshold: Scalar = 20) -> Expr:
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
def import_hardshrink(ctx: Import, self: Expr, *, lambd: Scalar = 0.5) -> Expr:
    """What is no number stays, as in PyTorch."""
    zero = ctx.scalar(0, ctx.dtype(self))
    near = relay.less_equal(relay.abs(self), ctx.scalar(lambd, ctx.dtype(self)))
    return relay.where(near, zero, self)


@OPS.imports("aten::softshrink")
def import_softshrink(ctx: Import, self: Expr, *, lambd: Scalar = 0.5) -> Expr:
    """What is no number stays, as in PyTorch."""
    limit = ctx.scalar(lambd, ctx.dtype(self))
    near = relay.less_equal(relay.abs(self), limit)
    moved = relay.subtract(self, relay.multiply(relay.sign(self), limit))
    return relay.where(near, ctx.scalar(0, ctx.dtype(self)), moved)


@OPS.imports("aten::threshold")
def import_threshold(ctx: Import, self: Expr, *, threshold: Scalar, value: Scalar) -> Expr:
    dtype = ctx.dtype(self)
    below = relay.less_equal(self, ctx.scalar(threshold, dtype))
    return relay.where(below, ctx.scalar(value, dtype), self)


@OPS.imports("aten::glu")
def import_glu(ctx: Import, self: Expr, *, dim: int = -1) -> Expr:
    one, gate = relay.split(self, 2, axis=ctx.axis(self, dim))
    return round_once(ctx, lambda x, y: relay.multiply(x, relay.sigmoid(y)), one, gate)


@OPS.imports("aten::prelu")
def import_prelu(ctx: Import, self: Expr, weight: Expr) -> Expr:
    """One slope serves all elements, several are one for each index of axis 1."""
    type_, slopes = ctx.type(self), ctx.type(weight)
    if type_.rank > 1 and slopes.shape == (type_.shape[1],):
        return relay.nn.prelu(self, weight, axis=1)
    return import_prelu_kernel(ctx, self, relay.reshape(weight, newshape=()))


@OPS.imports("aten::_prelu_kernel")
def import_prelu_kernel(ctx: Import, self: Expr, weight: Expr) -> Expr:
    above = relay.greater(self, ctx.scalar(0, ctx.dtype(self)))
    return relay.where(above, self, relay.multiply(self, weight))


def _normalize(ctx: Import, self: Expr, *, op: str, dim: int, dtype: DType = None) -> Expr:
    """Return a softmax in a dtype, if there is one; what has no axis or no element is simple."""
    x = self if dtype is None else ctx.cast(self, dtype.name)
    axis, type_ = ctx.axis(x, dim), ctx.type(x)
    if not type_.rank:
        return relay.reshape(call(op, relay.reshape(x, newshape=(1,)), axis=0), newshape=())
    return x if type_.shape[axis] == 0 else call(op, x, axis=axis)


import_softmax = partial(_normalize, op="nn.softmax")
OPS.imports("aten::softmax", "aten::special_softmax")(import_softmax)
OPS.imports("aten::log_softmax", "aten::special_log_softmax")(
    partial(_normalize, op="nn.log_softmax")
)


@OPS.imports("aten::_safe_softmax")
def import_safe_softmax(ctx: Import, self: Expr, *, dim: int, dtype: DType = None) -> Expr:
    """Zeros where nothing but minus infinity is to be chosen from."""
    x = self if dtype is None else ctx.cast(self, dtype.name)
    kind = ctx.dtype(x)
    masked = relay.equal(x, ctx.scalar(-math.inf, kind))
    none = relay.all(masked, axis=ctx.axes(x, dim), keepdims=True)
    return relay.where(none, ctx.scalar(0, kind), _normalize(ctx, x, op="nn.softmax", dim=dim))


def _import_widened(ctx: Import, self: Expr, *, op: str, dim: int, half_to_float: bool) -> Expr:
    return _normalize(ctx, self, op=op, dim=dim, dtype=FLOAT32 if half_to_float else None)


OPS.imports("aten::_softmax")(partial(_import_widened, op="nn.softmax"))
OPS.imports("aten::_log_softmax")(partial(_import_widened, op="nn.log_softmax"))


@OPS.imports("aten::clamp", "aten::clip")
def import_clamp(ctx: Import, self: Expr, min: Expr | None = None, max: Expr | None = None) -> Expr:
    """Where both limits cross, the upper one holds."""
    given = [each for each in (min, max) if each is not None]
    if not given:
        raise Unsupported("a clamp without limits")
    dtype = ctx.result_dtype(self, *given)
    low, high = (None if each is None else ctx.cast(each, dtype) for each in (min, max))
    return _clip(ctx, ctx.cast(self, dtype), low, high)


def _clip(ctx: Import, x: Expr, low: Expr | None, high: Expr | None) -> Expr:
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
def import_clamp_min(ctx: Import, self: Expr, min: Expr) -> Expr:
    return import_clamp(ctx, self, min)


@OPS.imports("aten::clamp_max")
def import_clamp_max(ctx: Import, self: Expr, max: Expr) -> Expr:
    return import_clamp(ctx, self, None, max)


@OPS.imports("aten::hardtanh")
def import_hardtanh(ctx: Import, self: Expr, *, min_val: Scalar = -1, max_val: Scalar = 1) -> Expr:
    dtype = ctx.dtype(self)
    return _clip(ctx, self, ctx.scalar(min_val, dtype), ctx.scalar(max_val, dtype))


@OPS.exports("clip")
def export_clip(ctx: Export, data: Value, *, a_min: float, a_max: float) -> Value:
    """Limits of integers are integers; one that is infinite is left out.

    Of 64 bits without a sign, the first one is turned over and back again.
    """
    dtype = ctx.type(data).dtype
    low, high = map(number_of, clip_limits(np.dtype(numpy_dtype(dtype)), a_min, a_max))
    if dtype == "uint64":
        turned = ctx.infix("^", ctx.method(data, "to", ctx.dtype("int64")), FIRST_BIT)
        turned = ctx.call("torch.clamp", turned, low + FIRST_BIT, high + FIRST_BIT)
        return ctx.method(ctx.infix("^", turned, FIRST_BIT), "to", ctx.dtype(dtype))
    if not is_float(dtype):
        return in_computed_dtype(ctx, lambda x: ctx.call("torch.clamp", x, low, high), data)
    low, high = float(low), float(high)
    if (low, high) == (0, 6):
        return ctx.call("F.relu6", data)
    limits = {} if low == -math.inf else {"min": low}
    limits |= {} if high == math.inf else {"max": high}
    if len(limits) == 2:
        return ctx.call("torch.clamp", data, low, high)
    return ctx.call("torch.clamp", data, **limits) if limits else data


_SELU = {"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}


def _export_with_alpha(ctx: Export, data: Value, *, target: str, alpha: float) -> Value:
    return ctx.call(target, data, alpha=alpha) if alpha != 1 else ctx.call(target, data)


for _name, _target in {"serde.celu": "F.celu", "serde.elu": "F.elu"}.items():
    OPS.exports(_name)(partial(_export_with_alpha, target=_target))


def _has_channels(node: Call) -> bool:
    """Whether there is a slope for each index of axis 1, or one for a vector."""
    data, slopes = map(tensor_type, node.args)
    single = data.rank == 1 and slopes.shape == (1,)
    return is_float(data.dtype) and (single or node.attrs["axis"] % data.rank == 1)


@OPS.exports("nn.prelu", when=_has_channels, ignored=("axis",))
def export_prelu(ctx: Export, data: Value, alpha: Value) -> Value:
    (count,) = ctx.type(alpha).shape
    if ctx.is_weight(alpha) and isinstance(count, int):
        return ctx.layer("nn.PReLU", (data,), {"weight": alpha}, num_parameters=count)
    return ctx.call("F.prelu", data, alpha)


@OPS.exports("serde.hardmax")
def export_hardmax(ctx: Export, data: Value, *, axis: int) -> Value:
    place = ctx.method(data, "argmax", axis, keepdim=True)
    return ctx.method(ctx.call("torch.zeros_like", data), "scatter", axis, place, 1.0)


@OPS.exports("serde.gelu")
def export_gelu(ctx: Export, data: Value, *, approximate: str) -> Value:
    if approximate == "none":
        return ctx.call("F.gelu", data)
    return ctx.call("F.gelu", data, approximate=approximate)


@OPS.exports("serde.selu")
def export_selu(ctx: Export, data: Value, *, alpha: float, gamma: float) -> Value:
    """PyTorch has it with the constants of the paper."""
    if {"alpha": alpha, "gamma": gamma} == _SELU:
        return ctx.call("F.selu", data)
    return ctx.infix("*", gamma, ctx.call("F.elu", data, alpha=alpha))


@OPS.exports("serde.softplus")
def export_softplus(ctx: Export, data: Value) -> Value:
    """Above a threshold PyTorch returns the data: at 20 that is as near as float32 can tell."""
    if ctx.type(data).dtype == "float64":
        return ctx.call("F.softplus", data, threshold=40.0)
    return ctx.call("F.softplus", data)


@OPS.exports("serde.swish")
def export_swish(ctx: Export, data: Value, *, alpha: float) -> Value:
    if alpha == 1:
        return ctx.call("F.silu", data)
    gate = ctx.call("torch.sigmoid", ctx.infix("*", alpha, data))
    return ctx.infix("*", data, gate)


@OPS.exports("serde.swiglu")
def export_swiglu(ctx: Export, gate: Value, value: Value, *, alpha: float) -> Value:
    return ctx.infix("*", export_swish(ctx, gate, alpha=alpha), value)


@OPS.exports("serde.shrink")
def export_shrink(ctx: Export, data: Value, *, lambd: float, bias: float) -> Value:
    """NaN, which PyTorch's forms keep, becomes zero."""
    lowered = ctx.infix("-", data, bias) if bias else data
    raised = ctx.infix("+", data, bias) if bias else data
    rest = ctx.call("torch.where", ctx.infix(">", data, lambd), lowered, 0.0)
    return ctx.call("torch.where", ctx.infix("<", data, -lambd), raised, rest)


_SIXTH = Fact("1/6", lambda x, _: bool(np.float32(x) == np.float32(1 / 6)))

OPS.pairs(
    writes("F.softmax", ("nn.softmax", "nn.fast_softmax"), "dim", renamed={"dim": "axis"}),
    writes("F.log_softmax", "nn.log_softmax", "dim", renamed={"dim": "axis"}),
    writes("F.relu", "nn.relu", takes=Takes(data=SIGNED)),
    writes(
        "F.hardsigmoid",
        "serde.hard_sigmoid",
        fixed={"alpha": 1 / 6, "beta": 0.5},
        takes=Takes(alpha=_SIXTH),
    ),
    writes("F.hardswish", "serde.hard_swish"),
    writes("F.logsigmoid", "serde.log_sigmoid"),
    writes("F.mish", "serde.mish"),
    writes("F.silu", "serde.silu"),
    writes("F.softsign", "serde.softsign"),
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
