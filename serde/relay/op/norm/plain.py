"""Normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, TypeVar

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Expr, TensorType, TupleGetItem, TupleWrapper, widen
from serde.relay.ir.registry import Arguments, Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.shapes import join_dim, normalize_axes, normalize_axis, require_float
from serde.relay.ir.traits import Float32, Fusion, FusionPattern, SameAxes, SameType, Values
from serde.relay.ir.work import windows
from serde.relay.op.norm import bodies

__all__ = ["ChannelNorm", "GroupNorm"]

T = TypeVar("T")
Types = tuple[TensorType | None, ...]


class _Affine:
    center: bool
    scale: bool

    def affine(self, gamma: T, beta: T) -> tuple[T | None, T | None]:
        """Return the factor and the term, None for what is not used."""
        return gamma if self.scale else None, beta if self.center else None


@dataclass(frozen=True, kw_only=True)
class GroupNorm(_Affine):
    """Attributes of ``nn.group_norm``."""

    num_groups: int = 0
    axis: int = 1
    epsilon: float = 1e-05
    center: bool = True
    scale: bool = True


@dataclass(frozen=True, kw_only=True)
class ChannelNorm(_Affine):
    """Attributes of a normalisation along channels."""

    axis: int = 1
    epsilon: float = 1e-05
    center: bool = True
    scale: bool = True


_LAST = ChannelNorm(axis=-1)


def _along(values: Array, data: Array, axis: int) -> Array:
    """Return a vector shaped to broadcast along one axis of `data`."""
    shape = [1] * data.ndim
    shape[axis] = -1
    return widen(values).reshape(shape)


def _with_channels(data: TensorType, vectors: Sequence[TensorType], axis: int) -> TensorType:
    """Return the type of `data`, its length along `axis` joined with that of `vectors`."""
    require_float(data, *vectors)
    axis = normalize_axis(axis, data.rank)
    length = data.shape[axis]
    for vector in vectors:
        if vector.rank != 1:
            raise TypeInferenceError(f"expected a tensor of rank 1, found {vector!r}")
        try:
            length = join_dim(length, vector.shape[0])
        except TypeInferenceError:
            raise TypeInferenceError(
                f"{vector.shape[0]} values do not fit axis {axis} of {data!r}"
            ) from None
    return TensorType((*data.shape[:axis], length, *data.shape[axis + 1 :]), data.dtype)


def _fill(types: Sequence[TensorType | None], axis: int) -> Types:
    data = types[0]
    if data is None:
        return tuple(types)
    vector = TensorType([data.shape[normalize_axis(axis, data.rank)]], data.dtype)
    return tuple(vector if type_ is None else type_ for type_ in types)


def _batch_norm_type(
    data: TensorType,
    gamma: TensorType,
    beta: TensorType,
    moving_mean: TensorType,
    moving_var: TensorType,
    *,
    axis: int,
    **_: AnyValue,
) -> tuple[TensorType, TensorType, TensorType]:
    result = _with_channels(data, (gamma, beta, moving_mean, moving_var), axis)
    return result, moving_mean, moving_var


def _complete_norm(*types: TensorType | None, axis: int, **_: AnyValue) -> Types:
    return _fill(types, axis)


_VARIANCE = tensor((3,), low=0.5, high=2.0)


@relay_op(
    "nn.batch_norm",
    traits=(SameAxes(("axis",)), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE), Float32("norms")),
    infer=_batch_norm_type,
    decompose=bodies.batch_norm_body,
    complete=_complete_norm,
    samples=[
        sample((2, 3, 4), (3,), (3,), (3,), _VARIANCE),
        sample((2, 4, 3), (3,), (3,), (3,), _VARIANCE, axis=-1, epsilon=1e-3, scale=False),
        sample((2, 3), (3,), (3,), (3,), _VARIANCE, center=False),
    ],
)
def batch_norm(
    data: Array,
    gamma: Array,
    beta: Array,
    moving_mean: Array,
    moving_var: Array,
    *,
    norm: ChannelNorm,
) -> tuple[Array, Array, Array]:
    """``y = (x - mean) / sqrt(var + epsilon) * gamma + beta``; then the recorded mean and var.

    All of these are vectors along `axis`. `scale` says whether to multiply by `gamma`, `center`
    whether to add `beta`.
    """
    variance = _along(moving_var, data, norm.axis)
    factor = 1 / np.sqrt(variance + variance.dtype.type(norm.epsilon))
    if norm.scale:
        factor = factor * _along(gamma, data, norm.axis)
    shift = -_along(moving_mean, data, norm.axis) * factor
    if norm.center:
        shift = shift + _along(beta, data, norm.axis)
    result = widen(data) * factor
    result += shift
    return result.astype(data.dtype, copy=False), moving_mean, moving_var


@builder("nn.batch_norm")
def build_batch_norm(
    data: Expr, gamma: Expr, beta: Expr, moving_mean: Expr, moving_var: Expr, axis: int = 1,
    epsilon: float = 1e-5, center: bool = True, scale: bool = True,
) -> TupleWrapper:  # fmt: skip
    """Build ``nn.batch_norm``: the normalised data, the mean and the variance."""
    node = call(
        "nn.batch_norm", data, gamma, beta, moving_mean, moving_var, axis=axis, epsilon=epsilon,
        center=center, scale=scale,
    )  # fmt: skip
    return TupleWrapper(node, 3)


def _affine_type(
    data: TensorType, gamma: TensorType, beta: TensorType, *, axis: int, **_: AnyValue
) -> TensorType:
    return _infer_affine(data, gamma, beta, axis)


def _infer_affine(data: TensorType, gamma: TensorType, beta: TensorType, axis: int) -> TensorType:
    """Return the type of `data` scaled and shifted along an axis by values of its dtype."""
    for vector in (gamma, beta):
        if vector.dtype != data.dtype:
            raise TypeInferenceError(f"dtypes differ: {data.dtype}, {vector.dtype}")
    return _with_channels(data, (gamma, beta), axis)


def _standardize(data: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    """Return `data` less its mean over `axes`, divided by the root of its variance."""
    centred = data - data.mean(axes, keepdims=True)
    variance = np.square(centred).mean(axes, keepdims=True)
    return centred / np.sqrt(variance + data.dtype.type(epsilon))


def _affine(
    data: Array, values: Array, gamma: Array, beta: Array, norm: ChannelNorm | GroupNorm
) -> Array:
    """Return normal values scaled and shifted, in the dtype of `data`."""
    if norm.scale:
        values = values * _along(gamma, values, norm.axis)
    if norm.center:
        values = values + _along(beta, values, norm.axis)
    return values.astype(data.dtype, copy=False)


@relay_op(
    "nn.layer_norm",
    traits=(SameAxes(("axis",)), Float32("norms")),
    infer=_affine_type,
    decompose=bodies.layer_norm_body,
    complete=_complete_norm,
    samples=[
        sample((2, 3, 4), (4,), (4,)),
        sample((2, 3, 4), (3,), (3,), axis=1, epsilon=1e-12, scale=False),
        sample(tensor((2, 4), "float16"), tensor((4,), "float16"), tensor((4,), "float16")),
    ],
)
def layer_norm(data: Array, gamma: Array, beta: Array, *, norm: ChannelNorm = _LAST) -> Array:
    """``y = (x - mean(x)) / sqrt(var(x) + epsilon) * gamma + beta`` over one axis."""
    values = _standardize(widen(data), (norm.axis,), norm.epsilon)
    return _affine(data, values, gamma, beta, norm)


@relay_op(
    "nn.instance_norm",
    traits=(SameAxes(("axis",), batch=True), Float32("norms")),
    infer=_affine_type,
    decompose=bodies.instance_norm_body,
    complete=_complete_norm,
    samples=[
        sample((2, 3, 4, 5), (3,), (3,)),
        sample((2, 4, 3), (3,), (3,), axis=-1, center=False),
    ],
)
def instance_norm(data: Array, gamma: Array, beta: Array, *, norm: ChannelNorm) -> Array:
    """``y = (x - mean(x)) / sqrt(var(x) + epsilon) * gamma + beta``, for each channel and sample.

    Mean and variance are over all axes but `axis` and axis 0.
    """
    kept = (0, norm.axis % data.ndim)
    axes = tuple(i for i in range(data.ndim) if i not in kept)
    values = _standardize(widen(data), axes, norm.epsilon)
    return _affine(data, values, gamma, beta, norm)


def _group_norm_type(
    data: TensorType,
    gamma: TensorType,
    beta: TensorType,
    *,
    num_groups: int,
    axis: int,
    **_: AnyValue,
) -> TensorType:
    result = _infer_affine(data, gamma, beta, axis)
    channels = result.shape[normalize_axis(axis, data.rank)]
    if num_groups < 1 or (type(channels) is int and channels % num_groups):
        raise TypeInferenceError(f"{channels} channels do not form {num_groups} groups")
    return result


def _complete_group_norm(*types: TensorType | None, axis: int, **_: AnyValue) -> Types:
    return _fill(types, axis)


@relay_op(
    "nn.group_norm",
    traits=(SameAxes(("axis",), batch=True), Float32("norms")),
    infer=_group_norm_type,
    decompose=bodies.group_norm_body,
    complete=_complete_group_norm,
    samples=[
        sample((2, 6, 4), (6,), (6,), num_groups=3),
        sample((2, 4, 4), (4,), (4,), num_groups=2, axis=2, scale=False),
    ],
)
def group_norm(data: Array, gamma: Array, beta: Array, *, norm: GroupNorm) -> Array:
    """``y = (x - mean(x)) / sqrt(var(x) + epsilon) * gamma + beta``.

    Mean and variance are over each of `num_groups` groups of adjacent channels of each sample.
    """
    axis = norm.axis % data.ndim
    channels = data.shape[axis]
    groups = norm.num_groups
    split = (*data.shape[:axis], groups, channels // groups, *data.shape[axis + 1 :])
    axes = tuple(i for i in range(1, data.ndim + 1) if i != axis)
    values = _standardize(widen(data).reshape(split), axes, norm.epsilon).reshape(data.shape)
    return _affine(data, values, gamma, beta, norm)


def _lrn_type(data: TensorType, *, size: int, axis: int, **_: AnyValue) -> TensorType:
    require_float(data)
    normalize_axis(axis, data.rank)
    if size < 1 or size % 2 == 0:
        raise TypeInferenceError(f"size: expected an odd number, found {size}")
    return data


@relay_op(
    "nn.lrn",
    traits=(windows("size"), SameAxes(("axis",)), SameType, Float32()),
    infer=_lrn_type,
    decompose=bodies.lrn_body,
    samples=[
        sample((2, 7, 3, 4)),
        sample((1, 3, 4, 6), size=3, axis=3, bias=1.0, alpha=0.5, beta=0.5),
    ],
    arguments=Arguments(defaults={"alpha": 1e-05}),
)
def lrn(
    data: Array,
    *,
    size: int = 5,
    axis: int = 1,
    bias: float = 2.0,
    alpha: float = 0.0001,
    beta: float = 0.75,
) -> Array:
    """``y = x / (bias + alpha / size * sum(x**2)) ** beta``.

    The sum is over the `size` neighbours of each element along `axis`; beyond the ends there is
    nothing to add.
    """
    wide = np.moveaxis(widen(data), axis, 0)
    half = size // 2
    padded = np.zeros((wide.shape[0] + 2 * half, *wide.shape[1:]), wide.dtype)
    padded[half : half + wide.shape[0]] = np.square(wide)
    total = np.zeros_like(wide)
    for offset in range(size):
        total += padded[offset : offset + wide.shape[0]]
    result = wide / (bias + alpha / size * total) ** beta
    return np.moveaxis(result, 0, axis).astype(data.dtype, copy=False)


def _l2_normalize_type(data: TensorType, *, eps: float, axis: tuple[int, ...]) -> TensorType:
    require_float(data)
    normalize_axes(axis, data.rank)
    return data


@relay_op(
    "nn.l2_normalize",
    traits=(SameAxes(("axis",)), SameType, Float32()),
    infer=_l2_normalize_type,
    decompose=bodies.l2_normalize_body,
    samples=[
        sample((2, 3, 4), eps=1e-5, axis=(1,)),
        sample((2, 3), eps=1e3, axis=()),
        sample((2, 3), eps=1e-5, axis=()),
    ],
)
def l2_normalize(data: Array, *, eps: float, axis: tuple[int, ...]) -> Array:
    """``y = x / sqrt(max(sum(x**2), eps))``, the sum over `axis`.

    No axis stands for all of them.
    """
    wide = widen(data)
    total = np.square(wide).sum(axis or None, keepdims=True)
    return (wide / np.sqrt(np.maximum(total, eps))).astype(data.dtype, copy=False)


@builder("nn.l2_normalize")
def build_l2_normalize(data: Expr, eps: float, axis: int | Sequence[int] | None = None) -> Expr:
    """Build ``nn.l2_normalize``, over all axes unless `axis` is given."""
    return call("nn.l2_normalize", data, eps=eps, axis=() if axis is None else axis)


def _dropout_type(data: TensorType, *, rate: float) -> tuple[TensorType, TensorType]:
    if not 0 <= rate <= 1:
        raise TypeInferenceError(f"rate: expected a number between 0 and 1, found {rate}")
    return data, data


@relay_op(
    "nn.dropout",
    traits=(Values(0), SameAxes()),
    infer=_dropout_type,
    decompose=bodies.dropout_body,
    samples=[sample((2, 3)), sample((4,), rate=0.1)],
)
def dropout(data: Array, *, rate: float = 0.5) -> tuple[Array, Array]:
    """``y = x``, for at inference nothing is dropped, and ``mask = 1``."""
    return data, np.ones_like(data)


@builder("nn.dropout")
def build_dropout(data: Expr, rate: float = 0.5) -> Expr:
    """Build ``nn.dropout`` and take the data, leaving the mask."""
    return TupleGetItem(call("nn.dropout", data, rate=rate), 0)


@builder("nn.dropout_raw")
def build_dropout_raw(data: Expr, rate: float = 0.5) -> Expr:
    """Build ``nn.dropout`` itself, which yields the data and the mask."""
    return call("nn.dropout", data, rate=rate)
