"""Normalisation over all axes from one on: by the root mean square, by mean and variance."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.core import dataclass, dtype_name
from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, Float32, Tuple, as_dtype, const, tensor_type, widen
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import is_float, join_dim, normalize_axis, require_float
from serde.relay.ir.types import TensorType

_FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True, kw_only=True)
class StashedNorm:
    """Attributes of ``serde.layer_norm``."""

    axis: int = -1
    epsilon: float = 1e-5
    stash_dtype: np.dtype[AnyValue] = _FLOAT32


def _rms_norm_type(data: TensorType, gamma: TensorType, *, axis: int, epsilon: float) -> TensorType:
    require_float(data, gamma)
    start = normalize_axis(axis, data.rank)
    if gamma.rank != data.rank - start or gamma.dtype != data.dtype:
        raise TypeInferenceError(f"{gamma!r} does not scale axes {start} and on of {data!r}")
    shape: list[Dim] = list(data.shape)
    for index, length in enumerate(gamma.shape, start):
        shape[index] = join_dim(shape[index], length)
    return TensorType(shape, data.dtype)


def _complete_rms_norm(
    data: TensorType | None, gamma: TensorType | None, *, axis: int, epsilon: float
) -> tuple[TensorType | None, ...]:
    if data is None or gamma is not None:
        return data, gamma
    return data, TensorType(data.shape[normalize_axis(axis, data.rank) :], data.dtype)


def _decompose_rms_norm(data: Expr, gamma: Expr, *, axis: int, epsilon: float) -> Expr:
    type_ = tensor_type(data)
    axes = tuple(range(normalize_axis(axis, type_.rank), type_.rank))
    power = call("mean", call("multiply", data, data), axis=axes, keepdims=True)
    factor = call("rsqrt", call("add", power, const(epsilon, type_.dtype)))
    return call("multiply", call("multiply", data, factor), gamma)


@relay_op(
    "serde.rms_norm",
    infer=_rms_norm_type,
    complete=_complete_rms_norm,
    decompose=_decompose_rms_norm,
    samples=[sample((2, 3, 4), (4,)), sample((2, 3, 4), (3, 4), axis=1, epsilon=1e-3)],
)
def rms_norm(data: Array, gamma: Array, *, axis: int = -1, epsilon: float = 1e-5) -> Array:
    """``y = x / sqrt(mean(x**2) + epsilon) * gamma``, the mean over the axes from `axis` on.

    `gamma` has the lengths of those axes (Zhang and Sennrich, 2019).
    """
    wide = widen(data)
    axes = tuple(range(axis % data.ndim, data.ndim))
    power = np.square(wide).mean(axes, keepdims=True) + wide.dtype.type(epsilon)
    return (wide / np.sqrt(power) * widen(gamma)).astype(data.dtype, copy=False)


def _layer_norm_type(
    data: TensorType, gamma: TensorType, beta: TensorType | None, *, norm: StashedNorm
) -> tuple[TensorType, TensorType, TensorType]:
    stash = dtype_name(norm.stash_dtype)
    if not is_float(stash):
        raise TypeInferenceError(f"stash_dtype: expected a floating-point type, found {stash}")
    result = _rms_norm_type(data, gamma, axis=norm.axis, epsilon=norm.epsilon)
    if beta is not None:
        result = _rms_norm_type(result, beta, axis=norm.axis, epsilon=norm.epsilon)
    start = normalize_axis(norm.axis, data.rank)
    kept = TensorType([*data.shape[:start], *[1] * (data.rank - start)], stash)
    return result, kept, kept


def _complete_layer_norm(
    data: TensorType | None,
    gamma: TensorType | None,
    beta: TensorType | None,
    *,
    axis: int,
    **_: AnyValue,
) -> tuple[TensorType | None, ...]:
    if data is None:
        return data, gamma, beta
    vector = TensorType(data.shape[normalize_axis(axis, data.rank) :], data.dtype)
    return data, gamma or vector, beta or vector


def _decompose_layer_norm(data: Expr, gamma: Expr, beta: Expr | None, *, norm: StashedNorm) -> Expr:
    type_ = tensor_type(data)
    stash, dtype, rank = dtype_name(norm.stash_dtype), type_.dtype, type_.rank
    axes = tuple(range(normalize_axis(norm.axis, rank), rank))
    wide = as_dtype(data, stash)
    mean = call("mean", wide, axis=axes, keepdims=True)
    centred = call("subtract", wide, mean)
    variance = call("mean", call("multiply", centred, centred), axis=axes, keepdims=True)
    inverse = call("rsqrt", call("add", variance, const(norm.epsilon, stash)))
    result = call("multiply", as_dtype(call("multiply", centred, inverse), dtype), gamma)
    if beta is not None:
        result = call("add", result, beta)
    return Tuple([result, mean, inverse])


@relay_op(
    "serde.layer_norm",
    traits=(Float32("norms", default=False),),
    infer=_layer_norm_type,
    complete=_complete_layer_norm,
    decompose=_decompose_layer_norm,
    samples=[
        sample((2, 3, 4), (4,), (4,)),
        sample((2, 3, 4), (3, 4), (3, 4), axis=1, epsilon=1e-3),
        sample((2, 3, 4), (2, 3, 4), axis=0),
        sample(tensor((2, 8), "float16"), tensor((8,), "float16"), tensor((8,), "float16")),
    ],
)
def layer_norm(
    data: Array, gamma: Array, beta: Array | None, *, norm: StashedNorm
) -> tuple[Array, Array, Array]:
    """``y = (x - mean) / sqrt(var + epsilon) * gamma + beta``; mean; ``1 / sqrt(var + epsilon)``.

    Mean and variance are over the axes from `axis` on, and computed in `stash_dtype`, as are the
    second and third result. `gamma` and `beta` have the lengths of those axes (Ba, Kiros and
    Hinton, 2016). ``nn.layer_norm`` takes one axis, any.
    """
    axes = tuple(range(norm.axis % data.ndim, data.ndim))
    wide = widen(data.astype(norm.stash_dtype, copy=False))
    mean = wide.mean(axes, keepdims=True)
    centred = wide - mean
    power = np.square(centred).mean(axes, keepdims=True) + wide.dtype.type(norm.epsilon)
    inverse = 1 / np.sqrt(power)
    result = widen((centred * inverse).astype(data.dtype)) * widen(gamma)
    if beta is not None:
        result = result + widen(beta)
    return (
        result.astype(data.dtype),
        mean.astype(norm.stash_dtype),
        inverse.astype(norm.stash_dtype),
    )
