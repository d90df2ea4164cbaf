"""NumPy's reductions: sums and extremes, and the statistics that are made of them.

Without axes all are reduced, over an empty tuple none, and what is left may be a scalar.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any as AnyValue, Literal

import numpy as np

import serde.relay as relay
from serde.core import dataclass, dtype_name
from serde.errors import Unsupported
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir import Expr, is_float, reduced_axes

Axes = int | tuple[int, ...] | None
DType = np.dtype[AnyValue] | None


def _axes(ctx: Import, data: Expr, axis: Axes) -> tuple[int, ...]:
    return reduced_axes(ctx.type(data).rank, (axis,) if isinstance(axis, int) else axis, False)


def _cast(ctx: Import, data: Expr, dtype: str) -> Expr:
    return data if ctx.type(data).dtype == dtype else relay.cast(data, dtype)


def _is_empty(ctx: Import, data: Expr) -> bool:
    return 0 in ctx.type(data).shape


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """Attributes that the reductions of NumPy share."""

    axis: Axes = None
    keepdims: bool = False

    def axes(self, ctx: Import, data: Expr) -> tuple[int, ...]:
        """Return the axes that are reduced."""
        return _axes(ctx, data, self.axis)


@dataclass(frozen=True, kw_only=True)
class InitialReduction(Reduction):
    """Attributes of those that could start from a number."""

    initial: float | None = None

    def axes(self, ctx: Import, data: Expr) -> tuple[int, ...]:
        """Return the axes that are reduced."""
        if self.initial is not None:
            raise Unsupported(f"initial={self.initial:g}, which MXNet itself does not support")
        return super().axes(ctx, data)


def _total(
    ctx: Import, data: Expr, axes: Sequence[int], keepdims: bool, dtype: str, reduction: str = "sum"
) -> Expr:
    """Return a sum or product, added up in more than what it is rounded to in the end.

    Integers are added up in what they become, where they wrap around; those that become floats,
    in int64. Floats that become integers are cut off only at the end.
    """
    given = ctx.type(data).dtype
    if given == "float16":
        wide = "float32"
    elif is_float(given):
        wide = "float32" if given == "float32" and dtype in ("float16", "float32") else "float64"
    else:
        wide = "int32" if dtype in ("int8", "uint8", "int32") else "int64"
    found = getattr(relay, reduction)(_cast(ctx, data, wide), axis=axes, keepdims=keepdims)
    return _cast(ctx, found, dtype)


def _count(ctx: Import, data: Expr, axes: Sequence[int], dtype: str, less: int = 0) -> Expr:
    """Return how many elements are reduced to one, less a number, as a scalar."""
    lengths = [ctx.type(data).shape[axis] for axis in axes]
    fixed = [length for length in lengths if isinstance(length, int)]
    if len(fixed) == len(lengths):
        count = math.prod(fixed) - less
        if count < 0 or (count == 0 and not is_float(dtype)):
            raise Unsupported(f"ddof={less} of {math.prod(fixed)} elements")
        with np.errstate(over="ignore"):
            return relay.const(np.array(count).astype(dtype), dtype)
    shape = relay.take(
        relay.shape_of(data, dtype="int64"), relay.const(np.array(axes), "int64"), mode="fast"
    )
    count_of = relay.subtract(relay.prod(shape), relay.const(less, "int64"))
    return relay.cast(count_of, dtype)


def _import_total(
    ctx: Import, a: Expr, *, name: str, reduction: InitialReduction, dtype: DType = None
) -> Expr:
    """Booleans become int64; of no elements, MXNet's product is 0 like its sum."""
    axes, keepdims = reduction.axes(ctx, a), reduction.keepdims
    given = ctx.type(a).dtype
    result = dtype_name(dtype) if dtype else "int64" if given == "bool" else given
    if given == "bool" and result in ("bool", "int8", "float16"):
        raise Unsupported(f"dtype={result} of bool, which MXNet refuses")
    target = "sum" if _is_empty(ctx, a) else name
    if is_float(given) and result == given:
        return getattr(relay, target)(a, axis=axes, keepdims=keepdims)
    return _total(ctx, a, axes, keepdims, result, target)


for _name in ("sum", "prod"):
    OPS.imports(f"_np_{_name}")(partial(_import_total, name=_name))


def _import_extreme(
    ctx: Import, a: Expr, *, name: str, of_truth: str, reduction: InitialReduction
) -> Expr:
    target = of_truth if ctx.type(a).dtype == "bool" else name
    axes = reduction.axes(ctx, a)
    return getattr(relay, target)(a, axis=axes, keepdims=reduction.keepdims)


OPS.imports("_np_max")(partial(_import_extreme, name="max", of_truth="any"))
OPS.imports("_np_min")(partial(_import_extreme, name="min", of_truth="all"))


def _import_truth(ctx: Import, data: Expr, *, name: str, reduction: Reduction) -> Expr:
    truth, axes = _cast(ctx, data, "bool"), reduction.axes(ctx, data)
    return getattr(relay, name)(truth, axis=axes, keepdims=reduction.keepdims)


for _name in ("all", "any"):
    OPS.imports(f"_np_{_name}")(partial(_import_truth, name=_name))


def _mean(ctx: Import, data: Expr, axes: Sequence[int], keepdims: bool, dtype: str) -> Expr:
    """Return a mean: the sum rounded to its dtype, then divided in that dtype.

    Of no elements, MXNet's is 0; as a truth it is that of the sum.
    """
    given = ctx.type(data).dtype
    if given == dtype and dtype in ("float32", "float64") and not _is_empty(ctx, data):
        return relay.mean(data, axis=axes, keepdims=keepdims)
    total = _total(ctx, data, axes, keepdims, dtype)
    if _is_empty(ctx, data) or dtype == "bool":
        return total
    return _quotient(ctx, total, _count(ctx, data, axes, dtype))


def _quotient(ctx: Import, total: Expr, count: Expr) -> Expr:
    """Return a quotient, of integers rounded towards zero; ONNX divides none of 8 bits."""
    dtype = ctx.type(total).dtype
    if dtype not in ("int8", "uint8"):
        return relay.divide(total, count)
    return relay.cast(relay.divide(relay.cast(total, "int32"), relay.cast(count, "int32")), dtype)


@OPS.imports("_npi_mean")
def import_mean(ctx: Import, a: Expr, *, reduction: InitialReduction, dtype: DType = None) -> Expr:
    given = ctx.type(a).dtype
    result = dtype_name(dtype) if dtype else given if is_float(given) else "float32"
    return _mean(ctx, a, reduction.axes(ctx, a), reduction.keepdims, result)


@dataclass(frozen=True, kw_only=True)
class Moment(Reduction):
    """Attributes of variance and standard deviation."""

    dtype: DType = None
    ddof: int = 0


def _variance(ctx: Import, a: Expr, moment: Moment) -> Expr:
    """Return the variance as MXNet rounds it.

    Mean and squares have the dtype of the data, sum and quotient that of the result.
    """
    given = ctx.type(a).dtype
    if given == "bool":
        raise Unsupported("a variance of bool, which MXNet refuses")
    result = dtype_name(moment.dtype) if moment.dtype else given
    axes, keepdims, ddof = moment.axes(ctx, a), moment.keepdims, moment.ddof
    if given == result and given in ("float32", "float64") and not (ddof or _is_empty(ctx, a)):
        return relay.variance(a, axis=axes, keepdims=keepdims)
    mean = _mean(ctx, a, axes, True, given)
    wide = "int32" if given in ("int8", "uint8") else given
    distance = relay.subtract(_cast(ctx, a, wide), _cast(ctx, mean, wide))
    squares = _cast(ctx, relay.multiply(distance, distance), given)
    total = _total(ctx, squares, axes, keepdims, result)
    return _quotient(ctx, total, _count(ctx, a, axes, result, ddof))


@OPS.imports("_npi_var")
def import_var(ctx: Import, a: Expr, *, moment: Moment) -> Expr:
    return _variance(ctx, a, moment)


@OPS.imports("_npi_std")
def import_std(ctx: Import, a: Expr, *, moment: Moment) -> Expr:
    """The root of integers is an integer, rounded towards zero."""
    variance = _variance(ctx, a, moment)
    result = ctx.type(variance).dtype
    if is_float(result):
        return relay.sqrt(variance)
    return relay.cast(relay.sqrt(relay.cast(variance, "float64")), result)


@OPS.imports("_npi_average")
def import_average(
    ctx: Import,
    a: Expr,
    weights: Expr | None = None,
    *,
    axis: Axes = None,
    returned: bool = False,
    weighted: bool = True,
) -> list[Expr]:
    """The second result is the sum of the weights."""
    type_ = ctx.type(a)
    if type_.dtype == "bool":
        raise Unsupported("an average of bool, which MXNet refuses")
    axes = _axes(ctx, a, axis)
    if not weighted or weights is None:
        count = _count(ctx, a, axes, type_.dtype)
        return [_quotient(ctx, _total(ctx, a, axes, False, type_.dtype), count), count]
    whole = _total(ctx, weights, axes if ctx.type(weights).rank == type_.rank else (0,), False,
                   type_.dtype)  # fmt: skip
    if ctx.type(weights).rank < type_.rank:
        if ctx.type(weights).rank != 1 or len(axes) != 1 or axis is None:
            raise Unsupported("weights that are neither of one axis nor of the data's")
        weights = relay.expand_dims(weights, 1, type_.rank - 1 - axes[0])
    wide = "int32" if type_.dtype in ("int8", "uint8") else type_.dtype
    products = relay.multiply(_cast(ctx, a, wide), _cast(ctx, weights, wide))
    total = _total(ctx, products, axes, False, type_.dtype)
    return [_quotient(ctx, total, whole), whole]


Interpolation = Literal["linear", "lower", "higher", "midpoint", "nearest"]

_ROUND: dict[str, Callable[[Expr], Expr]] = {
    "lower": relay.floor,
    "higher": relay.ceil,
    "nearest": lambda position: relay.floor(relay.add(position, relay.const(0.5, "float32"))),
    "midpoint": lambda position: relay.multiply(
        relay.add(relay.floor(position), relay.ceil(position)), relay.const(0.5, "float32")
    ),
    "linear": lambda position: position,
}


@OPS.imports("_npi_percentile")
def import_percentile(
    ctx: Import,
    a: Expr,
    q: Expr | None = None,
    *,
    reduction: Reduction,
    interpolation: Interpolation = "linear",
    q_scalar: float | None = None,
) -> Expr:
    """Positions are float32, and so are results, but those of float64."""
    type_ = ctx.type(a)
    if type_.dtype == "bool" or not type_.rank:
        raise Unsupported(f"percentiles of {type_!r}")
    axes = reduction.axes(ctx, a)
    kept = [each for each in range(type_.rank) if each not in axes]
    wide = "float64" if type_.dtype == "float64" else "float32"
    rows = relay.sort(_join_reduced_axes(ctx, _cast(ctx, a, wide), kept, axes), axis=-1)
    position = _ROUND[interpolation](_position(ctx, rows, q, q_scalar))
    below, above = relay.floor(position), relay.ceil(position)
    share = _cast(ctx, relay.subtract(position, below), wide)
    ends = [
        relay.take(rows, relay.cast(each, "int64"), axis=len(kept), mode="fast")
        for each in (below, above)
    ]
    shares = [relay.subtract(relay.const(1.0, wide), share), share]
    parts = [relay.multiply(*pair) for pair in zip(ends, shares, strict=True)]
    if type_.dtype == "float16":
        parts = [relay.cast(relay.cast(part, "float16"), wide) for part in parts]
    found = relay.add(*parts) if interpolation in ("linear", "midpoint") else ends[0]
    if q is not None and ctx.type(q).rank:
        found = relay.transpose(found, [len(kept), *range(len(kept))])
    if not reduction.keepdims:
        return found
    leading = ctx.type(found).rank - len(kept)
    for each in sorted(axes):
        found = relay.expand_dims(found, leading + each)
    return found


def _join_reduced_axes(ctx: Import, data: Expr, kept: Sequence[int], axes: Sequence[int]) -> Expr:
    """Return `data` with the axes to reduce joined as the last one."""
    order = [*kept, *axes]
    if order != sorted(order):
        data = relay.transpose(data, order)
    return relay.reshape(data, (*(0,) * len(kept), -1)) if len(axes) > 1 else data


def _position(ctx: Import, rows: Expr, q: Expr | None, q_scalar: float | None) -> Expr:
    """Return where in the sorted rows the percentiles stand."""
    last = _count(ctx, rows, [ctx.type(rows).rank - 1], "float64", 1)
    if q is None:
        if q_scalar is None or not 0 <= q_scalar <= 100:
            raise Unsupported(f"q_scalar={q_scalar}: expected a percentage")
        product = relay.multiply(relay.const(q_scalar, "float64"), last)
    else:
        narrow = ctx.type(q).dtype if is_float(ctx.type(q).dtype) else "float64"
        rounded = relay.multiply(_cast(ctx, q, narrow), _cast(ctx, last, narrow))
        product = _cast(ctx, rounded, "float64")
    return relay.cast(relay.divide(product, relay.const(100.0, "float64")), "float32")
