"""Parts of tensors by their ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr
from serde.tflite.ops.table import OPS, Export, Import, Value

_MOST = 2**31 - 1


@OPS.imports("SLICE")
def import_slice(ctx: Import, x: Expr, begin: Expr, size: Expr) -> Expr:
    """A size of -1 is what is left."""
    if not ctx.is_constant(begin) or not ctx.is_constant(size):
        sizes = relay.cast(size, "int64"), relay.cast(begin, "int64")
        return relay.strided_slice(x, sizes[1], sizes[0], slice_mode="size")
    starts, sizes_ = ctx.ints(begin), ctx.ints(size)
    ends = [_MOST if n == -1 else first + n for first, n in zip(starts, sizes_, strict=True)]
    return relay.strided_slice(x, starts, ends)


@OPS.imports("STRIDED_SLICE")
def import_strided_slice(
    ctx: Import, x: Expr, begin: Expr, end: Expr, strides: Expr,
    *, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0,
    shrink_axis_mask: int = 0, offset: bool = False,
) -> Expr:  # fmt: skip
    """Bits of the masks stand for entries of the operands."""
    steps = ctx.ints(strides)
    axis, entries = 0, list[tuple[int, int]]()
    added, dropped, kept = list[int](), list[int](), 0
    real = sum(not (new_axis_mask | ellipsis_mask) >> i & 1 for i in range(len(steps)))
    for i in range(len(steps)):
        if ellipsis_mask >> i & 1:
            skipped = ctx.rank(x) - real
            axis, kept = axis + skipped, kept + skipped
        elif new_axis_mask >> i & 1:
            added.append(kept)
            kept += 1
        else:
            entries.append((i, axis))
            if shrink_axis_mask >> i & 1:
                dropped.append(axis)
            else:
                kept += 1
            axis += 1
    found = _sliced(ctx, x, begin, end, steps, entries, begin_mask, end_mask, dropped, offset)
    if dropped:
        found = relay.squeeze(found, axis=dropped)
    for each in added:
        found = relay.expand_dims(found, axis=each)
    return found


def _sliced(
    ctx: Import, x: Expr, begin: Expr, end: Expr, steps: Sequence[int],
    entries: Sequence[tuple[int, int]], begin_mask: int, end_mask: int, dropped: Sequence[int],
    offset: bool,
) -> Expr:  # fmt: skip
    """Return the slices along the axes that entries stand for."""
    starts, ends = ctx.ints(begin), ctx.ints(end)
    first, last, strides, axes = [], [], [], []
    for i, axis in entries:
        step = 1 if axis in dropped else steps[i]
        if axis in dropped:
            low, high = starts[i], starts[i] + 1 or _MOST
        else:
            low = (0 if step > 0 else _MOST) if begin_mask >> i & 1 else starts[i]
            high = starts[i] + ends[i] if offset else ends[i]
            high = (_MOST if step > 0 else -_MOST) if end_mask >> i & 1 else high
        first.append(low)
        last.append(high)
        strides.append(step)
        axes.append(axis)
    return relay.strided_slice(x, first, last, strides, axes=axes)


def _region(ctx: Import, x: Expr, start: Expr, size: Sequence[int]) -> tuple[Expr, Expr]:
    """Return where a region begins and ends, moved to where it lies in the tensor."""
    shape = ctx.static_shape(x, len(size))
    room, dtype = np.subtract(shape, size), ctx.type(start).dtype
    if min(room, default=0) < 0 or min(size, default=0) < 0:
        raise Unsupported(f"a region of {list(size)} in {list(shape)}")
    low = relay.maximum(start, ctx.const(0, dtype))
    first = relay.minimum(low, ctx.const(room, dtype))
    return first, relay.add(first, ctx.const(size, dtype))


def _starts(ctx: Import, starts: Sequence[Expr], rank: int) -> Expr:
    """Return the starts of a region, which are scalars, as a vector."""
    if len(starts) != rank or any(ctx.rank(each) for each in starts):
        raise Unsupported(f"{len(starts)} starts of {rank} axes")
    return relay.stack(starts, axis=0)


@OPS.imports("DYNAMIC_UPDATE_SLICE")
def import_dynamic_update_slice(ctx: Import, x: Expr, update: Expr, start: Expr) -> Expr:
    return relay.strided_set(x, update, *_region(ctx, x, start, ctx.static_shape(update)))


@OPS.imports("STABLEHLO_DYNAMIC_UPDATE_SLICE")
def import_stablehlo_update(ctx: Import, x: Expr, update: Expr, *starts: Expr) -> Expr:
    return import_dynamic_update_slice(ctx, x, update, _starts(ctx, starts, ctx.rank(x)))


@OPS.imports("STABLEHLO_DYNAMIC_SLICE")
def import_dynamic_slice(ctx: Import, x: Expr, *starts: Expr, slice_sizes: AnyValue = None) -> Expr:
    size = ctx.numbers(slice_sizes, ctx.rank(x))
    first, _ = _region(ctx, x, _starts(ctx, starts, len(size)), size)
    last = relay.add(first, ctx.const(size, ctx.type(first).dtype))
    return relay.reshape(relay.strided_slice(x, first, last), size)


@OPS.imports("STABLEHLO_SLICE")
def import_stablehlo_slice(
    ctx: Import,
    x: Expr,
    *,
    start_indices: AnyValue = None,
    limit_indices: AnyValue = None,
    strides: AnyValue = None,
) -> Expr:
    rank = ctx.rank(x)
    first, last = (ctx.numbers(each, rank, 0) for each in (start_indices, limit_indices))
    steps = ctx.numbers(strides, rank)
    if min([*first, *last], default=0) < 0 or min(steps, default=1) < 1:
        raise Unsupported(f"parts from {first} to {last} by {steps}")
    return relay.strided_slice(x, first, last, steps)


@OPS.exports("strided_slice", when=lambda node: node.attrs["begin"] is not None)
def export_strided_slice(
    ctx: Export, data: Value,
    *, begin: tuple[int, ...], end: tuple[int, ...], strides: tuple[int, ...] | None,
    slice_mode: str, axes: tuple[int, ...] | None,
) -> Value:  # fmt: skip
    """Ends beyond the axis are those of the axis; masks say what is not cut."""
    rank = ctx.type(data).rank
    named = range(len(begin)) if axes is None else axes
    steps = list(strides or [1]) if slice_mode == "end" else [1]
    first, last, step = [0] * rank, [0] * rank, [1] * rank
    begins, ends = 2**rank - 1, 2**rank - 1
    for i, axis in enumerate(named):
        where, by = axis % rank, steps[i] if i < len(steps) else 1
        first[where], step[where] = begin[i], by
        last[where] = end[i] if slice_mode == "end" else begin[i] + end[i]
        begins &= ~(1 << where)
        is_all = slice_mode == "size" and end[i] < 0
        is_all = is_all or (slice_mode == "end" and by < 0 and end[i] < -_MOST // 2)
        ends = ends if is_all else ends & ~(1 << where)
    parts = [ctx.ints([max(-_MOST, min(x, _MOST)) for x in each]) for each in (first, last)]
    masks = {"begin_mask": begins, "end_mask": ends, "ellipsis_mask": 0}
    more = {"new_axis_mask": 0, "shrink_axis_mask": 0}
    return ctx.emit("STRIDED_SLICE", data, *parts, ctx.ints(step), **masks, **more)
