"""Places of extremes, and elements by their order along an axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, call, is_float
from serde.relay.op.reduce.plain import reduces_one_axis
from serde.torch.ops.index.scan import run_doubling
from serde.torch.ops.reduce.plain import Reduction
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value
from serde.torch.ops.written import cast, in_signed


def _register_place(op: str) -> None:
    @OPS.imports(f"aten::{op}")
    def import_place(
        ctx: Import, self: Expr, *, dim: int | None = None, keepdim: bool = False
    ) -> Expr:
        found = call(op, self, axis=ctx.axes(self, dim), keepdims=keepdim)
        return ctx.cast(found, "int64")


def _make_place_exporter(target: str) -> Callable[..., Value]:
    def export_place(
        ctx: Export, data: Value, *, reduction: Reduction, select_last_index: bool
    ) -> Value:
        """Of equal elements PyTorch takes the first."""
        (axis,), type_ = reduction.axes(ctx.type(data).rank), ctx.type(data)
        if type_.dtype == "bool":
            data = ctx.method(data, "to", ctx.dtype("uint8"))
        if select_last_index:
            data = ctx.method(data, "flip", axis)
        options = {"keepdim": True} if reduction.keepdims else {}
        place = ctx.method(data, target, axis, **options)
        if select_last_index:
            (last,) = ctx.sizes([type_.shape[axis] - 1])
            place = ctx.infix("-", last, place)
        return cast(ctx, place, ctx.result_type().dtype, "int64")

    return export_place


for _name in ("argmax", "argmin"):
    OPS.exports(_name, when=reduces_one_axis)(in_signed(_make_place_exporter(_name), ordered=True))


_register_place("argmax")
_register_place("argmin")


def _register_extreme(op: str) -> None:
    @OPS.imports(f"aten::{op}.dim")
    def import_extreme(
        ctx: Import, self: Expr, *, dim: int, keepdim: bool = False
    ) -> tuple[Expr, Expr]:
        axes = ctx.axes(self, dim)
        place = call(f"arg{op}", self, axis=axes, keepdims=keepdim)
        return call(op, self, axis=axes, keepdims=keepdim), ctx.cast(place, "int64")


_register_extreme("max")
_register_extreme("min")


def _at(ctx: Import, x: Expr, axis: int, place: Expr, keepdim: bool) -> Expr:
    """Return the elements at places along an axis, which have length 1 there."""
    found = relay.gather(x, axis, place)
    return found if keepdim else relay.squeeze(found, axis=[axis])


def _ordered(ctx: Import, x: Expr, axis: int, rank: Expr, keepdim: bool) -> tuple[Expr, Expr]:
    """Return the elements of a rank (of length 1 along the axis) in order, and their places."""
    order = relay.argsort(x, axis=axis, dtype="int64")
    place = relay.gather(order, axis, rank)
    index = place if keepdim else relay.squeeze(place, axis=[axis])
    return _at(ctx, x, axis, place, keepdim), index


def _spread_rank(ctx: Import, x: Expr, axis: int, rank: Expr) -> Expr:
    """Return one rank for every row along an axis, with length 1 there."""
    row = relay.take(x, ctx.scalar(0, "int64"), axis=axis)
    like = relay.expand_dims(relay.zeros_like(relay.cast(row, "int64")), axis=axis)
    return relay.add(like, rank)


@OPS.imports("aten::kthvalue")
def import_kthvalue(
    ctx: Import, self: Expr, *, k: SymInt, dim: int = -1, keepdim: bool = False
) -> tuple[Expr, Expr]:
    if not ctx.type(self).rank:
        return self, ctx.scalar(0, "int64")
    axis = ctx.axis(self, dim)
    rank = relay.subtract(ctx.scalar(k, "int64"), ctx.scalar(1, "int64"))
    return _ordered(ctx, self, axis, _spread_rank(ctx, self, axis, rank), keepdim)


def _median(ctx: Import, x: Expr, axis: int, keepdim: bool, ignore_nan: bool) -> tuple[Expr, Expr]:
    """Return the lower one of two elements in the middle; NaN comes first unless ignored."""
    one, two = ctx.scalar(1, "int64"), ctx.scalar(2, "int64")
    if not is_float(ctx.dtype(x)):
        total = relay.subtract(ctx.scalar(ctx.size(x, axis), "int64"), one)
        rank = relay.floor_divide(total, two)
        return _ordered(ctx, x, axis, _spread_rank(ctx, x, axis, rank), keepdim)
    missing = relay.isnan(x)
    present = relay.cast(relay.logical_not(missing), "int64")
    found = relay.sum(present, axis=[axis], keepdims=True)
    rank = relay.floor_divide(relay.subtract(found, one), two)
    rank = relay.maximum(rank, ctx.scalar(0, "int64"))
    if not ignore_nan:
        first = relay.argmax(relay.cast(missing, "int32"), axis=[axis], keepdims=True)
        some = relay.any(missing, axis=[axis], keepdims=True)
        order = relay.argsort(x, axis=axis, dtype="int64")
        place = relay.where(some, relay.cast(first, "int64"), relay.gather(order, axis, rank))
        index = place if keepdim else relay.squeeze(place, axis=[axis])
        return _at(ctx, x, axis, place, keepdim), index
    return _ordered(ctx, x, axis, rank, keepdim)


def _register_median(op: str, ignore_nan: bool) -> None:
    @OPS.imports(f"aten::{op}")
    def import_median(ctx: Import, self: Expr) -> Expr:
        if not ctx.type(self).rank:
            return self
        flat = relay.reshape(self, newshape=(-1,))
        return _median(ctx, flat, 0, False, ignore_nan)[0]

    @OPS.imports(f"aten::{op}.dim")
    def import_median_of_axis(
        ctx: Import, self: Expr, *, dim: int, keepdim: bool = False
    ) -> tuple[Expr, Expr]:
        if not ctx.type(self).rank:
            return self, ctx.scalar(0, "int64")
        return _median(ctx, self, ctx.axis(self, dim), keepdim, ignore_nan)


_register_median("median", ignore_nan=False)
_register_median("nanmedian", ignore_nan=True)


def _run_lengths(ctx: Import, ordered: Expr, axis: int) -> Expr:
    """Return how many elements up to each one equal it, along an axis in order."""
    length = ctx.type(ordered).shape[axis]
    if not isinstance(length, int):
        raise Unsupported(f"the most frequent of {length} elements, a number that is not fixed")
    shape = [1] * ctx.type(ordered).rank
    shape[axis] = length
    place = Constant(allocation.arange(length).reshape(shape))
    before = relay.take(ordered, Constant(np.maximum(allocation.arange(length) - 1, 0)), axis=axis)
    starts = relay.where(relay.equal(ordered, before), ctx.scalar(0, "int64"), place)
    latest = run_doubling(ctx, starts, axis, relay.maximum)
    return relay.subtract(place, latest)


@OPS.imports("aten::mode")
def import_mode(
    ctx: Import, self: Expr, *, dim: int = -1, keepdim: bool = False
) -> tuple[Expr, Expr]:
    """The least of the most frequent elements, and the last of its places."""
    if not ctx.type(self).rank:
        return self, ctx.scalar(0, "int64")
    axis = ctx.axis(self, dim)
    ordered = relay.sort(self, axis=axis)
    counts = _run_lengths(ctx, ordered, axis)
    first = relay.cast(relay.argmax(counts, axis=[axis], keepdims=True), "int64")
    value = relay.gather(ordered, axis, first)
    hit = relay.cast(relay.equal(self, value), "int32")
    place = relay.argmax(hit, axis=[axis], keepdims=keepdim, select_last_index=True)
    found = value if keepdim else relay.squeeze(value, axis=[axis])
    return found, relay.cast(place, "int64")


@OPS.imports("aten::histc")
def import_histc(
    ctx: Import, self: Expr, *, bins: int = 100, min: int | float = 0, max: int | float = 0
) -> Expr:
    """Elements beyond the limits are not counted; limits that are equal are those of the data."""
    if bins < 1:
        raise Unsupported(f"{bins} bins")
    dtype = ctx.dtype(self)
    flat = relay.reshape(self, newshape=(-1,))
    if is_float(dtype):
        work = dtype
    else:
        work = "float64"
        flat = ctx.cast(flat, work)
    low: Expr = ctx.scalar(min, work)
    high: Expr = ctx.scalar(max, work)
    if min == max:
        low, high = relay.min(flat, axis=[0]), relay.max(flat, axis=[0])
        alone = relay.equal(low, high)
        one = ctx.scalar(1, work)
        low, high = (
            relay.where(alone, relay.subtract(low, one), low),
            relay.where(alone, relay.add(high, one), high),
        )
    span = relay.subtract(high, low)
    scaled = relay.multiply(relay.subtract(flat, low), ctx.scalar(bins, work))
    place = relay.cast(relay.divide(scaled, span), "int64")
    place = relay.minimum(place, ctx.scalar(bins - 1, "int64"))
    inside = relay.logical_and(relay.greater_equal(flat, low), relay.less_equal(flat, high))
    place = relay.where(inside, place, ctx.scalar(-1, "int64"))
    edges = Constant(allocation.arange(bins).reshape(bins, 1))
    hit = relay.cast(relay.equal(relay.expand_dims(place, 0), edges), dtype)
    return relay.sum(hit, axis=[1])


@OPS.imports("aten::bincount")
def import_bincount(
    ctx: Import, self: Expr, weights: Expr | None = None, *, minlength: SymInt = 0
) -> Expr:
    """As many counts as the greatest element says: that is known when the model runs."""
    if weights is not None and ctx.dtype(weights) not in ("float32", "float64"):
        weights = ctx.cast(weights, "float64")
    kind = "int64" if weights is None else ctx.dtype(weights)
    x = ctx.cast(self, "int64")
    if ctx.type(x).shape == (0,):
        return relay.zeros((ctx.fixed(minlength),), "int64")
    greatest = relay.add(relay.max(x, axis=[0]), ctx.scalar(1, "int64"))
    length = ctx.fold(relay.maximum(greatest, ctx.scalar(minlength, "int64")))
    one = ctx.scalar(1, "int64")
    edges = ctx.fold(call("arange", ctx.scalar(0, "int64"), length, one, dtype="int64"))
    hit = relay.equal(relay.expand_dims(x, 0), relay.expand_dims(edges, 1))
    counted = relay.cast(hit, kind)
    if weights is not None:
        counted = relay.multiply(counted, relay.expand_dims(weights, 0))
    return relay.sum(counted, axis=[1])
