"""Operators that reduce axes: sums, extremes, truth, and the places of extremes.

`axis` None means all axes, an empty tuple none; `exclude` reduces all axes but
those named. Half-precision sums are accumulated in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any as AnyValue

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Arguments, Array, Sample, Traits, builder, call, relay_op, sample, tensor
from serde.relay.ir.dims import Dim, product
from serde.relay.ir.expr import Call, Expr, Tuple, TupleWrapper, const, tensor_type
from serde.relay.ir.shapes import (
    is_float,
    join_dim,
    reduced_axes,
    require_float,
    require_same_dtype,
)
from serde.relay.ir.traits import Arithmetic, Float32, Ordering, Reduction, Truth, Values
from serde.relay.ir.types import TensorType
from serde.relay.lowering.lengths import length_of

__all__ = [
    "ReducedAxes", "accumulator", "declare", "extreme_type", "number_type", "reduce_type",
    "reduces_one_axis",
]  # fmt: skip

Axes = int | Sequence[int] | None
Reduce = Callable[..., AnyValue]


@dataclass(frozen=True, kw_only=True)
class ReducedAxes:
    """Attributes that the reductions share."""

    axis: tuple[int, ...] | None
    keepdims: bool
    exclude: bool

    def axes(self, rank: int) -> tuple[int, ...]:
        """Return the axes that are reduced, in ascending order."""
        return reduced_axes(rank, self.axis, self.exclude)


def reduces_one_axis(node: Call) -> bool:
    """Whether a call reduces a single axis."""
    rank = tensor_type(node.args[0]).rank
    return len(reduced_axes(rank, node.attrs["axis"], node.attrs["exclude"])) == 1


def _reduce_shape(data: TensorType, axes: Sequence[int], keepdims: bool) -> list[Dim]:
    if keepdims:
        return [1 if i in axes else dim for i, dim in enumerate(data.shape)]
    return [dim for i, dim in enumerate(data.shape) if i not in axes]


def reduce_type(
    data: TensorType, *, axis: Sequence[int] | None, keepdims: bool, exclude: bool
) -> TensorType:
    """Return the type of a reduction to the dtype of `data`."""
    axes = reduced_axes(data.rank, axis, exclude)
    return TensorType(_reduce_shape(data, axes, keepdims), data.dtype)


def number_type(data: TensorType, **attrs: AnyValue) -> TensorType:
    """Return the type of a reduction of numbers."""
    if data.dtype == "bool":
        raise TypeInferenceError("expected a tensor of numbers, found bool")
    return reduce_type(data, **attrs)


def _truth_type(data: TensorType, **attrs: AnyValue) -> TensorType:
    if data.dtype != "bool":
        raise TypeInferenceError(f"expected a bool tensor, found {data.dtype}")
    return reduce_type(data, **attrs)


def extreme_type(data: TensorType, **attrs: AnyValue) -> TensorType:
    """Return the type of a reduction that needs an element to choose."""
    result = reduce_type(data, **attrs)
    axes = reduced_axes(data.rank, attrs["axis"], attrs["exclude"])
    _require_elements(data, axes)
    return result


def _require_elements(data: TensorType, axes: Sequence[int]) -> None:
    if any(data.shape[axis] == 0 for axis in axes):
        raise TypeInferenceError(f"an axis of {data!r} has no elements to choose from")


def accumulator(dtype: np.dtype[AnyValue]) -> np.dtype[AnyValue]:
    """Return the dtype to add in: float32 for what is narrower."""
    if is_float(dtype.name) and dtype.itemsize < 4:
        return np.dtype(np.float32)
    return dtype


def _sum(data: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    wide = accumulator(data.dtype)
    return np.asarray(np.sum(data, axis=axis, keepdims=keepdims, dtype=wide)).astype(data.dtype)


def _prod(data: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    wide = accumulator(data.dtype)
    return np.asarray(np.prod(data, axis=axis, keepdims=keepdims, dtype=wide)).astype(data.dtype)


def _mean(data: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """Return the mean; of integers, rounded towards zero."""
    wide = accumulator(data.dtype)
    total = np.asarray(np.sum(data, axis=axis, keepdims=keepdims, dtype=wide))
    count = np.asarray(np.prod([data.shape[i] for i in axis], dtype=np.int64)).astype(wide)
    if is_float(data.dtype.name):
        return np.asarray(total / count).astype(data.dtype)
    return np.asarray((total - np.fmod(total, count)) // count).astype(data.dtype)


def declare(
    name: str, reduction: Reduce, doc: str,
    *, infer: Callable[..., TensorType], dtype: str = "float32", more: Sequence[Sample] = (),
    decompose: Callable[..., Expr] | None = None, traits: Traits = (),
) -> None:  # fmt: skip
    """Declare `reduction`, which gets the axes that are reduced, as the operator `name`."""

    def kernel(
        data: Array,
        *,
        axis: tuple[int, ...] | None = None,
        keepdims: bool = False,
        exclude: bool = False,
    ) -> Array:
        axes = reduced_axes(data.ndim, axis, exclude)
        with np.errstate(all="ignore"):
            result = np.asarray(reduction(data, axis=axes, keepdims=keepdims))
        return result.astype(data.dtype, copy=False)

    kernel.__doc__ = doc
    samples = [
        sample(tensor((2, 3, 4), dtype)),
        sample(tensor((2, 3, 4), dtype), axis=1, keepdims=True),
        sample(tensor((2, 3, 4), dtype), axis=[-1, 0]),
        sample(tensor((2, 3, 4), dtype), axis=[1], exclude=True),
        sample(tensor((2, 3), dtype), axis=[]),
        sample(tensor((2, 3), dtype), exclude=True),
        *more,
    ]
    relay_op(name, traits=(Reduction, *traits), infer=infer, samples=samples, decompose=decompose)(
        kernel
    )


_OTHERS = [
    sample(tensor((4, 3), "int32", low=-9, high=9), axis=0),
    sample(tensor((4, 3), "float16"), axis=1),
]

declare("sum", _sum, "``y = sum(x)`` over axes.", infer=number_type, more=_OTHERS,
        traits=(Float32(), Arithmetic))  # fmt: skip
declare("prod", _prod, "``y = prod(x)`` over axes.", infer=number_type, more=_OTHERS,
        traits=(Float32(), Arithmetic))  # fmt: skip
declare("mean", _mean, "``y = sum(x) / count(x)`` over axes; of integers, rounded towards zero.",
        infer=number_type, more=_OTHERS, traits=(Float32("reductions"),))  # fmt: skip
declare("max", np.max, "``y = max(x)`` over axes.", infer=extreme_type, more=_OTHERS,
        traits=(Values(0),))  # fmt: skip
declare("min", np.min, "``y = min(x)`` over axes.", infer=extreme_type, more=_OTHERS,
        traits=(Values(0),))  # fmt: skip
declare("all", np.all, "``y = all(x)``: whether all are true, over axes.", infer=_truth_type,
        dtype="bool", traits=(Truth,))  # fmt: skip
declare("any", np.any, "``y = any(x)``: whether one is true, over axes.", infer=_truth_type,
        dtype="bool", traits=(Truth,))  # fmt: skip


def _arg_type(
    data: TensorType, *, axis: Sequence[int] | None, keepdims: bool, exclude: bool, **_: AnyValue
) -> TensorType:
    axes = reduced_axes(data.rank, axis, exclude)
    _require_elements(data, axes)
    return TensorType(_reduce_shape(data, axes, keepdims), "int32")


def _declare_arg(name: str, choose: Reduce, doc: str) -> None:
    """Declare `choose`, which gets the reduced axes as one last axis, as `name`."""

    def kernel(
        data: Array,
        *,
        axis: tuple[int, ...] | None = None,
        keepdims: bool = False,
        select_last_index: bool = False,
        exclude: bool = False,
    ) -> Array:
        axes = reduced_axes(data.ndim, axis, exclude)
        kept = [i for i in range(data.ndim) if i not in axes]
        length = int(np.prod([data.shape[i] for i in axes], dtype=np.int64))
        rows = data.transpose([*kept, *axes]).reshape([*(data.shape[i] for i in kept), length])
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
    relay_op(
        name,
        traits=(Reduction, Ordering),
        infer=_arg_type,
        samples=samples,
        arguments=Arguments(order=("axis", "keepdims", "exclude")),
    )(kernel)


for _name in ("argmax", "argmin"):
    _declare_arg(
        _name,
        getattr(np, _name),
        f"``y = {_name}(x)`` over axes, the index as int32; among equals the first, or the last "
        "if asked. Of several axes, the row-major one.",
    )


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
    axes = reduced_axes(data.rank, axis, exclude)
    expected = _reduce_shape(data, axes, True)
    if mean.rank != data.rank:
        raise TypeInferenceError(f"expected a mean of rank {data.rank}, found {mean!r}")
    for wanted, found in zip(expected, mean.shape, strict=True):
        join_dim(wanted, found)
    return TensorType(_reduce_shape(data, axes, keepdims), data.dtype)


def _decompose_variance(
    data: Expr,
    mean: Expr,
    *,
    axis: tuple[int, ...] | None,
    keepdims: bool,
    exclude: bool,
    unbiased: bool,
) -> Expr:
    """The mean is given, so that it need not be that of the data."""
    type_ = tensor_type(data)
    axes = reduced_axes(type_.rank, axis, exclude)
    distance = call("subtract", data, mean)
    squares = call("multiply", distance, distance)
    if not axes:
        return call("divide", squares, const(1 - unbiased, type_.dtype)) if unbiased else squares
    if not unbiased:
        return call("mean", squares, axis=axes, keepdims=keepdims)
    total = call("sum", squares, axis=axes, keepdims=keepdims)
    size = product(type_.shape[each] for each in axes)
    if isinstance(size, int):
        return call("divide", total, const(size - 1, type_.dtype))
    count = reduce(partial(call, "multiply"), [length_of(data, each) for each in axes])
    fewer = call("subtract", count, const(1, "int64"))
    return call("divide", total, call("cast", fewer, dtype=type_.dtype))


@relay_op(
    "variance",
    traits=(Reduction, Float32()),
    infer=_variance_type,
    decompose=_decompose_variance,
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
    """``y = sum((x - mean)**2) / n`` over axes; with `unbiased`, divided by ``n - 1``."""
    axes = reduced_axes(data.ndim, axis, exclude)
    wide = accumulator(data.dtype)
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
        "variance", data, mean, axis=axis, keepdims=keepdims, exclude=exclude, unbiased=unbiased
    )


@builder("std")
def build_std(
    data: Expr,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
) -> Expr:
    """Return ``sqrt(variance(x))`` over `axis`."""
    return call("sqrt", build_variance(data, axis, keepdims, exclude, unbiased))


@builder("mean_variance")
def build_mean_variance(
    data: Expr,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
) -> TupleWrapper:
    """Return mean and variance over `axis`."""
    mean, spread = _mean_and_variance(data, axis, keepdims, exclude, unbiased)
    return TupleWrapper(Tuple((mean, spread)), 2)


def _mean_and_variance(
    data: Expr, axis: Axes, keepdims: bool, exclude: bool, unbiased: bool
) -> tuple[Expr, Expr]:
    mean = call("mean", data, axis=axis, keepdims=True, exclude=exclude)
    spread = build_variance(data, axis, keepdims, exclude, unbiased, mean)
    if not keepdims:
        mean = call("mean", data, axis=axis, keepdims=False, exclude=exclude)
    return mean, spread


@builder("mean_std")
def build_mean_std(
    data: Expr, axis: Axes = None, keepdims: bool = False, exclude: bool = False
) -> TupleWrapper:
    """Return mean and standard deviation over `axis`."""
    mean, spread = _mean_and_variance(data, axis, keepdims, exclude, unbiased=False)
    return TupleWrapper(Tuple((mean, call("sqrt", spread))), 2)


@builder("logsumexp")
def build_logsumexp(data: Expr, axis: Axes = None, keepdims: bool = False) -> Expr:
    """Return ``log(sum(exp(x)))`` over `axis`, without overflow."""
    peak = call("max", data, axis=axis, keepdims=True)
    total = call("sum", call("exp", call("subtract", data, peak)), axis=axis, keepdims=True)
    result = call("add", call("log", total), peak)
    return result if keepdims else call("squeeze", result, axis=axis)
