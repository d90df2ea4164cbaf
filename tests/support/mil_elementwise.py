"""Operators of MIL that treat elements one by one, reduce them or scale them, in NumPy.

They follow MIL's documentation and share nothing with the bridge. float16 reaches none of
them: the executor computes in float32 and rounds what an operation gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import erf
from support.mil_kernels import kernel, kernels

Array = np.ndarray


def sigmoid_of(x: Array) -> Array:
    """The logistic function, without overflow on either side."""
    small = np.exp(-np.abs(x))
    return np.where(np.asarray(x) >= 0, 1 / (1 + small), small / (1 + small))


def softplus_of(x: Array) -> Array:
    """Logarithm of one plus the exponential."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _floor_div(x: Array, y: Array) -> Array:
    return np.floor_divide(x, y)


def _divide(x: Array, y: Array) -> Array:
    """Of integers, MIL's quotient has no part behind the point."""
    if np.asarray(x).dtype.kind == "f":
        return np.divide(x, y)
    return np.trunc(np.divide(x, y)).astype(np.asarray(x).dtype)


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "equal": np.equal,
    "floor_div": _floor_div,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "mod": np.mod,
    "mul": np.multiply,
    "not_equal": np.not_equal,
    "pow": np.power,
    "real_div": _divide,
    "sub": np.subtract,
}

_UNARY: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs,
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": erf,
    "exp": np.exp,
    "exp2": np.exp2,
    "floor": np.floor,
    "identity": lambda x: x,
    "logical_not": np.logical_not,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "round": np.rint,
    "sigmoid": sigmoid_of,
    "sign": np.sign,
    "silu": lambda x: x * sigmoid_of(x),
    "sin": np.sin,
    "sinh": np.sinh,
    "softplus": softplus_of,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "sqrt": np.sqrt,
    "square": np.square,
    "tan": np.tan,
    "tanh": np.tanh,
}

kernels(_BINARY, ("x", "y"))
kernels(_UNARY, ("x",))


@kernel
def log(x: Array, epsilon: Any = 1e-45) -> Array:
    return np.log(x + np.float32(epsilon))


@kernel
def rsqrt(x: Array, epsilon: Any = 1e-12) -> Array:
    return 1 / np.sqrt(x + np.float32(epsilon))


@kernel
def inverse(x: Array, epsilon: Any = 1e-4) -> Array:
    return 1 / (x + np.float32(epsilon))


@kernel
def clip(x: Array, alpha: Any, beta: Any) -> Array:
    return np.minimum(np.maximum(x, alpha), beta)


@kernel
def threshold(x: Array, alpha: Any) -> Array:
    return np.maximum(x, alpha)


@kernel
def clamped_relu(x: Array, alpha: Any, beta: Any) -> Array:
    return np.minimum(np.where(x >= 0, x, alpha * x), beta)


@kernel
def thresholded_relu(x: Array, alpha: Any) -> Array:
    return np.where(x >= alpha, x, 0).astype(x.dtype)


@kernel
def leaky_relu(x: Array, alpha: Any = 0.01) -> Array:
    return np.where(x >= 0, x, np.float32(alpha) * x)


@kernel
def elu(x: Array, alpha: Any = 1.0) -> Array:
    return np.where(x >= 0, x, np.float32(alpha) * np.expm1(np.minimum(x, 0)))


def _channels(vector: Array, x: Array) -> Array:
    return np.reshape(vector, (-1, *[1] * (x.ndim - 2)))


@kernel
def prelu(x: Array, alpha: Array) -> Array:
    return np.where(x >= 0, x, _channels(alpha, x) * x)


@kernel
def softplus_parametric(x: Array, alpha: Array, beta: Array) -> Array:
    return _channels(alpha, x) * softplus_of(_channels(beta, x) * x)


@kernel
def linear_activation(x: Array, alpha: Any = 1.0, beta: Any = 0.0) -> Array:
    return np.float32(alpha) * x + np.float32(beta)


@kernel
def scaled_tanh(x: Array, alpha: Any = 1.0, beta: Any = 1.0) -> Array:
    return np.float32(alpha) * np.tanh(np.float32(beta) * x)


@kernel
def sigmoid_hard(x: Array, alpha: Any = 0.2, beta: Any = 0.5) -> Array:
    return np.clip(np.float32(alpha) * x + np.float32(beta), 0, 1)


@kernel
def gelu(x: Array, mode: str = "EXACT") -> Array:
    if mode == "EXACT":
        return x * 0.5 * (1 + erf(x / math.sqrt(2)))
    if mode == "SIGMOID_APPROXIMATION":
        return x * sigmoid_of(np.float32(1.702) * x)
    return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@kernel
def select(cond: Array, a: Array, b: Array) -> Array:
    return np.where(cond, a, b)


_DTYPES = {"fp16": "float16", "fp32": "float32", "int64": "int32"}
"""Names of dtypes that NumPy has otherwise, or that Core ML holds in another."""


@kernel
def cast(x: Array, dtype: str) -> Array:
    """Numbers lose what is behind the point, and become truth values by being other than zero."""
    return np.asarray(x).astype(_DTYPES.get(dtype, dtype))


def _axes(axes: Any) -> tuple[int, ...] | None:
    return None if axes is None else tuple(int(axis) for axis in np.ravel(axes))


_REDUCTIONS: dict[str, Callable[..., Array]] = {
    "reduce_l1_norm": lambda x, **k: np.sum(np.abs(x), **k),
    "reduce_l2_norm": lambda x, **k: np.sqrt(np.sum(np.square(x), **k)),
    "reduce_log_sum": lambda x, **k: np.log(np.sum(x, **k)),
    "reduce_log_sum_exp": lambda x, **k: _log_sum_exp(x, **k),
    "reduce_max": np.max,
    "reduce_mean": np.mean,
    "reduce_min": np.min,
    "reduce_prod": np.prod,
    "reduce_sum": np.sum,
    "reduce_sum_square": lambda x, **k: np.sum(np.square(x), **k),
}


def _log_sum_exp(x: Array, axis: tuple[int, ...] | None, keepdims: bool) -> Array:
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis)


def _reduction(function: Callable[..., Array]) -> Callable[..., Array]:
    def reduced(x: Array, axes: Any = None, keep_dims: Any = False) -> Array:
        given = np.asarray(x)
        found = function(given, axis=_axes(axes), keepdims=bool(keep_dims))
        return np.asarray(found).astype(given.dtype)

    return reduced


for _name, _function in _REDUCTIONS.items():
    kernel(_reduction(_function), _name)


@kernel
def reduce_argmax(
    x: Array, axis: int = -1, keep_dims: bool = False, output_dtype: str = "int32"
) -> Array:
    return np.argmax(x, int(axis), keepdims=bool(keep_dims)).astype(output_dtype)


@kernel
def reduce_argmin(
    x: Array, axis: int = -1, keep_dims: bool = False, output_dtype: str = "int32"
) -> Array:
    return np.argmin(x, int(axis), keepdims=bool(keep_dims)).astype(output_dtype)


@kernel
def softmax(x: Array, axis: int = -1) -> Array:
    weights = np.exp(x - np.max(x, int(axis), keepdims=True))
    return weights / weights.sum(int(axis), keepdims=True)


@kernel
def layer_norm(
    x: Array, axes: Any = None, gamma: Any = None, beta: Any = None, epsilon: Any = 1e-5
) -> Array:
    where = tuple(axis % x.ndim for axis in _axes(axes) or range(x.ndim))
    mean = x.mean(where, keepdims=True)
    scaled = (x - mean) / np.sqrt(np.square(x - mean).mean(where, keepdims=True) + epsilon)
    shape = [
        x.shape[axis] if axis in {a % x.ndim for a in where or ()} else 1 for axis in range(x.ndim)
    ]
    scaled = scaled if gamma is None else scaled * np.reshape(gamma, shape)
    return scaled if beta is None else scaled + np.reshape(beta, shape)


@kernel
def l2_norm(x: Array, epsilon: Any = 1e-6) -> Array:
    """Of an image: the last three axes are one vector."""
    axes = tuple(range(-min(3, x.ndim), 0))
    return x / np.sqrt(np.square(x).sum(axes, keepdims=True) + np.float32(epsilon))


@kernel
def matmul(x: Array, y: Array, transpose_x: Any = False, transpose_y: Any = False) -> Array:
    x = np.swapaxes(x, -1, -2) if transpose_x and x.ndim > 1 else x
    y = np.swapaxes(y, -1, -2) if transpose_y and y.ndim > 1 else y
    return np.matmul(x, y)


@kernel
def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    found = np.matmul(x, np.swapaxes(weight, -1, -2))
    return found if bias is None else found + bias


@kernel
def einsum(values: tuple[Array, ...], equation: str) -> Array:
    return np.einsum(equation, *values, optimize=True)


@kernel
def scaled_dot_product_attention(
    query: Array, key: Array, value: Array, attn_mask: Array | None = None
) -> Array:
    scores = np.matmul(query, np.swapaxes(key, -1, -2)) / math.sqrt(query.shape[-1])
    scores = scores.astype(query.dtype)
    if attn_mask is not None and attn_mask.dtype == bool:
        scores = np.where(attn_mask, scores, -np.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return np.matmul(softmax(scores), value)


_RNG = np.random.default_rng(0)


def _lengths(shape: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in np.ravel(shape))


@kernel
def random_uniform(shape: Array, low: Any = 0.0, high: Any = 1.0, seed: Any = None) -> Array:
    return _RNG.uniform(low, high, _lengths(shape)).astype(np.float32)


@kernel
def random_normal(shape: Array, mean: Any = 0.0, stddev: Any = 1.0, seed: Any = None) -> Array:
    return _RNG.normal(mean, stddev, _lengths(shape)).astype(np.float32)


@kernel
def random_bernoulli(shape: Array, prob: Any = 0.5, seed: Any = None) -> Array:
    return (_RNG.uniform(size=_lengths(shape)) < prob).astype(np.float32)


@kernel
def random_categorical(x: Array, mode: str = "logits", size: Any = 1, seed: Any = None) -> Array:
    """The place of the largest of the logarithms, each with Gumbel's noise."""
    logits = x if mode == "logits" else np.log(x)
    noise = _RNG.gumbel(size=(*x.shape[:-1], int(size), x.shape[-1]))
    return np.argmax(logits[..., None, :] + noise, -1).astype(np.float32)
