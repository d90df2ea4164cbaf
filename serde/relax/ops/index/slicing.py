"""Regions cut out of tensors, or overwritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final

import serde.core.allocation as allocation
import serde.relay as relay
from serde.relax.ops.shape.dynamic import compute_lengths
from serde.relax.ops.table import OPS, Export, Import, Scalar, Value
from serde.relay.ir import Any, Dim, Expr, SymDim, normalize_axis
from serde.relay.op.index.slicing import FAR, StridedSlice, slice_dim

__all__ = ["cut", "find_ends"]


def find_ends(
    tir: AnyValue, begin: AnyValue, end: AnyValue, stride: AnyValue, length: AnyValue
) -> tuple[AnyValue, AnyValue]:
    """Return the first place of a slice and how many it has, as Python counts them.

    Args:
        tir: ``tvm.tir``.
        begin: Where it begins, as an expression of 64 bits, like all others.
        end: Where it ends.
        stride: The step.
        length: Length of the axis.
    """
    zero, one = tir.IntImm("int64", 0), tir.IntImm("int64", 1)
    back = stride < 0
    low = tir.Select(back, zero - one, zero)
    high = tir.Select(back, length - one, length)
    ends = []
    for each in (begin, end):
        own = tir.Select(each < 0, each + length, each)
        ends.append(tir.min(tir.max(own, low), high))
    first, last = ends
    ahead = tir.floordiv(last - first + stride - one, tir.max(stride, one))
    behind = tir.floordiv(first - last - stride - one, tir.max(zero - stride, one))
    return first, tir.max(tir.Select(back, behind, ahead), zero)


def cut(
    ctx: Export,
    data: Value,
    axes: Sequence[int],
    first: Sequence[AnyValue],
    steps: Sequence[AnyValue],
    lengths: Sequence[AnyValue],
) -> Value:
    """Write a region of a tensor.

    Args:
        ctx: The context.
        data: The tensor.
        axes: The axes that are cut.
        first: The first place along each of them, as integers or expressions of TIR.
        steps: The steps, likewise.
        lengths: How many entries are taken, likewise.
    """
    te = ctx.framework.te

    def strided_slice(x: AnyValue, starts: Sequence[AnyValue], by: Sequence[AnyValue]) -> AnyValue:
        shape = list(x.shape)
        for axis, length in zip(axes, ctx.wide(lengths), strict=True):
            shape[axis] = length

        def one(*indices: AnyValue) -> AnyValue:
            source = list(indices)
            for axis, start, step in zip(axes, starts, by, strict=True):
                source[axis] = start + indices[axis] * step
            return x(*source)

        return te.compute(shape, one, name="strided_slice")

    return ctx.emit_te(strided_slice, data, list(first), list(steps))


@OPS.exports("strided_slice")
def export_strided_slice(ctx: Export, data: Value, *, region: StridedSlice) -> Value:
    shape = ctx.named_shape(data)
    cuts = region.cuts(len(shape))
    cuts = {axis: each for axis, each in cuts.items() if each != (0, FAR, 1)}
    return _slice(ctx, data, shape, cuts) if cuts else data


def _slice(
    ctx: Export, data: Value, shape: Sequence[Dim], cuts: Mapping[int, tuple[int, int, int]]
) -> Value:
    """Use Relax's operator where the region is known."""
    tir = ctx.framework.tir
    starts: list[AnyValue] = []
    lengths: list[AnyValue] = []
    stops = []
    for axis, (begin, end, step) in cuts.items():
        length = shape[axis]
        if isinstance(length, int):
            start, stop, _ = slice(begin, end, step).indices(length)
            starts.append(start)
            lengths.append(len(range(start, stop, step)))
            stops.append(start + lengths[-1] * step)
            continue
        wanted = slice_dim(length, begin, end, step)
        first, last, by = ctx.wide([begin, end, step])
        start, count = find_ends(tir, first, last, by, ctx.dim(length))
        inside = not isinstance(wanted, Any)
        starts.append(begin if inside and 0 <= begin < FAR and step > 0 else start)
        lengths.append(ctx.dim(wanted) if inside else count)
    steps = [step for _, _, step in cuts.values()]
    if len(stops) == len(cuts) and min(steps) > 0 and 0 not in lengths:
        return ctx.emit("strided_slice", data, list(cuts), starts, stops, steps)
    return cut(ctx, data, list(cuts), starts, steps, lengths)


@OPS.exports("slice_like")
def export_slice_like(
    ctx: Export, data: Value, shape_like: Value, *, axes: tuple[int, ...] | None
) -> Value:
    own, like = ctx.extents(data), ctx.extents(shape_like)
    over = [axis % len(own) for axis in axes] if axes else list(range(min(len(own), len(like))))
    lengths = [like[axis] for axis in axes or over]
    zeros, ones = [0] * len(over), [1] * len(over)
    if all(isinstance(each, int) and each for each in lengths):
        return ctx.emit("strided_slice", data, over, zeros, lengths, ones)
    return cut(ctx, data, over, zeros, ones, lengths)


@OPS.exports("dyn.strided_slice")
def export_dyn_strided_slice(
    ctx: Export, data: Value, begin: Value, end: Value, strides: Value,
    *, slice_mode: str, axes: tuple[int, ...] | None,
) -> Value:  # fmt: skip
    tir = ctx.framework.tir
    own = ctx.wide(ctx.extents(data))
    (count,) = ctx.extents(begin)
    over = list(range(count)) if axes is None else [axis % len(own) for axis in axes]

    def regions(
        first: AnyValue, last: AnyValue, by: AnyValue, *lengths: AnyValue
    ) -> list[AnyValue]:
        starts, steps, counts = [], [], []
        for number, length in enumerate(lengths):
            start, stop, step = (each[number].astype("int64") for each in (first, last, by))
            if slice_mode == "size":
                step = tir.IntImm("int64", 1)
                stop = tir.Select(stop < 0, length, start + stop)
            start, found = find_ends(tir, start, stop, step, length)
            starts.append(start)
            steps.append(step)
            counts.append(found)
        return [*starts, *steps, *counts]

    operands = [begin, end, strides, *(own[axis] for axis in over)]
    found = compute_lengths(ctx, 3 * count, regions, *operands)
    starts, steps, counts = (found[n * count : (n + 1) * count] for n in range(3))
    return cut(ctx, data, over, starts, steps, counts)


@OPS.imports("relax.strided_slice")
def import_strided_slice(
    ctx: Import, x: Expr,
    *, axes: tuple[Scalar, ...], begin: tuple[Scalar, ...], end: tuple[Scalar, ...],
    strides: tuple[Scalar, ...] | None = None, assume_inbound: bool,
) -> Expr:  # fmt: skip
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
    ctx: Import, x: Expr, begin: Expr, end: Expr, strides: Expr
) -> Expr:
    return relay.strided_slice(x, begin, end, strides)


@OPS.imports("relax.slice_scatter")
def import_slice_scatter(
    ctx: Import, input: Expr, src: Expr, *, start: Scalar, end: Scalar, step: Scalar, axis: int
) -> Expr:
    axis = normalize_axis(axis, ctx.rank(input))
    (length,) = ctx.static_lengths(input, [axis])
    order = allocation.arange(length)
    written = order[ctx.number(start) : ctx.number(end) : ctx.number(step)]
    written[:] = length + allocation.arange(len(written))
    both = relay.concatenate([input, src], axis=axis)
    return relay.take(both, ctx.const(order, "int64"), axis=axis, mode="clip")
