"""Sums, means, variances, products, extremes and truth over axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.relay.ir import Any, Expr, call, is_float
from serde.relay.op.reduce.plain import ReducedAxes
from serde.torch.ops.elementwise.convert import widen
from serde.torch.ops.table import OPS, Export, Import, Scalar, SymInt, Value
from serde.torch.ops.written import dims_of, in_signed
from serde.walk.takes import FLOATS, Takes

DType = np.dtype[AnyValue] | None
Axes = int | tuple[int, ...] | None


def as_summed(ctx: Import, x: Expr, dtype: DType) -> Expr:
    """Return a tensor in the dtype of its sum: as asked, else integers as int64."""
    if dtype is not None:
        return ctx.cast(x, dtype.name)
    return x if is_float(ctx.dtype(x)) else ctx.cast(x, "int64")


def as_floats(ctx: Import, x: Expr, dtype: DType, what: str) -> Expr:
    """Return a tensor in the dtype that is asked for, if any, which must be one of floats."""
    found = x if dtype is None else ctx.cast(x, dtype.name)
    if not is_float(ctx.dtype(found)):
        raise Unsupported(f"{what} of {ctx.dtype(found)}", hint="name a dtype of floats")
    return found


def count(ctx: Import, x: Expr, axes: tuple[int, ...], dtype: str) -> Expr:
    """Return how many elements some axes hold, as a scalar of a dtype."""
    total: SymInt = 1
    for axis in axes:
        size = ctx.size(x, axis)
        if isinstance(total, int) and isinstance(size, int):
            total *= size
        else:
            total = relay.multiply(ctx.scalar(total, "int64"), ctx.scalar(size, "int64"))
    return ctx.scalar(total, dtype)


def import_total(
    ctx: Import, self: Expr, *, of_truths: str, target: str, dim: Axes = None,
    keepdim: bool = False, dtype: DType = None,
) -> Expr:  # fmt: skip
    x = as_summed(ctx, self, dtype)
    name = of_truths if ctx.dtype(x) == "bool" else target
    return call(name, x, axis=ctx.axes(x, dim), keepdims=keepdim)


import_sum = OPS.imports("aten::sum")(partial(import_total, of_truths="any", target="sum"))
OPS.imports("aten::prod")(partial(import_total, of_truths="all", target="prod"))


@OPS.imports("aten::sum_to_size")
def import_sum_to_size(ctx: Import, self: Expr, *, size: tuple[SymInt, ...]) -> Expr:
    shape = ctx.type(self).shape
    dims = [ctx.dim(each) for each in size]
    if any(isinstance(dim, Any) for dim in (*shape, *dims)):
        raise Unsupported("a sum down to a shape that is computed")
    extra = len(shape) - len(dims)
    axes = [i for i in range(len(shape)) if i < extra or dims[i - extra] == 1 != shape[i]]
    x = as_summed(ctx, self, None) if axes or extra or not dims else self
    found = relay.sum(x, axis=axes, keepdims=True) if axes else x
    return relay.squeeze(found, axis=list(range(extra))) if extra else found


@OPS.imports("aten::nansum")
def import_nansum(
    ctx: Import, self: Expr, *, dim: Axes = None, keepdim: bool = False, dtype: DType = None
) -> Expr:
    zeroed = _zero_nan(ctx, self) if is_float(ctx.dtype(self)) else self
    return import_sum(ctx, zeroed, dim=dim, keepdim=keepdim, dtype=dtype)


def _zero_nan(ctx: Import, x: Expr) -> Expr:
    return relay.where(relay.isnan(x), ctx.scalar(0, ctx.dtype(x)), x)


@OPS.imports("aten::mean")
def import_mean(
    ctx: Import, self: Expr, *, dim: Axes = None, keepdim: bool = False, dtype: DType = None
) -> Expr:
    x = as_floats(ctx, self, dtype, "the mean")
    return relay.mean(x, axis=ctx.axes(x, dim), keepdims=keepdim)


@OPS.imports("aten::nanmean")
def import_nanmean(
    ctx: Import, self: Expr, *, dim: Axes = None, keepdim: bool = False, dtype: DType = None
) -> Expr:
    x = as_floats(ctx, self, None, "the mean")
    axes = ctx.axes(x, dim)
    total = import_nansum(ctx, x, dim=dim, keepdim=keepdim, dtype=dtype)
    present = relay.cast(relay.logical_not(relay.isnan(x)), "float32")
    found = relay.sum(present, axis=axes, keepdims=keepdim)
    return relay.divide(total, ctx.cast(found, ctx.dtype(total)))


def _import_extreme(
    ctx: Import, self: Expr, *, target: str, dim: Axes = None, keepdim: bool = False
) -> Expr:
    return call(target, self, axis=ctx.axes(self, dim), keepdims=keepdim)


for _op, _target in {"amax": "max", "amin": "min", "max": "max", "min": "min"}.items():
    OPS.imports(f"aten::{_op}")(partial(_import_extreme, target=_target))


@OPS.imports("aten::aminmax")
def import_aminmax(
    ctx: Import, self: Expr, *, dim: int | None = None, keepdim: bool = False
) -> tuple[Expr, Expr]:
    axes = ctx.axes(self, dim)
    least = relay.min(self, axis=axes, keepdims=keepdim)
    return least, relay.max(self, axis=axes, keepdims=keepdim)


def _import_truth(
    ctx: Import, self: Expr, *, op: str, dim: Axes = None, keepdim: bool = False
) -> Expr:
    """Truth values of uint8 stay so; an empty list of axes reduces none."""
    axes = () if dim == () else ctx.axes(self, dim)
    found = call(op, ctx.cast(self, "bool"), axis=axes, keepdims=keepdim)
    return ctx.cast(found, "uint8") if ctx.dtype(self) == "uint8" else found


OPS.imports("aten::all")(partial(_import_truth, op="all"))
OPS.imports("aten::any")(partial(_import_truth, op="any"))


@OPS.imports("aten::count_nonzero")
def import_count_nonzero(ctx: Import, self: Expr, *, dim: Axes = None) -> Expr:
    nonzero = ctx.cast(ctx.cast(self, "bool"), "int64")
    return relay.sum(nonzero, axis=ctx.axes(self, dim), keepdims=False)


@OPS.imports("aten::logsumexp", "aten::special_logsumexp")
def import_logsumexp(ctx: Import, self: Expr, *, dim: Axes, keepdim: bool = False) -> Expr:
    (x,) = ctx.promote_to_float(self)
    return call("serde.logsumexp", x, axis=ctx.axes(x, dim), keepdims=keepdim)


@dataclass(frozen=True, kw_only=True)
class Reduction(ReducedAxes):
    """Attributes that the reductions share."""

    def write(self, ctx: Export, name: str, data: Value, **options: object) -> Value:
        """Write the method `name` over the axes."""
        axes = self.axes(ctx.type(data).rank)
        if len(axes) == ctx.type(data).rank and not self.keepdims:
            return ctx.method(data, name, **options)
        if self.keepdims:
            options["keepdim"] = True
        return ctx.method(data, name, dims_of(axes), **options)


def make_sum_exporter(before: str | None) -> Callable[..., Value]:
    def export_sum(ctx: Export, data: Value, *, reduction: Reduction) -> Value:
        """PyTorch adds integers as int64; the dtype is told where that is not theirs."""
        type_ = ctx.type(data)
        if before is not None:
            data = ctx.typed(ctx.method(data, before), type_)
        if not reduction.axes(ctx.type(data).rank):
            return data
        if is_float(type_.dtype) or type_.dtype == "int64":
            return reduction.write(ctx, "sum", data)
        return reduction.write(ctx, "sum", data, dtype=ctx.dtype(type_.dtype))

    return export_sum


OPS.exports("sum")(in_signed(make_sum_exporter(None)))

OPS.exports("serde.reduce_sum_square")(in_signed(make_sum_exporter("square")))


@OPS.exports("prod")
@in_signed
def export_prod(ctx: Export, data: Value, *, reduction: Reduction) -> Value:
    """PyTorch multiplies along one axis, or all."""
    axes, rank, dtype = (
        reduction.axes(ctx.type(data).rank),
        ctx.type(data).rank,
        ctx.type(data).dtype,
    )
    options = {} if is_float(dtype) or dtype == "int64" else {"dtype": ctx.dtype(dtype)}
    if len(axes) == rank and not reduction.keepdims and axes:
        return ctx.method(data, "prod", **options)
    for axis in reversed(axes):
        if reduction.keepdims:
            data = ctx.method(data, "prod", axis, keepdim=True, **options)
        else:
            data = ctx.method(data, "prod", axis, **options)
    return data


def _make_extreme_exporter(target: str) -> Callable[..., Value]:
    def export_extreme(ctx: Export, data: Value, *, reduction: Reduction) -> Value:
        return reduction.write(ctx, target, data) if reduction.axes(ctx.type(data).rank) else data

    return export_extreme


for _name, _target in {"all": "all", "any": "any", "max": "amax", "min": "amin"}.items():
    OPS.exports(_name)(in_signed(_make_extreme_exporter(_target), ordered=True))

OPS.exports("mean", takes=Takes(data=FLOATS))(_make_extreme_exporter("mean"))


@OPS.exports("serde.logsumexp")
def export_logsumexp(ctx: Export, data: Value, *, reduction: Reduction) -> Value:
    axes = reduction.axes(ctx.type(data).rank)
    if not axes:
        return data
    options = {"keepdim": True} if reduction.keepdims else {}
    return ctx.call("torch.logsumexp", data, dims_of(axes), **options)


def _mean_and_variance(
    ctx: Import, x: Expr, dim: Axes, unbiased: bool, correction: Scalar | None, keepdim: bool
) -> tuple[Expr, Expr]:
    """Return both, in a dtype that sums lose little in.

    The divisor is the number of elements less the correction, and no less than 0.
    """
    x = as_floats(ctx, x, None, "the variance")
    x = widen(ctx, x)
    axes, dtype = ctx.axes(x, dim), ctx.dtype(x)
    less = (1 if unbiased else 0) if correction is None else correction
    mean = relay.mean(x, axis=axes, keepdims=True)
    shape = ctx.type(x).shape
    fixed = all(isinstance(shape[axis], int) for axis in axes)
    plain = (less == 0 or (less == 1 and fixed)) and 0 not in shape
    if plain:
        spread = relay.variance(x, axes, keepdim, False, bool(less), mean)
    else:
        distance = relay.subtract(x, mean)
        total = relay.sum(relay.multiply(distance, distance), axis=axes, keepdims=keepdim)
        rest = relay.subtract(count(ctx, x, axes, dtype), ctx.scalar(less, dtype))
        spread = relay.divide(total, relay.maximum(rest, ctx.scalar(0, dtype)))
    if not keepdim:
        mean = relay.mean(x, axis=axes, keepdims=False)
    return mean, spread


def _register(op: str, *, root: bool, with_mean: bool) -> None:
    @OPS.imports(f"aten::{op}")
    def import_spread(
        ctx: Import,
        self: Expr,
        *,
        dim: Axes = None,
        unbiased: bool = True,
        correction: Scalar | None = None,
        keepdim: bool = False,
    ) -> Expr | tuple[Expr, Expr]:
        mean, found = _mean_and_variance(ctx, self, dim, unbiased, correction, keepdim)
        found = ctx.cast(relay.sqrt(found) if root else found, ctx.dtype(self))
        return (found, ctx.cast(mean, ctx.dtype(self))) if with_mean else found


_register("var", root=False, with_mean=False)
_register("std", root=True, with_mean=False)
_register("var_mean", root=False, with_mean=True)
_register("std_mean", root=True, with_mean=True)
