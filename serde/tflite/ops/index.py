"""Parts of tensors, by position or by value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, TensorType, call
from serde.relay.lowering.index import from_start
from serde.tflite.ops.table import OPS, Export, Import, Value
from serde.walk import reads

_MOST = 2**31 - 1

OPS.pairs(reads("GATHER_ND", "serde.gather_nd"))


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
    ctx: Import,
    x: Expr,
    begin: Expr,
    end: Expr,
    strides: Expr,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    offset: bool = False,
) -> Expr:
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
    ctx: Import,
    x: Expr,
    begin: Expr,
    end: Expr,
    steps: Sequence[int],
    entries: Sequence[tuple[int, int]],
    begin_mask: int,
    end_mask: int,
    dropped: Sequence[int],
    offset: bool,
) -> Expr:
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


@OPS.imports("GATHER")
def import_gather(
    ctx: Import, x: Expr, indices: Expr, *, axis: int = 0, batch_dims: int = 0
) -> Expr:
    batch = batch_dims + ctx.rank(indices) if batch_dims < 0 else batch_dims
    return relay.take(x, indices, axis=ctx.axis(x, axis), batch_dims=batch)


@OPS.imports("SCATTER_ND")
def import_scatter_nd(ctx: Import, indices: Expr, updates: Expr, shape: Expr) -> Expr:
    """Updates of one place are added."""
    dims = ctx.dims(shape)
    rank = ctx.rank(indices)
    zeros = relay.zeros(shape if dims is None else dims, ctx.type(updates).dtype)
    moved = relay.transpose(indices, (rank - 1, *range(rank - 1)))
    return relay.scatter_nd(zeros, moved, updates, mode="add")


@OPS.imports("ONE_HOT")
def import_one_hot(
    ctx: Import, indices: Expr, depth: Expr, on: Expr, off: Expr, *, axis: int = 0
) -> Expr:
    return relay.one_hot(indices, on, off, int(ctx.item(depth)), axis, ctx.type(on).dtype)


@OPS.imports("WHERE")
def import_where(ctx: Import, condition: Expr) -> Expr:
    return relay.cast(relay.argwhere(condition), "int64")


@OPS.exports("argwhere")
def export_argwhere(ctx: Export, condition: Value) -> Value:
    made = ctx.result_type()
    found = ctx.emit_as(TensorType(made.shape, "int64"), "WHERE", condition)
    return ctx.spell(lambda x: relay.cast(x, made.dtype), found)


@OPS.imports("TOPK_V2")
def import_topk_v2(ctx: Import, x: Expr, k: Expr) -> Sequence[Expr]:
    return list(relay.topk(x, int(ctx.item(k)), axis=-1, ret_type="both", dtype="int32"))


def _extreme_reader(operator: str) -> Callable[..., Expr]:
    def read(ctx: Import, x: Expr, axis: Expr, *, output_type: int = 0) -> Expr:
        made = ctx.made[0]
        found = call(operator, x, axis=(int(ctx.item(axis)),))
        return relay.cast(found, "int64" if made is None else made.dtype)

    return read


OPS.imports("ARG_MAX")(_extreme_reader("argmax"))
OPS.imports("ARG_MIN")(_extreme_reader("argmin"))


@OPS.imports("UNIQUE")
def import_unique(ctx: Import, x: Expr, *, idx_out_type: int = 2) -> Sequence[Expr]:
    """Values stand in the order in which they first occur."""
    made = ctx.made[1]
    values, indices, _, count = relay.unique(x, is_sorted=False)
    zero = ctx.const([0], "int32")
    kept = relay.strided_slice(values, zero, count)
    return [kept, relay.cast(indices, "int32" if made is None else made.dtype)]


@OPS.imports("CUMSUM")
def import_cumsum(
    ctx: Import, x: Expr, axis: Expr, *, exclusive: bool = False, reverse: bool = False
) -> Expr:
    return relay.serde.cumsum(x, int(ctx.item(axis)), exclusive, reverse)


@OPS.imports("BUCKETIZE")
def import_bucketize(ctx: Import, x: Expr, *, boundaries: Sequence[float] = ()) -> Expr:
    """The number of boundaries at or below each element."""
    edges = ctx.const(np.asarray(boundaries, np.float32), "float32")
    return relay.searchsorted(edges, relay.cast(x, "float32"), right=True, dtype="int32")


@OPS.imports("DYNAMIC_UPDATE_SLICE")
def import_dynamic_update_slice(ctx: Import, x: Expr, update: Expr, start: Expr) -> Expr:
    """The region is moved to where it lies in the tensor."""
    room = np.subtract(ctx.static_shape(x), ctx.static_shape(update))
    low = relay.maximum(start, ctx.const(0, ctx.type(start).dtype))
    first = relay.minimum(low, ctx.const(room, ctx.type(start).dtype))
    end = relay.add(first, ctx.const(ctx.static_shape(update), ctx.type(start).dtype))
    return relay.strided_set(x, update, first, end)


@OPS.imports("EMBEDDING_LOOKUP")
def import_embedding_lookup(ctx: Import, ids: Expr, table: Expr) -> Expr:
    """Indices come first."""
    return relay.take(table, ids, axis=0)


@OPS.imports("SEGMENT_SUM")
def import_segment_sum(ctx: Import, x: Expr, ids: Expr) -> Expr:
    if not ctx.is_constant(ids):
        raise Unsupported("segments that are known at run time alone decide the shape")
    return relay.segment_sum(x, ids, int(max(ctx.ints(ids), default=-1)) + 1)


def _unsorted_segment(
    ctx: Import,
    x: Expr,
    ids: Expr,
    count: Expr,
    mode: Literal["add", "mul", "max", "min"],
    start: float,
) -> Expr:
    """Segments without an element hold what the reduction begins with."""
    type_ = ctx.type(x)
    rank = ctx.rank(ids)
    shape = (int(ctx.item(count)), *type_.shape[rank:])
    first = relay.full(ctx.const(start, type_.dtype), shape, type_.dtype)
    return relay.scatter_nd(first, relay.expand_dims(ids, axis=0), x, mode=mode)


def _limit(dtype: str, lowest: bool) -> float:
    limits = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    return float(limits.min if lowest else limits.max)


def _segment_reader(
    mode: Literal["add", "mul", "max", "min"], start: Callable[[str], float]
) -> Callable[..., Expr]:
    def read(ctx: Import, x: Expr, ids: Expr, count: Expr) -> Expr:
        return _unsorted_segment(ctx, x, ids, count, mode, start(ctx.type(x).dtype))

    return read


OPS.imports("UNSORTED_SEGMENT_SUM")(_segment_reader("add", lambda _: 0))
OPS.imports("UNSORTED_SEGMENT_PROD")(_segment_reader("mul", lambda _: 1))
OPS.imports("UNSORTED_SEGMENT_MAX")(_segment_reader("max", lambda dtype: _limit(dtype, True)))
OPS.imports("UNSORTED_SEGMENT_MIN")(_segment_reader("min", lambda dtype: _limit(dtype, False)))


@OPS.imports("SPARSE_TO_DENSE")
def import_sparse_to_dense(
    ctx: Import,
    indices: Expr,
    shape: Expr,
    values: Expr,
    default: Expr,
    *,
    validate_indices: bool = False,
) -> Expr:
    dims = ctx.dims(shape)
    return relay.sparse_to_dense(indices, shape if dims is None else dims, values, default)


@OPS.exports("strided_slice", when=lambda node: node.attrs["begin"] is not None)
def export_strided_slice(
    ctx: Export,
    data: Value,
    *,
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...] | None,
    slice_mode: str,
    axes: tuple[int, ...] | None,
) -> Value:
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


@OPS.exports("take", when=lambda node: node.attrs["axis"] is not None)
def export_take(
    ctx: Export, data: Value, indices: Value, *, batch_dims: int, axis: int, mode: str
) -> Value:
    """Indices outside the axis, which kernels refuse, are counted on or brought to its ends."""
    where = ctx.axis(data, axis)
    batch = batch_dims % ctx.type(indices).rank if batch_dims < 0 else batch_dims
    (length,) = ctx.static_lengths(data, [where])
    if mode == "wrap" and length:
        times = relay.const(length, ctx.type(indices).dtype)
        indices = ctx.spell(lambda x: relay.floor_mod(x, times), indices)
    else:
        indices = _inside(ctx, indices, length)
    return ctx.emit("GATHER", data, indices, axis=where, batch_dims=batch)


def _inside(ctx: Export, indices: Value, length: int) -> Value:
    known = indices.data
    if known is not None:
        return ctx.const(np.clip(known, 0, max(length - 1, 0)).astype(np.int32))
    return ctx.spell(lambda x: relay.clip(x, 0.0, float(max(length - 1, 0))), indices)


@OPS.exports("serde.gather_nd", when=lambda node: node.attrs["batch_dims"] == 0)
def export_gather_nd(ctx: Export, data: Value, indices: Value, *, batch_dims: int) -> Value:
    depth = ctx.static_lengths(indices, [-1])[0]
    lengths = np.array(ctx.static_lengths(data, range(depth)), np.int32)
    known = indices.data
    if known is not None:
        indices = ctx.const(np.where(known < 0, known + lengths, known).astype(np.int32))
    else:
        indices = ctx.spell(from_start, indices, ctx.const(lengths, ctx.type(indices).dtype))
    return ctx.emit("GATHER_ND", data, indices)


@OPS.exports("scatter_nd", when=lambda node: node.attrs["mode"] == "add", ignored=("mode",))
def export_scatter_nd(ctx: Export, data: Value, indices: Value, updates: Value) -> Value:
    """Updates are added into zeros, and these to the data."""
    type_ = ctx.type(data)
    rank = ctx.type(indices).rank
    moved = ctx.spell(
        lambda i: relay.cast(relay.transpose(i, (*range(1, rank), 0)), "int32"), indices
    )
    shape = ctx.ints(ctx.static_shape(data))
    found = ctx.emit_as(type_, "SCATTER_ND", moved, updates, shape)
    if data.data is not None and not data.data.any():
        return found
    return ctx.spell(relay.add, data, found)


@OPS.exports("argsort", when=lambda node: _is_sorted(node), ignored=("axis", "is_ascend", "dtype"))
def export_argsort(ctx: Export, data: Value) -> Value:
    """The greatest of all, in order; first of ties."""
    made = ctx.result_type()
    count = ctx.const(np.array(ctx.static_lengths(data, [-1])[0], np.int32))
    types = [ctx.type(data), TensorType(made.shape, "int32")]
    found = ctx.append("TOPK_V2", [data, count], types, {})[1]
    return found if made.dtype == "int32" else ctx.spell(lambda x: relay.cast(x, made.dtype), found)


def _is_sorted(node: Call) -> bool:
    attrs, type_ = node.attrs, node.args[0].type
    last = isinstance(type_, TensorType) and attrs["axis"] in (-1, type_.rank - 1)
    return last and not attrs["is_ascend"]


def _is_one(node: Call) -> bool:
    """Whether one axis is searched, and the first of ties is wanted."""
    attrs = node.attrs
    axes = attrs["axis"]
    single = isinstance(axes, int) or (axes is not None and len(axes) == 1)
    return single and not attrs["exclude"] and not attrs["select_last_index"]


def _extreme_writer(op: str) -> Callable[..., Value]:
    def write(ctx: Export, data: Value, *, axis: int | tuple[int, ...], keepdims: bool) -> Value:
        where = ctx.axis(data, axis if isinstance(axis, int) else axis[0])
        made = ctx.result_type()
        lengths = [d for i, d in enumerate(ctx.type(data).shape) if i != where]
        number = 2 if made.dtype == "int32" else 4
        type_ = TensorType(lengths, made.dtype)
        operands = data, ctx.const(np.array(where, np.int32))
        found = ctx.emit_as(type_, op, *operands, output_type=number)
        return ctx.spell(lambda x: relay.expand_dims(x, axis=where), found) if keepdims else found

    return write


OPS.exports("argmax", when=_is_one, ignored=("exclude", "select_last_index"))(
    _extreme_writer("ARG_MAX")
)
OPS.exports("argmin", when=_is_one, ignored=("exclude", "select_last_index"))(
    _extreme_writer("ARG_MIN")
)


@OPS.exports("serde.cumsum")
def export_cumsum(ctx: Export, data: Value, *, axis: int, exclusive: bool, reverse: bool) -> Value:
    where = ctx.const(np.array(ctx.axis(data, axis), np.int32))
    return ctx.emit("CUMSUM", data, where, exclusive=exclusive, reverse=reverse)


def _is_top(node: Call) -> bool:
    attrs, type_ = node.attrs, node.args[0].type
    last = isinstance(type_, TensorType) and attrs["axis"] in (-1, type_.rank - 1)
    return last and attrs["ret_type"] == "both" and not attrs["is_ascend"] and attrs["k"] > 0


@OPS.exports("topk", when=_is_top, ignored=("axis", "ret_type", "is_ascend", "dtype"))
def export_topk(ctx: Export, data: Value, *, k: int) -> tuple[Value, ...]:
    values, numbers = ctx.result_types()
    narrow = TensorType(numbers.shape, "int32")
    found = ctx.append("TOPK_V2", [data, ctx.const(np.array(k, np.int32))], [values, narrow], {})
    if numbers.dtype == "int32":
        return found
    return found[0], ctx.spell(lambda x: relay.cast(x, numbers.dtype), found[1])
