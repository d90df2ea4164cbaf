"""Normalisation to unit variance over axes, and to unit length along one."""

from __future__ import annotations

from typing import Literal

import numpy as np

from serde.relay.ir import Expr, SameAxes, SameType, TensorType, const, tensor_type, widen
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import normalize_axes, normalize_axis, require_float

_EPSILON = 1e-9
"""What ONNX's definition adds to the deviation of MeanVarianceNormalization."""


def _mean_variance_type(data: TensorType, *, axes: tuple[int, ...]) -> TensorType:
    require_float(data)
    normalize_axes(axes, data.rank)
    return data


def _decompose_mean_variance(data: Expr, *, axes: tuple[int, ...]) -> Expr:
    mean = call("mean", data, axis=axes, keepdims=True)
    centred = call("subtract", data, mean)
    variance = call("mean", call("multiply", centred, centred), axis=axes, keepdims=True)
    deviation = call("add", call("sqrt", variance), const(_EPSILON, tensor_type(data).dtype))
    return call("divide", centred, deviation)


@relay_op(
    "serde.mean_variance_normalization",
    infer=_mean_variance_type,
    decompose=_decompose_mean_variance,
    samples=[
        sample((2, 3, 4, 5)),
        sample((2, 3, 4), axes=(1, -1)),
        sample(np.array([[3, 3, 3], [0, 1, 2]], np.float32), axes=(1,)),
        sample(tensor((2, 8), "float64"), axes=(1,)),
    ],
)
def mean_variance_normalization(data: Array, *, axes: tuple[int, ...] = (0, 2, 3)) -> Array:
    """``y = (x - mean(x)) / (sqrt(mean(x**2) - mean(x)**2) + 1e-9)`` over `axes`."""
    wide = widen(data)
    centred = wide - wide.mean(axes, keepdims=True)
    deviation = np.sqrt(np.square(centred).mean(axes, keepdims=True))
    return (centred / (deviation + wide.dtype.type(_EPSILON))).astype(data.dtype, copy=False)


def _lp_type(data: TensorType, *, axis: int, p: int) -> TensorType:
    require_float(data)
    normalize_axis(axis, data.rank)
    return data


def _decompose_lp(data: Expr, *, axis: int, p: int) -> Expr:
    """A length of zero becomes one, and zero over one is zero."""
    terms = call("abs", data) if p == 1 else call("multiply", data, data)
    length = call("sum", terms, axis=axis, keepdims=True)
    if p == 2:
        length = call("sqrt", length)
    zero, one = (const(value, tensor_type(data).dtype) for value in (0.0, 1.0))
    return call("divide", data, call("where", call("equal", length, zero), one, length))


@relay_op(
    "serde.lp_normalization",
    traits=(SameAxes(("axis",)), SameType),
    infer=_lp_type,
    decompose=_decompose_lp,
    samples=[
        sample((2, 3, 4)),
        sample((2, 3, 4), axis=1, p=1),
        sample(np.array([[0, 0], [3, 4]], np.float32), axis=1),
        sample(tensor((2, 3), "float64"), axis=0, p=1),
    ],
)
def lp_normalization(data: Array, *, axis: int = -1, p: Literal[1, 2] = 2) -> Array:
    """``y = x / sum(abs(x) ** p) ** (1 / p)`` along `axis`.

    Where all is zero, the result is zero.
    """
    wide = widen(data)
    if p == 1:
        length = np.abs(wide).sum(axis, keepdims=True)
    else:
        length = np.sqrt(np.square(wide).sum(axis, keepdims=True))
    length = np.where(length == 0, wide.dtype.type(1), length)
    return (wide / length).astype(data.dtype, copy=False)
