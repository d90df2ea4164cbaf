"""Activations, softmax and the loss heads, which at inference are activations."""

from __future__ import annotations

from typing import Any as AnyValue, Literal

import numpy as np

import serde.relay as relay
from serde.core import dataclass, numpy_dtype, replace
from serde.errors import Unsupported
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.shape.create import axis_indices
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, TensorType, is_float, normalize_axis, tensor_type
from serde.walk.pairs import pair, reads, writes
from serde.walk.takes import FLOATS, HELD, Takes

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_GAMMA = 1.0507009873554804934193349852946


@OPS.imports("relu", "_npx_relu")
def import_relu(ctx: Import, data: Expr) -> Expr:
    """Of integers a maximum, which ONNX Runtime has for every width."""
    if not is_float(ctx.type(data).dtype):
        return relay.maximum(data, scalar_like(ctx, data, 0))
    return relay.nn.relu(data)


@OPS.imports("Activation")
def import_activation(
    ctx: Import, data: Expr, *, act_type: Literal["relu", "sigmoid", "softrelu", "softsign", "tanh"]
) -> Expr:
    build = {
        "relu": relay.nn.relu,
        "sigmoid": relay.sigmoid,
        "softrelu": relay.serde.softplus,
        "softsign": relay.serde.softsign,
        "tanh": relay.tanh,
    }
    return build[act_type](data)


@OPS.imports("LeakyReLU")
def import_leaky_relu(
    ctx: Import, data: Expr, gamma: Expr | None = None,
    *, act_type: Literal["elu", "gelu", "leaky", "prelu", "rrelu", "selu"] = "leaky",
    slope: float = 0.25, lower_bound: float = 0.125, upper_bound: float = 0.334,
) -> Expr:  # fmt: skip
    """At inference the random slope of rrelu is the mean of its bounds."""
    if act_type == "prelu":
        return _prelu(ctx, data, gamma)
    if act_type == "elu":
        return relay.serde.elu(data, alpha=slope)
    if act_type == "selu":
        return relay.serde.selu(data, alpha=SELU_ALPHA, gamma=SELU_GAMMA)
    if act_type == "gelu":
        return relay.serde.gelu(data)
    if act_type == "rrelu":
        slope = (lower_bound + upper_bound) / 2
    return relay.nn.leaky_relu(data, slope)


def _prelu(ctx: Import, data: Expr, gamma: Expr | None) -> Expr:
    """One slope for all, or one a channel (axis 1; of a vector, one an element)."""
    if gamma is None:
        raise Unsupported("act_type='prelu' needs the slopes as a second input")
    rank = ctx.type(data).rank
    axis = min(1, rank - 1)
    slopes = ctx.type(gamma)
    if slopes.rank != 1:
        raise Unsupported(f"expected slopes of rank 1, found {slopes!r}")
    channels = ctx.type(data).shape[axis]
    if slopes.shape[0] == 1 and channels != 1:
        gamma = relay.broadcast_to(gamma, (channels,))
    return relay.nn.prelu(data, gamma, axis=axis)


@dataclass(frozen=True, kw_only=True)
class SoftmaxAttributes:
    """Attributes that softmax and its kin share."""

    axis: int = -1
    temperature: float | None = None
    dtype: np.dtype[AnyValue] | None = None


@OPS.imports("softmax")
def import_softmax(
    ctx: Import,
    data: Expr,
    length: Expr | None = None,
    *,
    attrs: SoftmaxAttributes,
    use_length: bool | None = False,
) -> Expr:
    """Of a row with a length only the first elements take part; the others are 0."""
    if bool(use_length) != (length is not None):
        raise Unsupported("use_length and a second input go together")
    if length is None:
        return _softmax(ctx, relay.nn.softmax, data, attrs)
    if ctx.type(length).dtype == "bool":
        raise Unsupported("lengths of rows that are truth values")
    along = normalize_axis(attrs.axis, ctx.type(data).rank)
    ends = relay.expand_dims(length, along)
    numbers = axis_indices(ctx, data, along, ctx.type(length).dtype)
    behind = ctx.type(data).rank - along - 1
    if behind:
        numbers = relay.expand_dims(numbers, 1, behind)
    inside = relay.less(numbers, ends)

    def apply_mask(x: Expr, axis: int) -> Expr:
        within = relay.where(inside, x, scalar_like(ctx, x, -np.inf))
        return relay.where(inside, relay.nn.softmax(within, axis), scalar_like(ctx, x, 0))

    return _softmax(ctx, apply_mask, data, attrs)


@OPS.imports("log_softmax", ignored=("use_length",))
def import_log_softmax(ctx: Import, data: Expr, *, attrs: SoftmaxAttributes) -> Expr:
    return _softmax(ctx, relay.nn.log_softmax, data, attrs)


@OPS.imports("softmin", ignored=("use_length",))
def import_softmin(ctx: Import, data: Expr, *, attrs: SoftmaxAttributes) -> Expr:
    return _softmax(ctx, relay.nn.softmax, relay.negative(data), attrs)


def _softmax(ctx: Import, build: AnyValue, data: Expr, attrs: SoftmaxAttributes) -> Expr:
    """A wider dtype holds for the computation, too; a narrower one rounds the result."""
    given = numpy_dtype(ctx.type(data).dtype)
    dtype, temperature = attrs.dtype, attrs.temperature
    wide = given if dtype is None or dtype.itemsize < given.itemsize else dtype
    data = relay.cast(data, wide)
    if temperature is not None and temperature != 1.0:
        data = relay.divide(data, scalar_like(ctx, data, temperature))
    result = build(data, axis=attrs.axis)
    return result if dtype is None else relay.cast(result, dtype)


def _over_all_but_batch(ctx: Import, data: Expr) -> Expr:
    """Softmax with everything behind the batch axis as one row."""
    if ctx.type(data).rank <= 2:
        return relay.nn.softmax(data, axis=-1)
    return relay.reshape_like(relay.nn.softmax(relay.nn.batch_flatten(data), axis=1), data)


@OPS.imports(
    "SoftmaxOutput",
    uses=1,
    ignored=(
        "grad_scale",
        "ignore_label",
        "use_ignore",
        "normalization",
        "out_grad",
        "smooth_alpha",
    ),
)
def import_softmax_output(
    ctx: Import, data: Expr, *, multi_output: bool = False, preserve_shape: bool = False
) -> Expr:
    if multi_output:
        return relay.nn.softmax(data, axis=1)
    if preserve_shape:
        return relay.nn.softmax(data, axis=-1)
    return _over_all_but_batch(ctx, data)


@OPS.imports("SoftmaxActivation")
def import_softmax_activation(
    ctx: Import, data: Expr, *, mode: Literal["instance", "channel"] = "instance"
) -> Expr:
    """``instance`` takes the last axis, not all but the batch as MXNet's documentation says."""
    return relay.nn.softmax(data, axis=1 if mode == "channel" else -1)


@OPS.imports(
    "LinearRegressionOutput",
    "MAERegressionOutput",
    "SVMOutput",
    "MakeLoss",
    "IdentityAttachKLSparseReg",
    uses=1,
    ignored=(
        "grad_scale",
        "margin",
        "regularization_coefficient",
        "use_linear",
        "valid_thresh",
        "normalization",
        "sparseness_target",
        "penalty",
        "momentum",
    ),
)
def import_training_head(ctx: Import, data: Expr) -> Expr:
    """What these add matters to gradients only."""
    return data


def _declare_activation_export(name: str, act_type: str) -> None:
    @OPS.exports(name, takes=Takes(data=FLOATS))
    def export_activation(ctx: Export, data: Value) -> Value:
        """MXNet computes no activations of nothing."""
        if ctx.type(data).size == 0:
            return data
        return ctx.emit("Activation", data, act_type=act_type)


for _relay, _act_type in {
    "nn.relu": "relu",
    "serde.softplus": "softrelu",
    "serde.softsign": "softsign",
}.items():
    _declare_activation_export(_relay, _act_type)


def _emit_leaky(ctx: Export, data: Value, **attrs: AnyValue) -> Value:
    """Append a LeakyReLU, which MXNet computes of tensors that have an axis."""
    type_ = ctx.type(data)
    if type_.shape or not ctx.np_shape:
        return ctx.emit("LeakyReLU", data, **attrs)
    found = ctx.emit("LeakyReLU", ctx.reshape(data, (1,)), **attrs)
    return ctx.reshape(replace(found, type=TensorType((1,), type_.dtype)), ())


@OPS.exports("nn.leaky_relu", takes=Takes(alpha=HELD))
def export_leaky_relu(ctx: Export, data: Value, *, alpha: float) -> Value:
    return _emit_leaky(ctx, data, act_type="leaky", slope=alpha)


def _slopes_fit(call: Call) -> bool:
    rank = tensor_type(call.args[0]).rank
    return bool(normalize_axis(call.attrs["axis"], rank) == min(1, rank - 1))


@OPS.exports("nn.prelu", when=_slopes_fit)
def export_prelu(ctx: Export, data: Value, alpha: Value, *, axis: int) -> Value:
    return ctx.emit("LeakyReLU", data, alpha, act_type="prelu")


@OPS.exports("serde.gelu", takes=Takes(approximate="none"))
def export_gelu(ctx: Export, data: Value) -> Value:
    return _emit_leaky(ctx, data, act_type="gelu")


@OPS.exports("serde.selu", takes=Takes(alpha=SELU_ALPHA, gamma=SELU_GAMMA))
def export_selu(ctx: Export, data: Value) -> Value:
    return _emit_leaky(ctx, data, act_type="selu")


@OPS.exports("serde.elu", takes=Takes(alpha=HELD))
def export_elu(ctx: Export, data: Value, *, alpha: float) -> Value:
    return _emit_leaky(ctx, data, act_type="elu", slope=alpha)


OPS.pairs(
    reads("softsign", "serde.softsign"),
    pair("hard_sigmoid", "serde.hard_sigmoid", alpha=0.2, beta=0.5),
    reads("LogisticRegressionOutput", "sigmoid", ignored="grad_scale", uses=1),
    writes("softmax", ("nn.softmax", "nn.fast_softmax"), "axis"),
    writes("log_softmax", "nn.log_softmax", "axis"),
)
