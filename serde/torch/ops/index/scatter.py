"""Elements placed or accumulated by index."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, is_float, normalize_axis, same_shape
from serde.torch.ops.index.gather import as_index, at_least_vector, from_start
from serde.torch.ops.shape.lengths import broadcast, reshape, sizes_of
from serde.torch.ops.table import OPS, Export, Import, Scalar, SymInt, Value
from serde.torch.ops.written import cast, in_signed
from serde.torch.promotion import category

Reduction = Literal["sum", "prod", "mean", "amax", "amin"]
Named = Literal["add", "multiply"]
How = Literal["update", "add", "mul", "min", "max"]

_HOW: Final[dict[str, How]] = {
    "add": "add", "multiply": "mul", "sum": "add", "prod": "mul", "amax": "max", "amin": "min",
}  # fmt: skip


def _alike(ctx: Import, one: Expr, other: Expr) -> bool:
    """Whether two tensors surely have one shape."""
    return same_shape(ctx.type(one).shape, ctx.type(other).shape)


def _scatter(ctx: Import, x: Expr, axis: int, index: Expr, updates: Expr, how: How) -> Expr:
    """Return `x` with updates at the places that an index names; of more updates, the first."""
    if 0 in ctx.type(index).shape:
        return x
    data, places, new = (at_least_vector(ctx, each) for each in (x, index, updates))
    if not _alike(ctx, places, new):
        new = relay.slice_like(new, places)
    found = relay.scatter_elements(data, places, new, axis, how)
    return found if ctx.type(x).rank else relay.reshape(found, newshape=())


def _filled(ctx: Import, value: Scalar, dtype: str, like: Expr) -> Expr:
    """Return a number in a dtype, as often as another tensor has elements."""
    return broadcast(ctx, ctx.scalar(value, dtype), sizes_of(ctx, like))


@OPS.imports("aten::scatter.src", "aten::scatter.reduce")
def import_scatter(
    ctx: Import, self: Expr, index: Expr, src: Expr, *, dim: int, reduce: Named | None = None
) -> Expr:
    how: How = "update" if reduce is None else _HOW[reduce]
    return _scatter(ctx, self, ctx.axis(self, dim), index, src, how)


@OPS.imports("aten::scatter.value", "aten::scatter.value_reduce")
def import_scatter_value(
    ctx: Import, self: Expr, index: Expr, *, dim: int, value: Scalar, reduce: Named | None = None
) -> Expr:
    updates = _filled(ctx, value, ctx.dtype(self), index)
    how: How = "update" if reduce is None else _HOW[reduce]
    return _scatter(ctx, self, ctx.axis(self, dim), index, updates, how)


@OPS.imports("aten::scatter_add")
def import_scatter_add(ctx: Import, self: Expr, index: Expr, src: Expr, *, dim: int) -> Expr:
    return _scatter(ctx, self, ctx.axis(self, dim), index, src, "add")


def _limits(dtype: str) -> tuple[float | int, float | int]:
    """Return the least and the greatest number of a dtype."""
    if dtype == "bool":
        return 0, 1
    if category(dtype) == category("int64"):
        bounds = np.iinfo(numpy_dtype(dtype))
        return int(bounds.min), int(bounds.max)
    return -np.inf, np.inf


def _identity(reduce: Reduction, dtype: str) -> float | int:
    """Return the number that a reduction begins with."""
    if reduce in ("amax", "amin"):
        return _limits(dtype)[int(reduce == "amin")]
    return int(reduce == "prod")


def _reduce(
    ctx: Import, x: Expr, axis: int, index: Expr, updates: Expr, reduce: Reduction,
    *, include_self: bool,
) -> Expr:  # fmt: skip
    """Return `x` with what comes to a place reduced, with or without what is there."""
    dtype = ctx.dtype(x)
    if 0 in ctx.type(index).shape:
        return x
    start = x
    if not include_self:
        none = _filled(ctx, _identity(reduce, dtype), dtype, index)
        start = _scatter(ctx, x, axis, index, none, "update")
    if reduce != "mean":
        return _scatter(ctx, start, axis, index, updates, _HOW[reduce])
    total = _scatter(ctx, start, axis, index, updates, "add")
    ones = _filled(ctx, 1, dtype, index)
    counts = _filled(ctx, 1, dtype, x)
    if not include_self:
        zeros = _filled(ctx, 0, dtype, index)
        counts = _scatter(ctx, counts, axis, index, zeros, "update")
    counts = _scatter(ctx, counts, axis, index, ones, "add")
    whole = category(dtype) < category("float32")
    return relay.floor_divide(total, counts) if whole else relay.divide(total, counts)


@OPS.imports("aten::scatter_reduce")
def import_scatter_reduce(
    ctx: Import, self: Expr, index: Expr, src: Expr,
    *, dim: int, reduce: Reduction, include_self: bool = True,
) -> Expr:  # fmt: skip
    axis = ctx.axis(self, dim)
    if 0 not in ctx.type(index).shape and not _alike(ctx, index, src):
        src = relay.slice_like(at_least_vector(ctx, src), at_least_vector(ctx, index))
        index = at_least_vector(ctx, index)
    return _reduce(ctx, self, axis, index, src, reduce, include_self=include_self)


def _spread_index(ctx: Import, index: Expr, source: Expr, axis: int) -> Expr:
    """Return a vector of indices of an axis for each element of what goes there."""
    ctx.require_rank(index, 0, 1)
    ctx.require_rank(source, axis + 1)
    sizes: list[SymInt] = [1] * ctx.type(source).rank
    sizes[axis] = ctx.size(at_least_vector(ctx, index), 0)
    return broadcast(ctx, reshape(ctx, index, sizes), sizes_of(ctx, source))


def _place(ctx: Import, x: Expr, axis: int, index: Expr, source: Expr, how: How) -> Expr:
    """Return `x` with the entries of an axis that a vector names replaced, or added to."""
    source = at_least_vector(ctx, ctx.cast(source, ctx.dtype(x)))
    if not ctx.type(x).rank:
        source = reshape(ctx, source, [-1])
    return _scatter(ctx, x, axis, _spread_index(ctx, index, source, axis), source, how)


@OPS.imports("aten::index_add")
def import_index_add(
    ctx: Import, self: Expr, index: Expr, source: Expr, *, dim: int, alpha: Scalar = 1
) -> Expr:
    if isinstance(alpha, Expr) or alpha != 1:
        multiply = relay.logical_and if ctx.dtype(source) == "bool" else relay.multiply
        source = multiply(source, ctx.scalar(alpha, ctx.dtype(source)))
    return _place(ctx, self, ctx.axis(self, dim), index, source, "add")


@OPS.imports("aten::index_copy")
def import_index_copy(ctx: Import, self: Expr, index: Expr, source: Expr, *, dim: int) -> Expr:
    return _place(ctx, self, ctx.axis(self, dim), index, source, "update")


@OPS.imports("aten::index_reduce")
def import_index_reduce(
    ctx: Import, self: Expr, index: Expr, source: Expr,
    *, dim: int, reduce: Reduction, include_self: bool = True,
) -> Expr:  # fmt: skip
    axis, source = ctx.axis(self, dim), at_least_vector(ctx, source)
    places = _spread_index(ctx, index, source, axis)
    return _reduce(ctx, self, axis, places, source, reduce, include_self=include_self)


@OPS.imports("aten::index_fill")
def import_index_fill(ctx: Import, self: Expr, index: Expr, value: Expr, *, dim: int) -> Expr:
    """The entries of the axis that are named are marked, then replaced; negative ones count."""
    axis, rank = ctx.axis(self, dim), ctx.type(self).rank
    if 0 in ctx.type(index).shape:
        return self
    length = ctx.size(self, axis) if rank else 1
    places = at_least_vector(ctx, index)
    none = broadcast(ctx, Constant(np.zeros(1, np.int32)), [length])
    ones = _filled(ctx, 1, "int32", places)
    marks = relay.cast(relay.scatter_elements(none, places, ones, 0, "update"), "bool")
    shape: list[SymInt] = [1] * rank
    if rank:
        shape[axis] = length
    return relay.where(reshape(ctx, marks, shape), ctx.cast(value, ctx.dtype(self)), self)


@OPS.imports("aten::put")
def import_put(
    ctx: Import, self: Expr, index: Expr, source: Expr, *, accumulate: bool = False
) -> Expr:
    flat = [reshape(ctx, each, [-1]) for each in (self, index, source)]
    found = _scatter(ctx, flat[0], 0, flat[1], flat[2], "add" if accumulate else "update")
    return reshape(ctx, found, sizes_of(ctx, self))


@OPS.imports("aten::masked_scatter")
def import_masked_scatter(ctx: Import, self: Expr, mask: Expr, source: Expr) -> Expr:
    """Each place that is marked takes the next element of the source."""
    if 0 in ctx.type(source).shape:
        return self
    x = broadcast(ctx, self, sizes_of(ctx, mask)) if _is_wider(ctx, mask, self) else self
    marks = broadcast(ctx, ctx.cast(mask, "bool"), sizes_of(ctx, x))
    flat = relay.cast(reshape(ctx, marks, [-1]), "int64")
    places = relay.subtract(relay.cumsum(flat, axis=0), relay.const(1, "int64"))
    taken = relay.take(reshape(ctx, source, [-1]), places, axis=0, mode="clip")
    return relay.where(marks, reshape(ctx, taken, sizes_of(ctx, x)), x)


def _is_wider(ctx: Import, one: Expr, other: Expr) -> bool:
    return ctx.type(one).rank > ctx.type(other).rank


_REDUCTIONS = {"mul": "prod", "mean": "mean", "min": "amin", "max": "amax"}


@OPS.exports("scatter_elements")
def export_scatter_elements(
    ctx: Export, data: Value, indices: Value, updates: Value, *, axis: int, reduction: str
) -> Value:
    write = in_signed(_scatter_elements, ordered=reduction in ("min", "max"))
    return write(ctx, data, indices, updates, axis=axis, reduction=reduction)


def _scatter_elements(
    ctx: Export, data: Value, indices: Value, updates: Value, *, axis: int, reduction: str
) -> Value:
    axis = normalize_axis(axis, ctx.type(data).rank)
    places = from_start(ctx, indices, data, axis)
    if reduction == "update":
        return ctx.method(data, "scatter", axis, places, updates)
    if reduction == "add":
        return ctx.method(data, "scatter_add", axis, places, updates)
    if reduction == "mean" and not is_float(ctx.type(data).dtype):
        raise Unsupported(f"a mean of {ctx.type(data).dtype}, which PyTorch rounds otherwise")
    return ctx.method(data, "scatter_reduce", axis, places, updates, _REDUCTIONS[reduction])


@OPS.exports("scatter_nd")
def export_scatter_nd(
    ctx: Export, data: Value, indices: Value, updates: Value, *, mode: str
) -> Value:
    write = in_signed(_scatter_nd, ordered=mode in ("min", "max"))
    return write(ctx, data, indices, updates, mode=mode)


def _scatter_nd(ctx: Export, data: Value, indices: Value, updates: Value, *, mode: str) -> Value:
    if mode in ("update", "add"):
        (depth,) = ctx.static_lengths(indices, [0])
        given = as_index(ctx, indices)
        parts = [ctx.index(given, place) for place in range(depth)]
        options = {"accumulate": True} if mode == "add" else {}
        return ctx.method(data, "index_put", parts, updates, **options)
    rows = cast(ctx, indices, "int64")
    return ctx.call(ctx.helper("reduce_at"), data, rows, updates, _REDUCTIONS[mode])
