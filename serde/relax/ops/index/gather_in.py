"""Importers of elements looked up, put, sorted and counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue
from typing import Final, Literal

import serde.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext, Scalar
from serde.relax.ops.table import OPS
from serde.relay.ir.dims import Dim, SymDim
from serde.relay.ir.expr import Expr, Tuple, TupleGetItem
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float, normalize_axis
from serde.walk.pairs import reads

__all__: list[str] = []


@OPS.imports("relax.take")
def import_take(
    ctx: ImportContext,
    x: Expr,
    indices: Expr,
    *,
    axis: int | None,
    mode: Literal["fast", "clip", "wrap", "nan"],
) -> Expr:
    """In mode "nan" what is out of range is NaN."""
    if mode != "nan":
        return relay.take(x, indices, axis=axis, mode=mode)
    if not is_float(ctx.dtype(x)):
        raise Unsupported(f"mode='nan' of {ctx.dtype(x)} has no counterpart")
    if axis is None:
        x, axis = relay.reshape(x, (-1,)), 0
    axis = normalize_axis(axis, ctx.rank(x))
    (length,) = ctx.static_lengths(x, [axis])
    places = relay.cast(indices, "int64")
    inside = relay.logical_and(
        relay.greater_equal(places, ctx.const(0, "int64")),
        relay.less(places, ctx.const(length, "int64")),
    )
    for _ in range(ctx.rank(x) - axis - 1):
        inside = relay.expand_dims(inside, ctx.rank(inside))
    found = relay.take(x, indices, axis=axis, mode="clip")
    return relay.where(inside, found, ctx.like(x, float("nan")))


@OPS.imports("relax.strided_slice")
def import_strided_slice(
    ctx: ImportContext,
    x: Expr,
    *,
    axes: tuple[Scalar, ...],
    begin: tuple[Scalar, ...],
    end: tuple[Scalar, ...],
    strides: tuple[Scalar, ...] | None = None,
    assume_inbound: bool,
) -> Expr:
    rank = ctx.rank(x)
    along = [normalize_axis(ctx.number(each), rank) for each in axes]
    steps = [1] * len(along) if strides is None else [ctx.number(each) for each in strides]
    starts, ends = ctx.dims_of(begin), ctx.dims_of(end)
    if starts is not None and ends is not None:
        lengths = [ctx.type(x).shape[axis] for axis in along]
        far = [_FAR if _reaches(e, n) else e for e, n in zip(ends, lengths, strict=True)]
        first = [each for each in starts if isinstance(each, int)]
        last = [each for each in far if isinstance(each, int)]
        if len(first) == len(last) == len(along):
            return relay.strided_slice(x, first, last, steps, axes=along)
    return relay.strided_slice(
        x, ctx.shape_tensor(begin), ctx.shape_tensor(end), ctx.const(steps, "int64"), axes=along
    )


_FAR: Final = 2**63 - 1
"""An end behind any length."""


def _reaches(end: Dim, length: Dim) -> bool:
    return isinstance(end, SymDim) and end == length


@OPS.imports("relax.dynamic_strided_slice")
def import_dynamic_strided_slice(
    ctx: ImportContext, x: Expr, begin: Expr, end: Expr, strides: Expr
) -> Expr:
    return relay.strided_slice(x, begin, end, strides)


@OPS.imports("relax.gather_nd")
def import_gather_nd(ctx: ImportContext, data: Expr, indices: Expr, *, batch_dims: int) -> Expr:
    """An index lies along the last axis, in Relay along the first."""
    rank = ctx.rank(indices)
    first = relay.transpose(indices, axes=[rank - 1, *range(rank - 1)])
    return relay.gather_nd(data, first, batch_dims=batch_dims)


@OPS.imports("relax.index_tensor")
def import_index_tensor(ctx: ImportContext, data: Expr, indices: Expr) -> Expr:
    return relay.adv_index(Tuple([data, *ctx.fields(indices)]))


@OPS.imports("relax.index_put")
def import_index_put(
    ctx: ImportContext, data: Expr, indices: Expr, values: Expr, *, accumulate: bool
) -> Expr:
    places = ctx.fields(indices) if isinstance(indices, Tuple) else [indices]
    if len(places) != ctx.rank(data):
        raise Unsupported(f"{len(places)} indices of {ctx.rank(data)} axes")
    shape = _broadcast_shape(ctx, places)
    rows = relay.stack([relay.broadcast_to(each, shape) for each in places], axis=0)
    spread = relay.broadcast_to(values, shape)
    return relay.scatter_nd(data, rows, spread, mode="add" if accumulate else "update")


def _broadcast_shape(ctx: ImportContext, operands: Sequence[Expr]) -> tuple[Dim, ...]:
    whole = operands[0]
    for each in operands[1:]:
        whole = relay.add(whole, each)
    return ctx.type(whole).shape


@OPS.imports("relax.scatter_nd")
def import_scatter_nd(
    ctx: ImportContext,
    data: Expr,
    indices: Expr,
    updates: Expr,
    *,
    reduction: Literal["update", "add", "mul", "min", "max"],
) -> Expr:
    """An index lies along the last axis, in Relay along the first."""
    rank = ctx.rank(indices)
    first = relay.transpose(indices, axes=[rank - 1, *range(rank - 1)])
    return relay.scatter_nd(data, first, updates, mode=reduction)


@OPS.imports("relax.slice_scatter")
def import_slice_scatter(
    ctx: ImportContext,
    input: Expr,
    src: Expr,
    *,
    start: Scalar,
    end: Scalar,
    step: Scalar,
    axis: int,
) -> Expr:
    axis = normalize_axis(axis, ctx.rank(input))
    (length,) = ctx.static_lengths(input, [axis])
    order = allocation.arange(length)
    written = order[ctx.number(start) : ctx.number(end) : ctx.number(step)]
    written[:] = length + allocation.arange(len(written))
    both = relay.concatenate([input, src], axis=axis)
    return relay.take(both, ctx.const(order, "int64"), axis=axis, mode="clip")


@OPS.imports("relax.sort")
def import_sort(ctx: ImportContext, data: Expr, *, axis: int, descending: bool) -> Expr:
    return relay.sort(data, axis=axis, is_ascend=not descending)


@OPS.imports("relax.argsort")
def import_argsort(
    ctx: ImportContext, data: Expr, *, axis: int, descending: bool, dtype: str | None
) -> Expr:
    return relay.argsort(data, axis=axis, is_ascend=not descending, dtype=dtype or "int32")


@OPS.imports("relax.topk")
def import_topk(
    ctx: ImportContext,
    data: Expr,
    *,
    k: int,
    axis: int,
    ret_type: str,
    largest: bool,
    dtype: str | None,
) -> list[Expr]:
    found: AnyValue = relay.topk(
        data, k=k, axis=axis, ret_type=ret_type, is_ascend=not largest, dtype=dtype or "int32"
    )
    return [found[0], found[1]] if ret_type == "both" else [found]


@OPS.imports("relax.nonzero")
def import_nonzero(ctx: ImportContext, x: Expr) -> Expr:
    return relay.cast(call("serde.nonzero", x), "int64")


@OPS.imports("relax.unique")
def import_unique(
    ctx: ImportContext,
    x: Expr,
    *,
    sorted: Scalar,
    return_index: Scalar,
    return_inverse: Scalar,
    return_counts: Scalar,
    axis: Scalar | None = None,
) -> list[Expr]:
    along = None if axis is None else normalize_axis(ctx.number(axis), ctx.rank(x))
    found = call("serde.unique", x, axis=along, sorted=bool(ctx.number(sorted)))
    wanted = [True, *(bool(ctx.number(x)) for x in (return_index, return_inverse, return_counts))]
    return [TupleGetItem(found, place) for place, each in enumerate(wanted) if each]


@OPS.imports("relax.bucketize")
def import_bucketize(
    ctx: ImportContext, input_tensor: Expr, boundaries: Expr, *, out_int32: bool, right: bool
) -> Expr:
    dtype = "int32" if out_int32 else "int64"
    return relay.searchsorted(boundaries, input_tensor, right=right, dtype=dtype)


OPS.pairs(
    reads("relax.gather_elements", "gather", "axis"),
    reads("relax.scatter_elements", "scatter_elements", "axis", "reduction"),
)
