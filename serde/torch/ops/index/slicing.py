"""Parts of an axis, those that are computed too, and parts of it replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Any, Constant, Dim, Expr, call, same_length
from serde.relay.op.index.dynamic import DynamicTopK
from serde.relay.op.index.slicing import StridedSlice
from serde.torch.ops.shape.lengths import (
    add_lengths,
    broadcast,
    is_at_most,
    restore,
    sizes_of,
    subtract_lengths,
)
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value
from serde.torch.ops.written import cast, in_signed

__all__ = ["FAR", "cut"]

FAR: Final = 2**31 - 1
"""An end behind every axis."""


def cut(
    ctx: Import,
    x: Expr,
    axis: int,
    start: SymInt | None = None,
    end: SymInt | None = None,
    step: int = 1,
) -> Expr:
    """Return a slice along an axis, counted as Python counts it."""
    type_ = ctx.type(x)
    if axis >= type_.rank:
        raise Unsupported(f"a slice along axis {axis} of {type_!r}")
    length = type_.shape[axis]
    start = _count_from_start(ctx, 0 if start is None else start, x, axis)
    end = FAR if end is None else _count_from_start(ctx, end, x, axis)
    first, last = _bound(ctx, start, length), _bound(ctx, end, length)
    far = length if isinstance(length, int) else FAR
    if first == 0 and step == 1 and last is not None and last >= far:
        return x
    if first is not None and last is not None:
        found = relay.strided_slice(x, [first], [last], [step], axes=[axis])
        return _with_length(ctx, found, axis, length, (first, last, step))
    return _cut_computed(ctx, x, axis, start, None if last == FAR else end, step)


def _count_from_start(ctx: Import, bound: SymInt, x: Expr, axis: int) -> SymInt:
    """Return a bound; one that is negative whatever symbols stand for, counted from the start."""
    found = ctx.dim(bound)
    if isinstance(found, int) or not ctx.at_least(0 - found, 1):
        return bound
    counted = add_lengths(ctx, ctx.size(x, axis), bound)
    if not isinstance(counted, Expr):
        return max(counted, 0)
    return counted if is_at_most(ctx, 0, counted) else bound


def _with_length(ctx: Import, x: Expr, axis: int, whole: Dim, bounds: tuple[int, int, int]) -> Expr:
    """Return a slice with the length that it has where the axis is long enough for its bounds."""
    start, end, step = bounds
    if not isinstance(ctx.type(x).shape[axis], Any):
        return x
    if start >= 0 and 0 <= end < FAR:
        least, span = max(start, end), end - start
    elif start < 0 and (end < 0 or end == FAR):
        least, span = -start, (end if end < 0 else 0) - start
    else:
        return x
    if not ctx.at_least(whole, least):
        return x
    dims = list(ctx.type(x).shape)
    dims[axis] = max(0, -(-span // step))
    return restore(ctx, x, dims)


def _bound(ctx: Import, value: SymInt, length: Dim) -> int | None:
    """Return a bound as an integer, counted from the end where only that is fixed."""
    found = ctx.dim(value)
    if isinstance(found, int):
        return max(-FAR, min(found, FAR))
    if isinstance(found, Any) or isinstance(length, Any):
        return None
    distance = found - length
    if not isinstance(distance, int):
        return None
    return distance if distance < 0 else FAR


def _cut_computed(
    ctx: Import, x: Expr, axis: int, start: SymInt, end: SymInt | None, step: int
) -> Expr:
    """Return a slice of which a bound is computed, its length said where it is certain."""
    last = FAR if end is None else end
    bounds = [ctx.shape_vector([each]) for each in (start, last)]
    steps = relay.const([step], "int64")
    found = call("dyn.strided_slice", x, *bounds, steps, axes=(axis,))
    dims = list(ctx.type(x).shape)
    dims[axis] = _length(ctx, ctx.size(x, axis), start, end, step)
    return restore(ctx, found, dims)


def _length(ctx: Import, whole: SymInt, start: SymInt, end: SymInt | None, step: int) -> Dim:
    """Return how long a slice is, if its bounds lie inside the axis whatever symbols stand for."""
    last = whole if end is None else end
    inside = is_at_most(ctx, 0, start) and is_at_most(ctx, last, whole)
    if not inside or not is_at_most(ctx, start, last):
        return Any()
    span = ctx.dim(subtract_lengths(ctx, last, start))
    return (span + (step - 1)) // step


@OPS.imports("aten::slice.Tensor", "aten::slice", "aten::slice_copy")
def import_slice(
    ctx: Import,
    self: Expr,
    *,
    dim: int = 0,
    start: SymInt | None = None,
    end: SymInt | None = None,
    step: SymInt = 1,
) -> Expr:
    return cut(ctx, self, ctx.axis(self, dim), start, end, ctx.fixed(step))


@OPS.imports("aten::narrow", "aten::narrow_copy")
def import_narrow(ctx: Import, self: Expr, *, dim: int, start: SymInt, length: SymInt) -> Expr:
    ctx.require_rank(self, 1)
    axis = ctx.axis(self, dim)
    first: SymInt = start
    if isinstance(start, Expr):
        number = ctx.as_number(ctx.scalar(start, "int64"))
        first = number if isinstance(number, Expr) else int(number.real)
    whole = ctx.type(self).shape[axis]
    if type(first) is int and first < 0:
        first = add_lengths(ctx, first, ctx.size(self, axis))
    found = cut(ctx, self, axis, first, add_lengths(ctx, first, length))
    dims = list(ctx.type(self).shape)
    dims[axis] = ctx.dim(length)
    return found if isinstance(whole, int) and type(first) is int else restore(ctx, found, dims)


@OPS.imports("aten::select.int", "aten::select_copy", "aten::select")
def import_select(ctx: Import, self: Expr, *, dim: int, index: SymInt) -> Expr:
    ctx.require_rank(self, 1)
    axis = ctx.axis(self, dim)
    length = ctx.type(self).shape[axis]
    place = _bound(ctx, index, length)
    if place is None:
        return call("serde.take", self, ctx.scalar(index, "int64"), axis=axis)
    if isinstance(length, int):
        if not -length <= place < length:
            raise Unsupported(f"index {place} is outside a length of {length}")
        place %= length
    if place >= 0:
        return relay.take(self, relay.const(place, "int64"), axis=axis, mode="fast")
    end = FAR if place == -1 else place + 1
    part = relay.strided_slice(self, [place], [end], [1], axes=[axis])
    return relay.squeeze(part, axis=(axis,))


@OPS.imports("aten::slice_scatter", "aten::slice_inverse")
def import_slice_scatter(
    ctx: Import, self: Expr, src: Expr,
    *, dim: int = 0, start: SymInt | None = None, end: SymInt | None = None, step: SymInt = 1,
) -> Expr:  # fmt: skip
    axis = ctx.axis(self, dim)
    ctx.require_rank(self, 1)
    by = ctx.fixed(step)
    new = ctx.cast(src, ctx.dtype(self))
    length = ctx.type(self).shape[axis]
    first = _bound(ctx, 0 if start is None else start, length)
    last = _bound(ctx, FAR if end is None else end, length)
    far = length if isinstance(length, int) else FAR
    if first == 0 and by == 1 and last is not None and last >= far:
        return broadcast(ctx, new, sizes_of(ctx, self))
    return _replace(ctx, self, new, axis, start or 0, FAR if end is None else end, by)


def _replace(
    ctx: Import, x: Expr, new: Expr, axis: int, start: SymInt, end: SymInt, step: int
) -> Expr:
    """Return `x` with a slice along an axis replaced."""
    begins = ctx.shape_vector([*[0] * axis, start])
    ends = ctx.shape_vector([*[FAR] * axis, end])
    steps = Constant(np.array([*[1] * axis, step], np.int64))
    return relay.strided_set(x, new, begins, ends, steps)


@OPS.imports("aten::select_scatter")
def import_select_scatter(ctx: Import, self: Expr, src: Expr, *, dim: int, index: SymInt) -> Expr:
    axis = ctx.axis(self, dim)
    new = relay.expand_dims(ctx.cast(src, ctx.dtype(self)), axis=axis)
    end: SymInt = FAR
    if isinstance(index, Expr) or index != -1:
        end = add_lengths(ctx, index, 1)
    return _replace(ctx, self, new, axis, index, end, 1)


def _write_slices(ctx: Export, x: Value, slices: Sequence[slice]) -> Value:
    """Return the region of `x` that slices of the leading axes name, steps being positive."""
    found = list(slices)
    while found and found[-1] == slice(None):
        found.pop()
    if not found:
        return x
    return ctx.index(x, tuple(found) if len(found) > 1 else found[0])


def _forward(length: Dim, first: int, last: int, step: int) -> slice:
    """Return a slice of positive step, its ends left out where they are those of the axis."""
    if isinstance(length, int):
        start, stop, step = slice(first, last, step).indices(length)
        return slice(start or None, None if stop == length else max(start, stop), _step(step))
    begin = None if first == 0 or first <= -FAR else first
    return slice(begin, None if last >= FAR else last, _step(step))


def _step(step: int) -> int | None:
    return None if step == 1 else step


def _backward(length: Dim, first: int, last: int, step: int) -> slice:
    """Return the slice of a flipped axis that a slice of negative step is of the axis itself."""
    if isinstance(length, int):
        places = range(*slice(first, last, step).indices(length))
        if not places:
            return slice(None, 0)
        start, stop = length - 1 - places[0], length - places[-1]
        return slice(start or None, None if stop == length else stop, _step(-step))
    begin = None if first >= FAR or first == -1 else -1 - first
    end = None if last <= -FAR else -1 - last
    return slice(begin, end, _step(-step))


@OPS.exports("strided_slice")
@in_signed
def export_strided_slice(ctx: Export, data: Value, *, region: StridedSlice) -> Value:
    shape = ctx.type(data).shape
    slices, flipped = [slice(None)] * len(shape), []
    for axis, (first, last, step) in region.cuts(len(shape)).items():
        if step > 0:
            slices[axis] = _forward(shape[axis], first, last, step)
        else:
            slices[axis] = _backward(shape[axis], first, last, step)
            flipped.append(axis)
    if flipped:
        data = ctx.method(data, "flip", *flipped)
    return _write_slices(ctx, data, slices)


@OPS.exports("slice_like")
def export_slice_like(
    ctx: Export, data: Value, shape_like: Value, *, axes: tuple[int, ...] | None
) -> Value:
    shape, like = ctx.type(data).shape, ctx.type(shape_like).shape
    chosen = [axis % len(shape) for axis in axes] if axes else range(len(shape))
    slices = [slice(None)] * len(shape)
    for axis in chosen:
        if not same_length(shape[axis], like[axis]):
            slices[axis] = slice(None, ctx.size(shape_like, axis))
    return _write_slices(ctx, data, slices)


@OPS.exports("dyn.strided_slice")
def export_dyn_strided_slice(
    ctx: Export, data: Value, begin: Value, end: Value, strides: Value,
    *, slice_mode: str, axes: tuple[int, ...] | None,
) -> Value:  # fmt: skip
    rank = ctx.type(data).rank
    chosen = [axis % rank for axis in axes] if axes is not None else []
    if axes is None:
        (count,) = ctx.type(begin).shape
        chosen = list(range(count if isinstance(count, int) else rank))
    firsts, stops, steps = (ctx.numbers(each) for each in (begin, end, strides))
    forward = strides.data is not None and bool((strides.data > 0).all())
    if forward and slice_mode == "end" and firsts and stops and steps:
        slices = [slice(None)] * rank
        for axis, first, last, step in zip(chosen, firsts, stops, steps, strict=False):
            stop = None if isinstance(last, int) and last >= FAR else last
            slices[axis] = slice(first or None, stop, None if step == 1 else step)
        return _write_slices(ctx, data, slices)
    return ctx.call(
        ctx.helper("slice_axes"), data, begin, end, strides, chosen, slice_mode == "size"
    )


@OPS.exports("dyn.topk")
def export_dyn_topk(
    ctx: Export, data: Value, k: Value, *, topk: DynamicTopK
) -> Value | tuple[Value, ...]:
    rank = ctx.type(data).rank
    found = ctx.call_tuple(
        ctx.helper("first_sorted"), data, k, topk.axis % rank, not topk.is_ascend, outputs=2
    )
    types = ctx.result_types()
    if topk.ret_type == "values":
        return found[0]
    places = cast(ctx, found[1], types[-1].dtype, "int64")
    return places if topk.ret_type == "indices" else (found[0], places)
