"""Operators that reduce axes: sums, extremes, truth, and the places of extremes.

`axis` None means all axes, an empty tuple none; `exclude` reduces all axes but
those named. Half-precision sums are accumulated in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue
from typing import Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.dims import Dim
from serde.relay.expr import Expr
from serde.relay.registry import Array, Sample, builder, call, relay_op, sample, tensor
from serde.relay.shapes import (
    is_float,
    join_dim,
    normalize_axes,
    require_float,
    require_same_dtype,
)
from serde.relay.types import TensorType

__all__: list[str] = []

Axes = int | Sequence[int] | None
Reduction = Callable[..., AnyValue]


def _reduced(rank: int, axis: Sequence[int] | None, exclude: bool) -> tuple[int, ...]:
    """Return the axes that are reduced, in ascending order."""
    if axis is None:
        return tuple(range(rank))
    named = normalize_axes(axis, rank)
    return tuple(i for i in range(rank) if (i in named) != exclude)


def _kept(data: TensorType, axes: Sequence[int], keepdims: bool) -> list[Dim]:
    if keepdims:
        return [1 if i in axes else dim for i, dim in enumerate(data.shape)]
    return [dim for i, dim in enumerate(data.shape) if i not in axes]


def _reduce_type(
    data: TensorType, *, axis: Sequence[int] | None, keepdims: bool, exclude: bool
) -> TensorType:
    axes = _reduced(data.rank, axis, exclude)
    return TensorType(_kept(data, axes, keepdims), data.dtype)


def _number_type(data: TensorType, **attrs: AnyValue) -> TensorType:
    if data.dtype == "bool":
        raise TypeInferenceError("expected a tensor of numbers, found bool")
    return _reduce_type(data, **attrs)


def _truth_type(data: TensorType, **attrs: AnyValue) -> TensorType:
    if data.dtype != "bool":
        raise TypeInferenceError(f"expected a bool tensor, found {data.dtype}")
    return _reduce_type(data, **attrs)


def _extreme_type(data: TensorType, **attrs: AnyValue) -> TensorType:
    result = _reduce_type(data, **attrs)
    axes = _reduced(data.rank, attrs["axis"], attrs["exclude"])
    _require_elements(data, axes)
    return result


def _require_elements(data: TensorType, axes: Sequence[int]) -> None:
    if any(data.shape[axis] == 0 for axis in axes):
        raise TypeInferenceError(f"an axis of {data!r} has no elements to choose from")


def _accumulator(dtype: np.dtype[AnyValue]) -> np.dtype[AnyValue]:
    """Return the dtype to add in: float32 for what is narrower."""
    if is_float(dtype.name) and dtype.itemsize < 4:
        return np.dtype(np.float32)
    return dtype


def _sum(data: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    wide = _accumulator(data.dtype)
    return np.asarray(np.sum(data, axis=axis, keepdims=keepdims, dtype=wide)).astype(data.dtype)


def _prod(data: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    wide = _accumulator(data.dtype)
    return np.asarray(np.prod(data, axis=axis, keepdims=keepdims, dtype=wide)).astype(data.dtype)


def _mean(data: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """Return the mean; of integers, rounded towards zero."""
    wide = _accumulator(data.dtype)
    total = np.asarray(np.sum(data, axis=axis, keepdims=keepdims, dtype=wide))
    count = np.asarray(np.prod([data.shape[i] for i in axis], dtype=np.int64)).astype(wide)
    if is_float(data.dtype.name):
        return np.asarray(total / count).astype(data.dtype)
    return np.asarray((total - np.fmod(total, count)) // count).astype(data.dtype)


def _declare(
    name: str,
    reduction: Reduction,
    doc: str,
    *,
    infer: Callable[..., TensorType],
    dtype: str = "float32",
    more: Sequence[Sample] = (),
) -> None:
    def kernel(
        data: Array,
        *,
        axis: tuple[int, ...] | None = None,
        keepdims: bool = False,
        exclude: bool = False,
    ) -> Array:
        axes = _reduced(data.ndim, axis, exclude)
        with np.errstate(all="ignore"):
            return np.asarray(reduction(data, axis=axes, keepdims=keepdims))

    kernel.__doc__ = doc
    samples = [
        sample(tensor((2, 3, 4), dtype)),
        sample(tensor((2, 3, 4), dtype), axis=1, keepdims=True),
        sample(tensor((2, 3, 4), dtype), axis=[-1, 0]),
        sample(tensor((2, 3, 4), dtype), axis=[1], exclude=True),
        sample(tensor((2, 3), dtype), axis=[]),
        *more,
    ]
    relay_op(name, infer=infer, samples=samples)(kernel)


_OTHERS = [
    sample(tensor((4, 3), "int32", low=-9, high=9), axis=0),
    sample(tensor((4, 3), "float16"), axis=1),
]

_declare("sum", _sum, "Sum over axes.", infer=_number_type, more=_OTHERS)
_declare("prod", _prod, "Product over axes.", infer=_number_type, more=_OTHERS)
_declare("mean", _mean, "Arithmetic mean over axes; of integers, rounded towards zero.",
         infer=_number_type, more=_OTHERS)  # fmt: skip
_declare("max", np.max, "Greatest element over axes.", infer=_extreme_type, more=_OTHERS)
_declare("min", np.min, "Smallest element over axes.", infer=_extreme_type, more=_OTHERS)
_declare("all", np.all, "Whether all are true, over axes.", infer=_truth_type, dtype="bool")
_declare("any", np.any, "Whether one is true, over axes.", infer=_truth_type, dtype="bool")


def _arg_type(
    data: TensorType,
    *,
    axis: Sequence[int] | None,
    keepdims: bool,
    select_last_index: bool,
    exclude: bool,
) -> TensorType:
    axes = _reduced(data.rank, axis, exclude)
    _require_elements(data, axes)
    return TensorType(_kept(data, axes, keepdims), "int32")


def _declare_arg(name: str, choose: Reduction, doc: str) -> None:
    def kernel(
        data: Array,
        *,
        axis: tuple[int, ...] | None = None,
        keepdims: bool = False,
        select_last_index: bool = False,
        exclude: bool = False,
    ) -> Array:
        axes = _reduced(data.ndim, axis, exclude)
        kept = [i for i in range(data.ndim) if i not in axes]
        rows = data.transpose([*kept, *axes]).reshape([data.shape[i] for i in kept] + [-1])
        if select_last_index:
            index = rows.shape[-1] - 1 - choose(rows[..., ::-1], axis=-1)
        else:
            index = choose(rows, axis=-1)
        if keepdims:
            index = np.expand_dims(index, axes)
        return np.asarray(index).astype(np.int32)

    kernel.__doc__ = doc
    ties = tensor((3, 5), "int32", low=0, high=2)
    samples = [
        sample((2, 3, 4)),
        sample((2, 3, 4), axis=1, keepdims=True),
        sample((2, 3, 4), axis=[-1, 0]),
        sample((2, 3, 4), axis=[1], exclude=True, keepdims=True),
        sample(ties, axis=-1),
        sample(ties, axis=-1, select_last_index=True),
        sample(tensor((4,), "bool")),
    ]
    relay_op(name, infer=_arg_type, samples=samples)(kernel)

    def build(
        data: Expr,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        select_last_index: bool = False,
    ) -> Expr:
        return call(
            name,
            data,
            axis=axis,
            keepdims=keepdims,
            exclude=exclude,
            select_last_index=select_last_index,
        )

    build.__name__ = build.__qualname__ = name
    build.__doc__ = doc
    builder(name)(build)


_declare_arg("argmax", np.argmax, "Place of the greatest element over axes, as int32; among equals "
             "the first, or the last if asked. Of several axes, the row-major one.")  # fmt: skip
_declare_arg("argmin", np.argmin, "Place of the smallest element over axes, as int32; among equals "
             "the first, or the last if asked. Of several axes, the row-major one.")  # fmt: skip


def _variance_type(
    data: TensorType,
    mean: TensorType,
    *,
    axis: Sequence[int] | None,
    keepdims: bool,
    exclude: bool,
    unbiased: bool,
) -> TensorType:
    require_float(data)
    require_same_dtype(data, mean)
    axes = _reduced(data.rank, axis, exclude)
    expected = _kept(data, axes, True)
    if mean.rank != data.rank:
        raise TypeInferenceError(f"expected a mean of rank {data.rank}, found {mean!r}")
    for wanted, found in zip(expected, mean.shape, strict=True):
        join_dim(wanted, found)
    return TensorType(_kept(data, axes, keepdims), data.dtype)


@relay_op(
    "variance",
    infer=_variance_type,
    samples=[
        sample((2, 3, 4), (1, 1, 1)),
        sample((2, 3, 4), (2, 1, 4), axis=1, keepdims=True),
        sample((2, 3, 4), (1, 3, 1), axis=[1], exclude=True, unbiased=True),
        sample(tensor((4, 3), "float16"), tensor((4, 1), "float16"), axis=1),
    ],
)
def variance(
    data: Array,
    mean: Array,
    *,
    axis: tuple[int, ...] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
) -> Array:
    """Mean squared distance from `mean` over axes; `unbiased` divides by one less."""
    axes = _reduced(data.ndim, axis, exclude)
    wide = _accumulator(data.dtype)
    distance = data.astype(wide, copy=False) - mean.astype(wide, copy=False)
    count = int(np.prod([data.shape[i] for i in axes], dtype=np.int64)) - int(unbiased)
    with np.errstate(all="ignore"):
        total = np.sum(distance * distance, axis=axes, keepdims=keepdims)
        return np.asarray(total / wide.type(count)).astype(data.dtype)


@builder("variance")
def build_variance(
    data: Expr,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
    with_mean: Expr | None = None,
) -> Expr:
    """Return the variance over `axis`, about `with_mean` or else about the mean computed here."""
    mean = with_mean
    if mean is None:
        mean = call("mean", data, axis=axis, keepdims=True, exclude=exclude)
    return call(
        "variance",
        data,
        mean,
        axis=axis,
        keepdims=keepdims,
        exclude=exclude,
        unbiased=unbiased,
    )


@builder("std")
def build_std(
    data: Expr,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
) -> Expr:
    """Return the standard deviation over `axis`."""
    return call("sqrt", build_variance(data, axis, keepdims, exclude, unbiased))


@builder("mean_variance")
def build_mean_variance(
    data: Expr,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
) -> tuple[Expr, Expr]:
    """Return mean and variance over `axis`."""
    mean = call("mean", data, axis=axis, keepdims=True, exclude=exclude)
    spread = build_variance(data, axis, keepdims, exclude, unbiased, mean)
    if not keepdims:
        mean = call("mean", data, axis=axis, keepdims=False, exclude=exclude)
    return mean, spread


@builder("mean_std")
def build_mean_std(
    data: Expr, axis: Axes = None, keepdims: bool = False, exclude: bool = False
) -> tuple[Expr, Expr]:
    """Return mean and standard deviation over `axis`."""
    mean, spread = build_mean_variance(data, axis, keepdims, exclude)
    return mean, call("sqrt", spread)


@builder("logsumexp")
def build_logsumexp(data: Expr, axis: Axes = None, keepdims: bool = False) -> Expr:
    """Return the logarithm of the sum of exponentials over `axis`, without overflow."""
    peak = call("max", data, axis=axis, keepdims=True)
    total = call("sum", call("exp", call("subtract", data, peak)), axis=axis, keepdims=True)
    result = call("add", call("log", total), peak)
    return result if keepdims else call("squeeze", result, axis=axis)


def _nll_loss_type(
    predictions: TensorType,
    targets: TensorType,
    weights: TensorType,
    *,
    reduction: str,
    ignore_index: int,
) -> TensorType:
    require_float(predictions)
    dtype = require_same_dtype(predictions, weights)
    if predictions.rank != targets.rank + 1 or weights.rank != 1:
        raise TypeInferenceError(
            f"targets {targets!r} and weights {weights!r} do not fit predictions {predictions!r}"
        )
    if targets.dtype not in ("int32", "int64"):
        raise TypeInferenceError(f"expected classes as int32 or int64, found {targets!r}")
    classes = min(1, targets.rank)
    join_dim(predictions.shape[classes], weights.shape[0])
    rest = predictions.shape[:classes] + predictions.shape[classes + 1 :]
    shape = [join_dim(a, b) for a, b in zip(rest, targets.shape, strict=True)]
    return TensorType(shape if reduction == "none" else (), dtype)


_CLASSES = tensor((4,), "int32", low=0, high=4)


@relay_op(
    "nn.nll_loss",
    infer=_nll_loss_type,
    samples=[
        sample((4, 5), _CLASSES, tensor((5,), low=0.5), ignore_index=-100),
        sample((4, 5), _CLASSES, tensor((5,), low=0.5), reduction="sum", ignore_index=2),
        sample((2, 5, 3), np.array([[0, -1, 4], [-1, 2, 3]], np.int64), (5,), reduction="none",
               ignore_index=-1),
        sample((5,), tensor((), "int32", low=0, high=4), (5,), reduction="none", ignore_index=-1),
    ],
)  # fmt: skip
def nll_loss(
    predictions: Array,
    targets: Array,
    weights: Array,
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
    ignore_index: int,
) -> Array:
    """The weighted negative of the prediction of each target class; 0 where that is ignored.

    Classes are on axis 1, of a vector on its only axis. The mean divides by the sum of the
    weights.
    """
    axis = min(1, targets.ndim)
    kept = targets != ignore_index
    classes = np.where(kept, targets, 0)
    found = np.take_along_axis(predictions, np.expand_dims(classes, axis), axis).squeeze(axis)
    factors = np.where(kept, weights[classes], 0).astype(np.float64)
    losses = -found * factors
    if reduction == "mean":
        losses = losses.sum() / factors.sum()
    elif reduction == "sum":
        losses = losses.sum()
    return np.asarray(losses).astype(predictions.dtype)


@builder("nn.nll_loss")
def build_nll_loss(
    predictions: Expr,
    targets: Expr,
    weights: Expr,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Expr:
    """Build ``nn.nll_loss``."""
    return call(
        "nn.nll_loss",
        predictions,
        targets,
        weights,
        reduction=reduction,
        ignore_index=ignore_index,
    )
