"""Slicing and looking up."""

from __future__ import annotations

from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.limits import MAX_INLINE_BYTES
from serde.onnx.context import ImportContext as ImportCtx
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise import cast, widened
from serde.onnx.ops.shape import integers, unsqueeze
from serde.onnx.ops.table import OPS
from serde.relay.dims import Any
from serde.relay.expr import Expr
from serde.relay.shapes import is_float

END = int(np.iinfo(np.int64).max)


@OPS.exports("strided_slice")
def export_strided_slice(
    ctx: Ctx,
    x: Value,
    *,
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...] | None,
    slice_mode: Literal["end", "size"],
    axes: tuple[int, ...] | None,
) -> Value:
    """In mode "size" the ends are lengths, and -1 means all that follows."""
    places = list(axes) if axes is not None else list(range(len(begin)))
    steps = [*(strides or ()), *[1] * len(places)][: len(places)]
    stops = list(end)
    if slice_mode == "size":
        steps = [1] * len(places)
        stops = [END if size < 0 else start + size for start, size in zip(begin, end, strict=True)]
    return ctx.emit("Slice", x, ctx.ints(begin), ctx.ints(stops), ctx.ints(places), ctx.ints(steps))


@OPS.exports("slice_like")
def export_slice_like(ctx: Ctx, x: Value, like: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(x).rank
    places = [axis % rank for axis in axes] if axes else list(range(ctx.type(like).rank))
    wanted = [ctx.type(like).shape[axis] for axis in places]
    if any(isinstance(dim, Any) for dim in wanted):
        ends = ctx.emit("Gather", ctx.emit("Shape", like), ctx.ints(places), axis=0)
    else:
        ends = ctx.shape(wanted)
    return ctx.emit("Slice", x, ctx.ints([0] * len(places)), ends, ctx.ints(places))


@OPS.exports("take")
def export_take(
    ctx: Ctx,
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
    batched = batch_dims % max(1, index_rank)
    if not batched:
        return ctx.emit("Gather", x, indices, axis=place)
    return _batched_take(ctx, x, indices, rank, index_rank, place, batched)


def _batched_take(
    ctx: Ctx, x: Value, indices: Value, rank: int, index_rank: int, axis: int, batched: int
) -> Value:
    """GatherND looks behind the batch axes, so `axis` goes there and what it passed comes back."""
    if ctx.version < 12:
        raise Unsupported("batch_dims needs version 12")
    passed = list(range(batched, axis))
    order = [*range(batched), axis, *passed, *range(axis + 1, rank)]
    moved = ctx.emit("Transpose", x, perm=order) if passed else x
    single = unsqueeze(ctx, cast(ctx, indices, np.int64), [index_rank])
    found = ctx.emit("GatherND", moved, single, batch_dims=batched)
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


def _bounded(ctx: Ctx, indices: Value, length: AnyValue, mode: str) -> Value:
    dtype = ctx.type(indices).dtype
    if dtype not in ("int32", "int64"):
        indices, dtype = cast(ctx, indices, np.int64), "int64"
    if isinstance(length, int):
        count = ctx.const(length, dtype)
        last = ctx.const(length - 1, dtype)
    else:
        count = cast(ctx, ctx.shape([length]), dtype)
        last = ctx.emit("Sub", count, ctx.const(1, dtype))
    if mode == "wrap":
        return ctx.emit("Mod", indices, count)
    if ctx.version >= 12:
        return ctx.emit("Min", ctx.emit("Max", indices, ctx.const(0, dtype)), last)
    zero = ctx.const(0, dtype)
    low = ctx.emit("Where", ctx.emit("Less", indices, zero), zero, indices)
    return ctx.emit("Where", ctx.emit("Less", last, low), last, low)


@OPS.exports("gather")
def export_gather(ctx: Ctx, x: Value, indices: Value, *, axis: int | None) -> Value:
    return ctx.emit("GatherElements", x, indices, axis=axis or 0)


@OPS.exports("gather_nd")
def export_gather_nd(
    ctx: Ctx, x: Value, indices: Value, *, batch_dims: int, index_rank: int | None
) -> Value:
    """Relay keeps the tuple of an index in the first axis, ONNX in the last."""
    if batch_dims and ctx.version < 12:
        raise Unsupported("batch_dims needs version 12")
    rank = ctx.type(indices).rank
    wide = indices if ctx.type(indices).dtype == "int64" else cast(ctx, indices, np.int64)
    moved = ctx.emit("Transpose", wide, perm=[*range(1, rank), 0]) if rank > 1 else wide
    return ctx.emit("GatherND", x, moved, batch_dims=batch_dims or None)


@OPS.exports("one_hot")
def export_one_hot(
    ctx: Ctx,
    indices: Value,
    on: Value,
    off: Value,
    *,
    depth: int,
    axis: int,
    dtype: np.dtype[AnyValue] | None,
) -> Value:
    """Written as a comparison: OneHot counts negative indices from the end, Relay ignores them."""
    if depth * 8 > MAX_INLINE_BYTES:
        raise Unsupported(f"depth {depth}, whose list of classes is too long to write")
    rank = ctx.result_type().rank
    place = axis % rank
    shape = [1] * rank
    shape[place] = depth
    counted = np.arange(depth).reshape(shape)
    marks = ctx.emit(
        "Equal", unsqueeze(ctx, indices, [place]), ctx.const(counted, ctx.type(indices).dtype)
    )
    wanted = ctx.result_type().dtype
    return ctx.emit("Where", marks, widened(ctx, on, wanted), widened(ctx, off, wanted))


@OPS.exports("sequence_mask")
def export_sequence_mask(
    ctx: Ctx, x: Value, lengths: Value, *, mask_value: float, axis: int
) -> Value:
    """Positions run along `axis` (0 or 1), sequences along the other of the two."""
    rank = ctx.type(x).rank
    count = ctx.shape([ctx.type(x).shape[axis]])
    end = ctx.emit("Reshape", count, ctx.ints([]))
    steps = ctx.emit("Range", ctx.const(0, np.int64), end, ctx.const(1, np.int64))
    real = is_float(ctx.type(lengths).dtype)
    bounds = lengths if real else cast(ctx, lengths, np.int64)
    if real:
        steps = cast(ctx, steps, ctx.type(lengths).dtype)
    position_shape, length_shape = [1] * rank, [1] * rank
    position_shape[axis] = length_shape[1 - axis] = -1
    positions = ctx.emit("Reshape", steps, ctx.ints(position_shape))
    inside = ctx.emit("Less", positions, ctx.emit("Reshape", bounds, ctx.ints(length_shape)))
    return ctx.emit("Where", inside, x, ctx.scalar_like(x, mask_value))


@OPS.exports("cumsum")
def export_cumsum(
    ctx: Ctx, x: Value, *, axis: int | None, dtype: np.dtype[AnyValue] | None, exclusive: bool
) -> Value:
    """ONNX Runtime sums in the four dtypes of 32 and 64 bits; in others the sum is rounded once."""
    given, wanted = ctx.type(x).dtype, ctx.result_type().dtype
    if axis is None:
        x, axis = ctx.emit("Reshape", x, ctx.ints([-1])), 0
    work = wanted
    if wanted not in ("int32", "int64", "float32", "float64"):
        work = "float32" if is_float(wanted) else "int64"
    if work != given:
        x = cast(ctx, x, work)
    place = ctx.const(axis, "int64")
    result = ctx.emit("CumSum", x, place, exclusive=int(exclusive) or None)
    return result if work == wanted else cast(ctx, result, wanted)


@OPS.exports("dyn.strided_slice")
def export_dyn_strided_slice(
    ctx: Ctx,
    x: Value,
    begin: Value,
    end: Value,
    strides: Value,
    *,
    slice_mode: Literal["end", "size"],
    axes: tuple[int, ...] | None,
) -> Value:
    """In mode "size" the ends are lengths, and -1 means all that follows."""
    (count,) = ctx.static_shape(begin)
    places = ctx.ints(range(count) if axes is None else axes)
    first, last, steps = (integers(ctx, each) for each in (begin, end, strides))
    if slice_mode == "size":
        steps = ctx.ints([1] * count)
        rest = ctx.emit("Less", last, ctx.const(0, np.int64))
        last = ctx.emit("Where", rest, ctx.const(END, np.int64), ctx.emit("Add", first, last))
    return ctx.emit("Slice", x, first, last, places, steps)


@OPS.exports("dyn.one_hot")
def export_dyn_one_hot(
    ctx: Ctx,
    indices: Value,
    on: Value,
    off: Value,
    depth: Value,
    *,
    axis: int,
    dtype: np.dtype[AnyValue] | None,
) -> Value:
    """Written as a comparison, as the static form is."""
    rank = ctx.result_type().rank
    shape = [1] * rank
    shape[axis % rank] = -1
    end = ctx.emit("Reshape", integers(ctx, depth), ctx.ints([]))
    steps = ctx.emit("Range", ctx.const(0, np.int64), end, ctx.const(1, np.int64))
    wide = unsqueeze(ctx, integers(ctx, indices), [axis % rank])
    marks = ctx.emit("Equal", wide, ctx.emit("Reshape", steps, ctx.ints(shape)))
    wanted = ctx.result_type().dtype
    return ctx.emit("Where", marks, widened(ctx, on, wanted), widened(ctx, off, wanted))


@OPS.exports("dyn.topk")
def export_dyn_topk(
    ctx: Ctx,
    x: Value,
    k: Value,
    *,
    axis: int,
    ret_type: Literal["both", "values", "indices"],
    is_ascend: bool,
    dtype: np.dtype[AnyValue] | None,
) -> Value | tuple[Value, Value]:
    """A number below 1 means all. Equal elements keep their order in both."""
    asked = ctx.emit("Reshape", integers(ctx, k), ctx.ints([1]))
    length = ctx.emit("Gather", ctx.emit("Shape", x), ctx.ints([axis]), axis=0)
    every = ctx.emit("Less", asked, ctx.ints([1]))
    count = ctx.emit("Where", every, length, asked)
    values, places = ctx.emit_tuple(
        "TopK", x, count, outputs=2, axis=axis, largest=int(not is_ascend)
    )
    if ret_type == "values":
        return values
    found = cast(ctx, places, np.dtype(dtype))
    return found if ret_type == "indices" else (values, found)


@OPS.exports("dyn.sparse_to_dense")
def export_dyn_sparse_to_dense(
    ctx: Ctx, indices: Value, values: Value, default: Value, shape: Value
) -> Value:
    (rank,) = ctx.static_shape(shape)
    rows = ctx.emit("Reshape", integers(ctx, indices), ctx.ints([-1, rank]))
    if not ctx.type(values).rank:
        count = ctx.emit("Gather", ctx.emit("Shape", rows), ctx.ints([0]), axis=0)
        values = ctx.emit("Expand", values, count)
    filled = ctx.emit("Expand", default, integers(ctx, shape))
    return ctx.emit("ScatterND", filled, rows, values)


@OPS.imports("Slice", since=1)
def import_slice_v1(
    ctx: ImportCtx,
    x: Expr,
    *,
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: tuple[int, ...] | None = None,
) -> Expr:
    return relay.strided_slice(x, starts, ends, axes=axes or tuple(range(len(starts))))


@OPS.imports("Slice", since=(10, 11, 13))
def import_slice(
    ctx: ImportCtx,
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
    bounds = []
    for bound in (starts, ends):
        found = ctx.dims(bound)
        if found is not None and bound is ends:
            pairs = zip(found, lengths, strict=True)
            found = tuple(FAR if not isinstance(e, int) and e == n else e for e, n in pairs)
        known = found is not None and all(isinstance(each, int) for each in found)
        bounds.append(found if known else bound)
    step = None if steps is None else ctx.ints(steps) if ctx.is_constant(steps) else steps
    return relay.strided_slice(x, *bounds, step, axes=places)


def _sliced_at(
    ctx: ImportCtx, x: Expr, starts: Expr, ends: Expr, axes: Expr, steps: Expr | None
) -> Expr:
    """Slice axes that are computed: all of them, those that are not named whole."""
    rank = ctx.type(x).rank
    places = relay.floor_mod(relay.cast(axes, "int64"), relay.const(np.array(rank, np.int64)))
    rows = relay.equal(relay.expand_dims(places, axis=0), relay.const(np.arange(rank)[:, None]))
    named = relay.any(rows, axis=(1,))
    ones = relay.ones_like(axes) if steps is None else steps
    bounds = []
    for bound, default in ((starts, 0), (ends, FAR), (ones, 1)):
        wide = relay.where(rows, relay.cast(bound, "int64"), relay.const(np.int64(0)))
        given = relay.sum(wide, axis=(1,))
        bounds.append(relay.where(named, given, relay.const(np.int64(default))))
    return relay.strided_slice(x, *bounds, axes=tuple(range(rank)))


FAR = 2**62
"""An end behind every axis."""


@OPS.imports("Gather", since=(1, 11, 13))
def import_gather(ctx: ImportCtx, x: Expr, indices: Expr, *, axis: int = 0) -> Expr:
    """ONNX counts negative indices from the end, which is to wrap around once."""
    length = ctx.type(x).shape[axis]
    known = ctx.known(indices)
    if known is not None and isinstance(length, int):
        if known.size and not -length <= known.min() <= known.max() < length:
            raise Unsupported(f"an index outside a length of {length}")
        return relay.take(x, relay.const(known % max(length, 1)), axis=axis, mode="fast")
    return relay.take(x, indices, axis=axis, mode="wrap")


@OPS.imports("GatherElements", since=(11, 13))
def import_gather_elements(ctx: ImportCtx, x: Expr, indices: Expr, *, axis: int = 0) -> Expr:
    return relay.gather(x, axis, indices)


@OPS.imports("GatherND", since=(11, 12, 13))
def import_gather_nd(ctx: ImportCtx, x: Expr, indices: Expr, *, batch_dims: int = 0) -> Expr:
    """Relay keeps the tuple of an index in the first axis, ONNX in the last."""
    rank = ctx.type(indices).rank
    moved = relay.transpose(indices, axes=[rank - 1, *range(rank - 1)]) if rank > 1 else indices
    return relay.gather_nd(x, moved, batch_dims=batch_dims)
