"""Elements picked by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise import cast
from serde.onnx.ops.shape import along, counting, integers, squeeze, unsqueeze
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr


@OPS.exports("take")
def export_take(
    ctx: ExportContext,
    x: Value,
    indices: Value,
    *,
    batch_dims: int,
    axis: int | None,
    mode: Literal["clip", "wrap", "fast"],
) -> Value:
    """ONNX counts negative indices from the end and refuses those outside."""
    index_rank = ctx.type(indices).rank
    length = ctx.type(x).size if axis is None else ctx.type(x).shape[axis]
    if axis is None:
        x = ctx.emit("Reshape", x, ctx.ints([-1]))
    place = 0 if axis is None else axis % ctx.type(x).rank
    rank = 1 if axis is None else ctx.type(x).rank
    if mode != "fast" and not _within(indices, length):
        indices = _bounded(ctx, indices, length, mode)
    indices = _as_places(ctx, indices)
    batched = batch_dims + index_rank if batch_dims < 0 else batch_dims
    if not batched:
        return ctx.emit("Gather", x, indices, axis=place)
    return _batched_take(ctx, x, indices, rank, index_rank, place, batched)


def _batched_take(
    ctx: ExportContext,
    x: Value,
    indices: Value,
    rank: int,
    index_rank: int,
    axis: int,
    batched: int,
) -> Value:
    """GatherND looks behind the batch axes, so `axis` goes there and what it passed comes back."""
    passed = list(range(batched, axis))
    order = [*range(batched), axis, *passed, *range(axis + 1, rank)]
    moved = ctx.emit("Transpose", x, perm=order) if passed else x
    single = unsqueeze(ctx, cast(ctx, indices, np.int64), [index_rank])
    found = _gathered(ctx, moved, single, index_rank + 1, batched)
    if not passed:
        return found
    new = range(batched, index_rank)
    back = [
        *range(batched),
        *(len(new) + each for each in passed),
        *new,
        *range(index_rank + len(passed), index_rank + rank - 1 - batched),
    ]
    return ctx.emit("Transpose", found, perm=back)


def _within(indices: Value, length: AnyValue) -> bool:
    data = indices.data
    if data is None or not isinstance(length, int):
        return False
    return bool(data.size == 0 or (data.min() >= 0 and data.max() < length))


def _bounded(ctx: ExportContext, indices: Value, length: AnyValue, mode: str) -> Value:
    dtype, rank = ctx.type(indices).dtype, ctx.type(indices).rank
    if dtype not in ("int32", "int64"):
        indices, dtype = cast(ctx, indices, np.int64), "int64"
    if isinstance(length, int):
        count = ctx.const(length, dtype)
        last = ctx.const(length - 1, dtype)
    else:
        vector = ctx.shape([length])
        single = vector if rank else squeeze(ctx, vector, [0])
        count = cast(ctx, single, dtype)
        last = ctx.emit("Sub", count, ctx.const(1, dtype))
    if mode == "wrap":
        return ctx.emit("Mod", indices, count)
    if ctx.version >= 12 and isinstance(length, int):
        return ctx.emit("Clip", indices, ctx.const(0, dtype), last)
    if ctx.version >= 12:
        return ctx.emit("Min", ctx.emit("Max", indices, ctx.const(0, dtype)), last)
    zero = ctx.const(0, dtype)
    low = ctx.emit("Where", ctx.emit("Less", indices, zero), zero, indices)
    return ctx.emit("Where", ctx.emit("Less", last, low), last, low)


@OPS.exports("gather")
def export_gather(ctx: ExportContext, x: Value, indices: Value, *, axis: int | None) -> Value:
    places = _as_places(ctx, indices)
    return ctx.emit("GatherElements", x, places, axis=(axis or 0) % ctx.type(x).rank)


def _as_places(ctx: ExportContext, indices: Value) -> Value:
    """Return indices as ONNX takes them: of 32 or 64 bits, signed."""
    known = indices.type is None or ctx.type(indices).dtype in ("int32", "int64")
    return indices if known else integers(ctx, indices)


@OPS.exports("gather_nd")
def export_gather_nd(
    ctx: ExportContext, x: Value, indices: Value, *, batch_dims: int, index_rank: int | None
) -> Value:
    """Relay keeps the tuple of an index in the first axis, ONNX in the last."""
    rank = ctx.type(indices).rank
    wide = integers(ctx, indices)
    moved = ctx.emit("Transpose", wide, perm=[*range(1, rank), 0]) if rank > 1 else wide
    return _gathered(ctx, x, moved, rank, batch_dims)


@OPS.imports("Slice", since=1)
def import_slice_v1(
    ctx: ImportContext,
    x: Expr,
    *,
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: tuple[int, ...] | None = None,
) -> Expr:
    return relay.strided_slice(x, starts, ends, axes=axes or tuple(range(len(starts))))


@OPS.imports("Slice", since=(10, 11, 13))
def import_slice(
    ctx: ImportContext,
    x: Expr,
    starts: Expr,
    ends: Expr,
    axes: Expr | None = None,
    steps: Expr | None = None,
) -> Expr:
    """An end that is the length of its axis is every end behind it."""
    (count,) = ctx.static_shape(starts)
    if axes is not None and not ctx.is_constant(axes):
        return _sliced_at(ctx, x, starts, ends, axes, steps)
    places = tuple(range(count)) if axes is None else ctx.ints(axes)
    lengths = [ctx.type(x).shape[place] for place in places]
    begin, end = ctx.dims(starts), ctx.dims(ends)
    if end is not None:
        pairs = zip(end, lengths, strict=True)
        end = tuple(FAR if not isinstance(e, int) and e == n else e for e, n in pairs)
    step = None if steps is None else ctx.ints(steps) if ctx.is_constant(steps) else steps
    return relay.strided_slice(x, _known(begin, starts), _known(end, ends), step, axes=places)


def _known(found: Sequence[Dim] | None, computed: Expr) -> tuple[int, ...] | Expr:
    """Return bounds that are all integers, else what computes them."""
    known = tuple(each for each in found or () if isinstance(each, int))
    return computed if found is None or len(known) < len(found) else known


def _sliced_at(
    ctx: ImportContext, x: Expr, starts: Expr, ends: Expr, axes: Expr, steps: Expr | None
) -> Expr:
    """Slice axes that are computed: all of them, those that are not named whole."""
    rank = ctx.type(x).rank
    places = relay.floor_mod(relay.cast(axes, "int64"), relay.Constant(np.array(rank, np.int64)))
    rows = relay.equal(relay.expand_dims(places, axis=0), relay.Constant(np.arange(rank)[:, None]))
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


@OPS.imports("GatherElements", since=(11, 13))
def import_gather_elements(ctx: ImportContext, x: Expr, indices: Expr, *, axis: int = 0) -> Expr:
    return relay.gather(x, axis, indices)


def _gathered(ctx: ExportContext, x: Value, indices: Value, rank: int, batch_dims: int) -> Value:
    """Look indices of `rank` axes up; before 12, their places in the batch become part of them."""
    if not batch_dims or ctx.version >= 12:
        return ctx.emit("GatherND", x, indices, batch_dims=batch_dims or None)
    shape = ctx.emit("Shape", indices)
    front = ctx.emit("Slice", shape, ctx.ints([0]), ctx.ints([rank - 1]), ctx.ints([0]))
    single = ctx.emit("Concat", front, ctx.ints([1]), axis=0)
    parts = []
    for axis in range(batch_dims):
        count = ctx.emit("Gather", shape, ctx.ints([axis]), axis=0)
        steps = along(ctx, counting(ctx, count), axis, rank)
        parts.append(ctx.emit("Expand", steps, single))
    return ctx.emit("GatherND", x, ctx.emit("Concat", *parts, indices, axis=-1))


@OPS.exports("adv_index")
def export_adv_index(ctx: ExportContext, operands: tuple[Value, ...]) -> Value:
    """The indices broadcast, then stand side by side as rows."""
    x, indices = operands[0], operands[1:]
    wide = [integers(ctx, each) for each in indices]
    if len(wide) == 1:
        return ctx.emit("Gather", x, wide[0], axis=0)
    rank = max(ctx.type(each).rank for each in indices)
    total = wide[0]
    for each in wide[1:]:
        total = ctx.emit("Add", total, each)
    shape = ctx.emit("Shape", total)
    spread = [unsqueeze(ctx, ctx.emit("Expand", each, shape), [rank]) for each in wide]
    return ctx.emit("GatherND", x, ctx.emit("Concat", *spread, axis=-1))


@OPS.exports("unravel_index")
def export_unravel_index(ctx: ExportContext, x: Value, shape: Value) -> Value:
    """The last coordinate is the rest by the last length, and so on with the quotient."""
    (count,) = ctx.static_shape(shape)
    rest, sizes = integers(ctx, x), integers(ctx, shape)
    coordinates = []
    for axis in reversed(range(count)):
        size = ctx.emit("Gather", sizes, ctx.const(axis, np.int64), axis=0)
        place = ctx.emit("Mod", rest, size, fmod=0)
        rest = ctx.emit("Div", ctx.emit("Sub", rest, place), size)
        coordinates.append(unsqueeze(ctx, place, [0]))
    found = ctx.emit("Concat", *coordinates[::-1], axis=0)
    dtype = ctx.result_type().dtype
    return found if dtype == "int64" else cast(ctx, found, dtype)
