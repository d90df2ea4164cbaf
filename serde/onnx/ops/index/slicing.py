"""Rectangular regions, cut or overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import to_int64
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, SymDim
from serde.relay.op.index.slicing import StridedSlice

END = int(np.iinfo(np.int64).max)


@OPS.exports("strided_slice")
def export_strided_slice(ctx: Export, x: Value, *, region: StridedSlice) -> Value:
    """In mode "size" the ends are lengths, and -1 means all that follows.

    Of a slice backwards, ONNX moves a start in front of the axis to its first element, and ONNX
    Runtime takes the greatest int32 or int64 as an end for the beginning.
    """
    cuts = region.cuts(ctx.type(x).rank)
    starts, stops, steps = map(list, zip(*cuts.values(), strict=True)) if cuts else ([], [], [])
    for index, (position, step) in enumerate(zip(cuts, steps, strict=True)):
        length = ctx.type(x).shape[position]
        if step < 0 and isinstance(length, int) and starts[index] < -length:
            starts[index], stops[index] = 0, 0
        elif step < 0:
            stops[index] = min(stops[index], 2**31 - 2)
    return ctx.emit("Slice", x, *map(ctx.ints, (starts, stops, list(cuts), steps)))


@OPS.imports("Slice", since=1)
def import_slice_v1(
    ctx: Import,
    x: Expr,
    *,
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: tuple[int, ...] | None = None,
) -> Expr:
    return relay.strided_slice(x, starts, ends, axes=axes or tuple(range(len(starts))))


@OPS.imports("Slice", since=(10, 11, 13))
def import_slice(
    ctx: Import,
    x: Expr,
    starts: Expr,
    ends: Expr,
    axes: Expr | None = None,
    steps: Expr | None = None,
) -> Expr:
    """An end that is the length of its axis is every end behind it."""
    count = ctx.axis_count(starts)
    if axes is not None and not ctx.is_constant(axes):
        return _slice_computed_axes(ctx, x, starts, ends, axes, steps)
    indices = tuple(range(count)) if axes is None else ctx.ints(axes)
    lengths = [ctx.dim_at(x, axis) for axis in indices]
    begin, end = ctx.dims(starts), ctx.dims(ends)
    if end is not None:
        if len(end) != len(lengths):
            raise Unsupported(f"{len(end)} ends of {len(lengths)} axes")
        pairs = zip(end, lengths, strict=True)
        end = tuple(FAR if not isinstance(e, int) and e == n else e for e, n in pairs)
    step = None if steps is None else ctx.ints(steps) if ctx.is_constant(steps) else steps
    return relay.strided_slice(x, _known(begin, starts), _known(end, ends), step, axes=indices)


@OPS.exports("slice_like")
def export_slice_like(ctx: Export, x: Value, like: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(x).rank
    indices = [axis % rank for axis in axes] if axes else list(range(ctx.type(like).rank))
    wanted = [ctx.type(like).shape[axis] for axis in indices]
    if not all(isinstance(dim, int) or (isinstance(dim, SymDim) and dim.name) for dim in wanted):
        ends = ctx.emit("Gather", ctx.emit("Shape", like), ctx.ints(indices), axis=0)
    else:
        ends = ctx.shape(wanted)
    return ctx.emit("Slice", x, ctx.ints([0] * len(indices)), ends, ctx.ints(indices))


@OPS.exports("dyn.strided_slice")
def export_dyn_strided_slice(
    ctx: Export, x: Value, begin: Value, end: Value, strides: Value,
    *, slice_mode: Literal["end", "size"], axes: tuple[int, ...] | None,
) -> Value:  # fmt: skip
    """In mode "size" the ends are lengths, and -1 means all that follows."""
    (count,) = ctx.static_shape(begin, 1)
    indices = ctx.ints(range(count) if axes is None else axes)
    first, last, steps = (to_int64(ctx, each) for each in (begin, end, strides))
    if slice_mode == "size":
        steps = ctx.ints([1] * count)
        rest = ctx.emit("Less", last, ctx.const(0, np.int64))
        last = ctx.emit("Where", rest, ctx.const(END, np.int64), ctx.emit("Add", first, last))
    return ctx.emit("Slice", x, first, last, indices, steps)


def _known(found: Sequence[Dim] | None, computed: Expr) -> tuple[int, ...] | Expr:
    """Return bounds that are all integers, else what computes them."""
    known = tuple(each for each in found or () if isinstance(each, int))
    return computed if found is None or len(known) < len(found) else known


def _slice_computed_axes(
    ctx: Import, x: Expr, starts: Expr, ends: Expr, axes: Expr, steps: Expr | None
) -> Expr:
    """Slice axes that are computed: all of them, those that are not named whole."""
    rank = ctx.type(x).rank
    indices = relay.floor_mod(relay.cast(axes, "int64"), relay.Constant(np.array(rank, np.int64)))
    rows = relay.equal(relay.expand_dims(indices, axis=0), relay.Constant(np.arange(rank)[:, None]))
    named = relay.any(rows, axis=(1,))
    ones = relay.ones_like(axes) if steps is None else steps
    bounds = []
    for bound, default in ((starts, 0), (ends, FAR), (ones, 1)):
        wide = relay.where(rows, relay.cast(bound, "int64"), relay.Constant(np.int64(0)))
        given = relay.sum(wide, axis=(1,))
        bounds.append(relay.where(named, given, relay.Constant(np.int64(default))))
    begin, end, step = bounds
    return relay.strided_slice(x, begin, end, step, axes=tuple(range(rank)))


FAR = 2**62
"""An end behind every axis."""
