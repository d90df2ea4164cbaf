"""Activations: rectifiers, softmax and the smooth gates of extension operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any as AnyValue, Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Sample, Traits, builder, call, ranges, relay_op, sample, tensor
from serde.relay.ir.expr import Expr, const, tensor_type
from serde.relay.ir.precision import widen
from serde.relay.ir.registry import Kernel
from serde.relay.ir.shapes import (
    float_type,
    join_dim,
    normalize_axis,
    require_float,
    require_same_dtype,
)
from serde.relay.ir.traits import (
    Cases,
    Discontinuous,
    Elementwise,
    Float32,
    Fusion,
    FusionPattern,
    Ordering,
    SameAxes,
    SameType,
    Truth,
    Values,
)
from serde.relay.ir.types import TensorType
from serde.relay.op.elementwise.erf import erf


def _number_type(data: TensorType, **_: AnyValue) -> TensorType:
    if data.dtype == "bool":
        raise TypeInferenceError("expected a tensor of numbers, found bool")
    return data


@relay_op(
    "nn.relu",
    traits=(Values(0), Elementwise, SameType),
    infer=_number_type,
    samples=[sample((2, 3)), sample(tensor((4,), "int32"))],
)
def relu(data: Array) -> Array:
    """``y = max(x, 0)``."""
    return np.maximum(data, data.dtype.type(0)).astype(data.dtype, copy=False)


@relay_op(
    "nn.leaky_relu", traits=(Elementwise, SameType),
    infer=_number_type,
    samples=[sample((2, 3), alpha=0.1), sample(tensor((4,), "float16")),
             sample(tensor((2, 3), "float64"), alpha=0.1)],
)  # fmt: skip
def leaky_relu(data: Array, *, alpha: float = 0.25) -> Array:
    """``y = x if x > 0 else alpha * x``."""
    with np.errstate(over="ignore"):
        return np.where(data > 0, data, data * data.dtype.type(alpha))


@builder("nn.leaky_relu")
def build_leaky_relu(data: Expr, alpha: float = 0.01) -> Expr:
    """Build ``nn.leaky_relu``; as in TVM, the builder has another default than the operator."""
    return call("nn.leaky_relu", data, alpha=alpha)


def _prelu_type(data: TensorType, alpha: TensorType, *, axis: int) -> TensorType:
    require_same_dtype(data, alpha)
    axis = normalize_axis(axis, data.rank)
    if alpha.rank != 1:
        raise TypeInferenceError(f"expected alpha of rank 1, found {alpha!r}")
    shape = list(data.shape)
    shape[axis] = join_dim(shape[axis], alpha.shape[0])
    return TensorType(shape, data.dtype)


def _complete_prelu(
    data: TensorType | None, alpha: TensorType | None, *, axis: int
) -> tuple[TensorType | None, TensorType | None]:
    if data is None or alpha is not None:
        return data, alpha
    return data, TensorType([data.shape[normalize_axis(axis, data.rank)]], data.dtype)


@relay_op(
    "nn.prelu",
    traits=(SameAxes(("axis",)), Fusion(FusionPattern.BROADCAST)),
    infer=_prelu_type,
    complete=_complete_prelu,
    samples=[sample((2, 3, 4), (3,)), sample((2, 3, 4), (4,), axis=-1)],
)
def prelu(data: Array, alpha: Array, *, axis: int = 1) -> Array:
    """``y = x if x > 0 else alpha[c] * x``, where c is the index along `axis`."""
    shape = [1] * data.ndim
    shape[axis] = -1
    with np.errstate(over="ignore"):
        return np.where(data > 0, data, data * alpha.reshape(shape))


def _softmax_type(data: TensorType, *, axis: int) -> TensorType:
    require_float(data)
    normalize_axis(axis, data.rank)
    return data


_SOFTMAX_SAMPLES = [
    sample((2, 3, 4), axis=1),
    sample((5,)),
    sample(tensor((2, 3), "float16")),
    sample(tensor((2, 3), low=-200.0, high=200.0)),
]


@relay_op(
    "nn.softmax",
    traits=(
        SameAxes(("axis",)),
        SameType,
        Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),
        Float32("reductions", default=False),
    ),
    infer=_softmax_type,
    samples=_SOFTMAX_SAMPLES,
)
def softmax(data: Array, *, axis: int = -1) -> Array:
    """``y = exp(x - max(x)) / sum(exp(x - max(x)))`` along `axis`."""
    wide = widen(data)
    weights = np.exp(wide - wide.max(axis, keepdims=True))
    return (weights / weights.sum(axis, keepdims=True)).astype(data.dtype, copy=False)


@relay_op(
    "nn.fast_softmax",
    traits=(SameAxes(("axis",)), SameType, Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_softmax_type,
    samples=_SOFTMAX_SAMPLES,
)
def fast_softmax(data: Array, *, axis: int = -1) -> Array:
    """``nn.softmax``; an executor may approximate the exponential, this one does not."""
    return softmax(data, axis=axis)


@relay_op(
    "nn.log_softmax",
    traits=(
        SameAxes(("axis",)),
        SameType,
        Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),
        Float32("reductions"),
    ),
    infer=_softmax_type,
    samples=_SOFTMAX_SAMPLES,
)
def log_softmax(data: Array, *, axis: int = -1) -> Array:
    """``y = x - max(x) - log(sum(exp(x - max(x))))`` along `axis`."""
    wide = widen(data)
    shifted = wide - wide.max(axis, keepdims=True)
    result = shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))
    return result.astype(data.dtype, copy=False)


def _samples(**attrs: AnyValue) -> Sequence[Sample]:
    default = sample(tensor((2, 3, 4), low=-6.0, high=6.0))
    narrow = sample(tensor((2, 3), "float64"), **attrs)
    return [default, narrow] if attrs else [default, sample(tensor((), "float64"))]


def _activation(
    name: str,
    decompose: Callable[..., Expr],
    *,
    infer: Callable[..., TensorType] = float_type,
    traits: Traits = (),
    **attrs: float | str,
) -> Callable[[Kernel], Kernel]:
    """Declare an elementwise operator of floats, with a sample that has `attrs`."""
    return relay_op(
        name,
        traits=(Elementwise, SameType, *traits),
        infer=infer,
        decompose=decompose,
        samples=_samples(**attrs),
    )


def _scalar(value: float, like: Expr) -> Expr:
    return const(value, tensor_type(like).dtype)


def _times(data: Expr, factor: float) -> Expr:
    return call("multiply", data, _scalar(factor, data))


def _plus(data: Expr, term: float) -> Expr:
    return call("add", data, _scalar(term, data))


def _compute_widened(data: Array, function: Callable[[Array], Array]) -> Array:
    """Return `function` of `data` at float32 or wider, in the dtype of `data`."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(function(widen(data))).astype(data.dtype, copy=False)


def _softplus(data: Array) -> Array:
    return np.maximum(data, 0) + np.log1p(np.exp(-np.abs(data)))


def _logistic(data: Array) -> Array:
    small = np.exp(-np.abs(data))
    return np.where(data < 0, small, 1) / (1 + small)


def _decompose_softplus(data: Expr) -> Expr:
    decay = call("exp", call("negative", call("abs", data)))
    return call("add", call("nn.relu", data), call("log", _plus(decay, 1.0)))


def _decompose_gelu(data: Expr, *, approximate: str) -> Expr:
    if approximate == "none":
        inner = call("erf", _times(data, math.sqrt(0.5)))
    else:
        cube = call("multiply", call("multiply", data, data), data)
        inner = call("add", data, _times(cube, 0.044715))
        inner = call("tanh", _times(inner, math.sqrt(2 / math.pi)))
    return call("multiply", _times(data, 0.5), _plus(inner, 1.0))


@_activation("serde.gelu", _decompose_gelu, approximate="tanh")
def gelu(data: Array, *, approximate: Literal["none", "tanh"] = "none") -> Array:
    """``y = 0.5 * x * (1 + erf(x / sqrt(2)))`` (Hendrycks and Gimpel, 2016).

    With `approximate` "tanh": ``y = 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``.
    """

    def of(x: Array) -> Array:
        if approximate == "none":
            return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))

    return _compute_widened(data, of)


def _decompose_elu(data: Expr, *, alpha: float) -> Expr:
    below = call("subtract", _scalar(1.0, data), call("exp", data))
    return call("add", call("nn.relu", data), _times(call("nn.relu", below), -alpha))


@_activation("serde.elu", _decompose_elu, alpha=0.5)
def elu(data: Array, *, alpha: float = 1.0) -> Array:
    """``y = x if x > 0 else alpha * (exp(x) - 1)``."""
    return _compute_widened(data, lambda x: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))))


_SELU_ALPHA = 1.6732632423543772
_SELU_GAMMA = 1.0507009873554805


def _decompose_selu(data: Expr, *, alpha: float, gamma: float) -> Expr:
    return _times(_decompose_elu(data, alpha=alpha), gamma)


@_activation("serde.selu", _decompose_selu, alpha=1.5, gamma=1.25)
def selu(data: Array, *, alpha: float = _SELU_ALPHA, gamma: float = _SELU_GAMMA) -> Array:
    """``y = gamma * (x if x > 0 else alpha * (exp(x) - 1))`` (Klambauer, 2017)."""
    return _compute_widened(
        data, lambda x: gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))
    )


def _decompose_silu(data: Expr) -> Expr:
    return call("multiply", data, call("sigmoid", data))


@_activation("serde.silu", _decompose_silu)
def silu(data: Array) -> Array:
    """``y = x * sigmoid(x)``."""
    return _compute_widened(data, lambda x: x * _logistic(x))


def _swiglu_type(gate: TensorType, value: TensorType, *, alpha: float) -> TensorType:
    require_float(gate)
    dtype = require_same_dtype(gate, value)
    if gate.rank != value.rank:
        raise TypeInferenceError(f"ranks differ: {gate!r} and {value!r}")
    shape = [join_dim(a, b) for a, b in zip(gate.shape, value.shape, strict=True)]
    return TensorType(shape, dtype)


def _decompose_swiglu(gate: Expr, value: Expr, *, alpha: float) -> Expr:
    scaled = gate if alpha == 1 else _times(gate, alpha)
    return call("multiply", call("multiply", gate, call("sigmoid", scaled)), value)


@relay_op(
    "serde.swiglu",
    traits=(Elementwise,),
    infer=_swiglu_type,
    decompose=_decompose_swiglu,
    samples=[
        sample((2, 3), (2, 3)),
        sample((4,), (4,), alpha=1.702),
        sample(tensor((2, 3), "float64"), tensor((2, 3), "float64"), alpha=0.5),
        sample(tensor((2, 3), "float16"), tensor((2, 3), "float16")),
    ],
)
def swiglu(gate: Array, value: Array, *, alpha: float = 1.0) -> Array:
    """``y = gate * sigmoid(alpha * gate) * value`` (Shazeer, 2020)."""
    wide = widen(gate)
    return (wide * _logistic(wide.dtype.type(alpha) * wide) * widen(value)).astype(gate.dtype)


@_activation("serde.softplus", _decompose_softplus)
def softplus(data: Array) -> Array:
    """``y = log(1 + exp(x))``, without overflow."""
    return _compute_widened(data, _softplus)


def _decompose_mish(data: Expr) -> Expr:
    return call("multiply", data, call("tanh", _decompose_softplus(data)))


@_activation("serde.mish", _decompose_mish)
def mish(data: Array) -> Array:
    """``y = x * tanh(log(1 + exp(x)))``."""
    return _compute_widened(data, lambda x: x * np.tanh(_softplus(x)))


def _decompose_softsign(data: Expr) -> Expr:
    return call("divide", data, _plus(call("abs", data), 1.0))


@_activation("serde.softsign", _decompose_softsign)
def softsign(data: Array) -> Array:
    """``y = x / (1 + abs(x))``."""
    return _compute_widened(data, lambda x: x / (1 + np.abs(x)))


def _decompose_hard_sigmoid(data: Expr, *, alpha: float, beta: float) -> Expr:
    return call("clip", _plus(_times(data, alpha), beta), a_min=0.0, a_max=1.0)


@_activation(
    "serde.hard_sigmoid",
    _decompose_hard_sigmoid,
    traits=(Cases("clip", ranges.clipped(0.0, 1.0, "alpha", "beta")),),
    alpha=0.125,
    beta=0.25,
)
def hard_sigmoid(data: Array, *, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """``y = min(max(alpha * x + beta, 0), 1)``."""
    return _compute_widened(data, lambda x: np.clip(x * alpha + beta, 0, 1))


def _decompose_hard_swish(data: Expr) -> Expr:
    gate = call("clip", _plus(data, 3.0), a_min=0.0, a_max=6.0)
    return call("multiply", data, _times(gate, 1 / 6))


@_activation(
    "serde.hard_swish", _decompose_hard_swish, traits=(Cases("clip", ranges.clipped(-3.0, 3.0)),)
)
def hard_swish(data: Array) -> Array:
    """``y = x * min(max(x + 3, 0), 6) / 6``."""
    return _compute_widened(data, lambda x: x * (np.clip(x + 3, 0, 6) / 6))


def _decompose_log_sigmoid(data: Expr) -> Expr:
    return call("negative", _decompose_softplus(call("negative", data)))


@_activation("serde.log_sigmoid", _decompose_log_sigmoid)
def log_sigmoid(data: Array) -> Array:
    """``y = -log(1 + exp(-x))``, without overflow."""
    return _compute_widened(data, lambda x: -_softplus(-x))


def _decompose_swish(data: Expr, *, alpha: float) -> Expr:
    return call("multiply", data, call("sigmoid", _times(data, alpha)))


@_activation("serde.swish", _decompose_swish, alpha=1.75)
def swish(data: Array, *, alpha: float = 1.0) -> Array:
    """``y = x * sigmoid(alpha * x)``.

    With `alpha` 1 it is ``serde.silu``; with 1.702 it is known as the quick form of gelu.
    """
    return _compute_widened(data, lambda x: x * _logistic(alpha * x))


def _celu_type(data: TensorType, *, alpha: float) -> TensorType:
    require_float(data)
    if alpha == 0:
        raise TypeInferenceError("alpha: expected a number other than zero, found 0.0")
    return data


def _decompose_celu(data: Expr, *, alpha: float) -> Expr:
    grown = call("exp", call("divide", data, _scalar(alpha, data)))
    below = _times(call("subtract", grown, _scalar(1.0, data)), alpha)
    return call("add", call("nn.relu", data), call("minimum", below, _scalar(0.0, data)))


@_activation("serde.celu", _decompose_celu, infer=_celu_type, alpha=0.5)
def celu(data: Array, *, alpha: float = 1.0) -> Array:
    """``y = max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)``.

    Unlike ``serde.elu`` it is smooth at zero for every `alpha` (Barron, 2017).
    """
    return _compute_widened(
        data, lambda x: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))
    )


def _decompose_thresholded_relu(data: Expr, *, alpha: float) -> Expr:
    above = call("greater", data, _scalar(alpha, data))
    return call("where", above, data, _scalar(0.0, data))


@_activation(
    "serde.thresholded_relu",
    _decompose_thresholded_relu,
    traits=(Values(0), Discontinuous),
    alpha=2.5,
)
def thresholded_relu(data: Array, *, alpha: float = 1.0) -> Array:
    """``y = x if x > alpha else 0``."""
    zero = data.dtype.type(0)
    return np.where(data > data.dtype.type(alpha), data, zero)


def _decompose_shrink(data: Expr, *, lambd: float, bias: float) -> Expr:
    above = call("greater", data, _scalar(lambd, data))
    below = call("less", data, _scalar(-lambd, data))
    lowered = call("subtract", data, _scalar(bias, data))
    rest = call("where", above, lowered, _scalar(0.0, data))
    return call("where", below, _plus(data, bias), rest)


@_activation("serde.shrink", _decompose_shrink, traits=(Discontinuous,), lambd=1.5, bias=0.75)
def shrink(data: Array, *, lambd: float = 0.5, bias: float = 0.0) -> Array:
    """``y = x + bias if x < -lambd else x - bias if x > lambd else 0``.

    With `bias` 0 it shrinks hard, with `bias` equal to `lambd` softly.
    """
    kind = data.dtype.type
    rest = np.where(data > kind(lambd), data - kind(bias), kind(0))
    return np.where(data < kind(-lambd), data + kind(bias), rest)


def _decompose_hardmax(data: Expr, *, axis: int) -> Expr:
    """The greatest elements are counted along the axis, since its length may be symbolic."""
    greatest = call("equal", data, call("max", data, axis=axis, keepdims=True))
    count = call("cumsum", call("cast", greatest, dtype="int32"), axis=axis)
    first = call("logical_and", greatest, call("equal", count, const(1, "int32")))
    return call("cast", first, dtype=tensor_type(data).dtype)


@relay_op(
    "serde.hardmax",
    traits=(SameAxes(("axis",)), SameType, Truth, Ordering),
    infer=_softmax_type,
    decompose=_decompose_hardmax,
    samples=[
        sample((2, 3, 4), axis=1),
        sample((5,)),
        sample(np.array([[1, 3, 3], [2, 2, 0]], np.float32)),
        sample(tensor((2, 3), "float16"), axis=0),
    ],
)
def hardmax(data: Array, *, axis: int = -1) -> Array:
    """``y[i] = 1 if i == argmax(x) else 0`` along `axis`; of equal elements the first counts."""
    result = np.zeros_like(data)
    place = np.expand_dims(data.argmax(axis), axis)
    np.put_along_axis(result, place, data.dtype.type(1), axis)
    return result
