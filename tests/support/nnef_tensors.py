"""Shapes, reductions, normalisations and quantisers of the NNEF 1.0 specification, in NumPy.

A judge: primitives by definition, compounds by the bodies that the specification gives them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from support import nnef_windows as windows

Array = NDArray[np.generic]


def align(*values: Array) -> list[Array]:
    """Return tensors of one rank: shapes broadcast from the first axis on."""
    rank = max(each.ndim for each in values)
    return [each.reshape(each.shape + (1,) * (rank - each.ndim)) for each in values]


def elementwise(f: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function of tensors whose shapes broadcast."""

    @functools.wraps(f)
    def apply(*values: Array, **attributes: float) -> Array:
        return f(*align(*values), **attributes)

    return apply


def half_away(x: Array) -> Array:
    """Round to the nearest integer, halves away from zero.

    The specification says "nearest" and nothing of halves; Khronos' own runtime does this.
    """
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


# Shapes


def reshape(
    input: Array, *, shape: Sequence[int], axis_start: int = 0, axis_count: int = -1
) -> Array:
    """0 copies an extent of the reshaped axes, -1 stands for what is left of them."""
    stop = input.ndim if axis_count == -1 else axis_start + axis_count
    old = input.shape[axis_start:stop]
    new = [old[i] if n == 0 else n for i, n in enumerate(shape)]
    if -1 in new:
        known = -int(np.prod(new, dtype=int))
        new[new.index(-1)] = int(np.prod(old, dtype=int)) // known
    return input.reshape([*input.shape[:axis_start], *new, *input.shape[stop:]])


def transpose(input: Array, *, axes: Sequence[int]) -> Array:
    """Axes beyond those that are named stay."""
    return input.transpose([*axes, *range(len(axes), input.ndim)])


def split(value: Array, *, axis: int, ratios: Sequence[int]) -> list[Array]:
    """Parts in the ratio of integers."""
    unit = value.shape[axis] // sum(ratios)
    return np.split(value, np.cumsum(ratios)[:-1] * unit, axis)


def slice_(
    input: Array,
    *,
    axes: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    stride: Sequence[int] = (),
) -> Array:
    """Elements from `begin` up to `end`, which is 0 for "to the end" at stride 1 only."""
    for i, axis in enumerate(axes):
        extent, step = input.shape[axis], (stride[i] if stride else 1)
        first, last = begin[i], end[i]
        first += extent if first < 0 else 0
        if last < 0:
            last += extent
        elif last == 0 and step == 1:
            last = extent
        first, last = min(max(first, -1), extent), min(max(last, -1), extent)
        input = input.take(list(range(first, last, step)), axis)
    return input


def squeeze(input: Array, *, axes: Sequence[int]) -> Array:
    """Axes of length 1 go."""
    return input.reshape([n for i, n in enumerate(input.shape) if i not in axes])


def unsqueeze(input: Array, *, axes: Sequence[int]) -> Array:
    """`axes` are those of the result."""
    rest = iter(input.shape)
    return input.reshape([1 if i in axes else next(rest) for i in range(input.ndim + len(axes))])


def unstack(value: Array, *, axis: int) -> list[Array]:
    """Every slice across an axis, which goes."""
    return [value.take(i, axis) for i in range(value.shape[axis])]


def gather(input: Array, indices: Array, *, axis: int = 0) -> Array:
    """The axes of the indices stand where the axis was."""
    return input.take(indices.astype(int), axis)


# Reductions keep what they reduce as axes of length 1.


def sum_reduce(input: Array, *, axes: Sequence[int], normalize: bool = False) -> Array:
    """The sum, or the mean."""
    return (np.mean if normalize else np.sum)(input, axis=tuple(axes), keepdims=True)


def mean_reduce(input: Array, *, axes: Sequence[int]) -> Array:
    return sum_reduce(input, axes=axes, normalize=True)


def moments(input: Array, *, axes: Sequence[int]) -> tuple[Array, Array]:
    mean = mean_reduce(input, axes=axes)
    return mean, mean_reduce((input - mean) ** 2, axes=axes)


def arg_reduce(f: Callable[..., Array]) -> Callable[..., Array]:
    """The first place among those of the axes, in row-major order.

    For several axes the specification leaves it open; its editor: the offset within the
    subspace that the axes span (NNEF-Docs, issue 21).
    """

    def apply(input: Array, *, axes: Sequence[int]) -> Array:
        axes = sorted(axes)
        rest = [i for i in range(input.ndim) if i not in axes]
        flat = input.transpose([*rest, *axes]).reshape([*(input.shape[i] for i in rest), -1])
        return f(flat, axis=-1).reshape([1 if i in axes else n for i, n in enumerate(input.shape)])

    return apply


def reduce_by(f: Callable[..., Array]) -> Callable[..., Array]:
    return lambda input, *, axes: f(input, axis=tuple(axes), keepdims=True)


# Activations


def softmax(x: Array, *, axes: Sequence[int] = (1,)) -> Array:
    e = np.exp(x - x.max(axis=tuple(axes), keepdims=True))
    return e / e.sum(axis=tuple(axes), keepdims=True)


def sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def elu(x: Array, *, alpha: float = 1.0) -> Array:
    return np.where(x < 0.0, alpha * (np.exp(x) - 1.0), x)


def selu(x: Array, *, alpha: float = 1.67326319, **rest: float) -> Array:
    return rest.get("lambda", 1.05070102) * elu(x, alpha=alpha)


def gelu(x: Array) -> Array:
    """``x * Phi(x)``, which the specification calls the exact definition.

    The body that it gives is ``x * sigmoid(1.702 x)``, by its own words an approximation.
    """
    return 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0)))


_erf = np.vectorize(math.erf, otypes=[float])


def prelu(x: Array, alpha: Array) -> Array:
    x, alpha = align(x, alpha)
    return np.where(x < 0.0, alpha * x, x)


# Products


def matmul(first: Array, second: Array, **flags: bool) -> Array:
    """Products of the matrices of the last two axes; those before broadcast."""
    a = first.swapaxes(-1, -2) if flags.get("transposeA") else first
    b = second.swapaxes(-1, -2) if flags.get("transposeB") else second
    return (a[..., :, :, None] * b[..., None, :, :]).sum(axis=-2)


def linear(input: Array, filter: Array, bias: Array) -> Array:
    product = matmul(input, filter, transposeB=True)
    product, bias = align(product, bias)
    return product + bias


def separable_conv(
    input: Array,
    plane_filter: Array,
    point_filter: Array,
    bias: Array,
    *,
    groups: int = 1,
    **window: object,
) -> Array:
    nothing = np.zeros(())
    filtered = windows.conv(input, plane_filter, nothing, groups=0, **window)
    return windows.conv(filtered, point_filter, bias, groups=groups)


def separable_deconv(
    input: Array,
    plane_filter: Array,
    point_filter: Array,
    bias: Array,
    *,
    groups: int = 1,
    **window: object,
) -> Array:
    filtered = windows.deconv(input, point_filter, np.zeros(()), groups=groups)
    return windows.deconv(filtered, plane_filter, bias, groups=0, **window)


# Normalisations


def rms_pool(input: Array, **window: object) -> Array:
    return np.sqrt(windows.box(input**2, normalize=True, **window))


def local_response_normalization(
    input: Array, *, size: Sequence[int], alpha: float = 1.0, beta: float = 0.5, bias: float = 1.0
) -> Array:
    sigma = bias + alpha * windows.box(input**2, size=size, normalize=True)
    return input / sigma**beta


def local_mean_normalization(input: Array, *, size: Sequence[int]) -> Array:
    return input - windows.box(input, size=size, normalize=True)


def local_variance_normalization(
    input: Array, *, size: Sequence[int], bias: float = 0.0, epsilon: float = 0.0
) -> Array:
    sigma = np.sqrt(windows.box(input**2, size=size, normalize=True))
    return input / np.maximum(sigma + bias, epsilon)


def local_contrast_normalization(
    input: Array, *, size: Sequence[int], bias: float = 0.0, epsilon: float = 0.0
) -> Array:
    centered = local_mean_normalization(input, size=size)
    return local_variance_normalization(centered, size=size, bias=bias, epsilon=epsilon)


def l1_normalization(
    input: Array, *, axes: Sequence[int], bias: float = 0.0, epsilon: float = 0.0
) -> Array:
    return input / np.maximum(sum_reduce(np.abs(input), axes=axes) + bias, epsilon)


def l2_normalization(
    input: Array, *, axes: Sequence[int], bias: float = 0.0, epsilon: float = 0.0
) -> Array:
    return input / np.maximum(np.sqrt(sum_reduce(input**2, axes=axes)) + bias, epsilon)


def batch_normalization(
    input: Array, mean: Array, variance: Array, offset: Array, scale: Array, *, epsilon: float
) -> Array:
    input, mean, variance, offset, scale = align(input, mean, variance, offset, scale)
    return offset + scale * (input - mean) / np.sqrt(variance + epsilon)


# Quantisers: what is quantised is a scalar all along; only its values are fewer.


def min_max_linear_quantize(
    x: Array, min: Array, max: Array, *, bits: int, signed: bool, symmetric: bool
) -> Array:
    x, min, max = align(x, min, max)
    r = float(2**bits - 1 - int(signed and symmetric))
    p = float(2 ** (bits - 1) - int(symmetric) if signed else 0)
    z = np.maximum(np.minimum(x, max), min)
    q = half_away((z - min) / (max - min) * r) - p
    return (q + p) / r * (max - min) + min


def linear_quantize(x: Array, min: Array, max: Array, *, bits: int) -> Array:
    return min_max_linear_quantize(x, min, max, bits=bits, signed=False, symmetric=False)


def zero_point_linear_quantize(
    x: Array, zero_point: Array, scale: Array, *, bits: int, signed: bool, symmetric: bool
) -> Array:
    x, zero_point, scale = align(x, zero_point, scale)
    r = float(2 ** (bits - 1) - 1 if signed else 2**bits - 1)
    low = 0.0 if not signed else -r if symmetric else -r - 1.0
    q = np.clip(half_away(x / scale) + zero_point, low, r)
    return (q - zero_point) * scale


def logarithmic_quantize(x: Array, max: Array, *, bits: int) -> Array:
    x, max = align(x, max)
    m = np.ceil(np.log2(max))
    with np.errstate(divide="ignore"):
        q = half_away(np.clip(np.log2(np.abs(x)), m - (2**bits - 1), m))
    return np.sign(x) * 2.0**q


def stored_values(data: Array, quantization: dict[str, object]) -> Array:
    """Return what the integers of a quantised variable stand for."""
    given = dict(quantization)
    name = given.pop("op-name")
    if name == "zero_point_linear_quantize":
        pair = _floats(given["zero_point"]), _floats(given["scale"])
        data, zero, scale = align(data.astype(float), *pair)
        return (data - zero) * scale
    if name == "logarithmic_quantize":
        raise NotImplementedError("no definition tells how a logarithm is stored")
    bits = int(given["bits"])
    signed, symmetric = bool(given.get("signed")), bool(given.get("symmetric"))
    r = float(2**bits - 1 - int(signed and symmetric))
    p = float(2 ** (bits - 1) - int(symmetric) if signed else 0)
    pair = _floats(given["min"]), _floats(given["max"])
    data, low, high = align(data.astype(float), *pair)
    return (data + p) / r * (high - low) + low


def _floats(value: object) -> Array:
    return np.asarray(value, float)
