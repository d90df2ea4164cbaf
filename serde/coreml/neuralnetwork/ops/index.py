"""Picking and placing elements, and their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as AnyValue, Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.records import dataclass, replace
from serde.coreml.neuralnetwork.import_context import number
from serde.coreml.neuralnetwork.ops.table import LAYERS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Expr, TensorType
from serde.relay.lowering.index import from_start
from serde.relay.lowering.lengths import length_of

Scatter = Literal[
    "SCATTER_UPDATE", "SCATTER_ADD", "SCATTER_SUB", "SCATTER_MUL", "SCATTER_DIV", "SCATTER_MAX",
    "SCATTER_MIN",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ScatterAttributes:
    """Attributes of ``scatter`` and ``scatterAlongAxis``."""

    axis: int = 0
    mode: Scatter = "SCATTER_UPDATE"


REDUCTIONS: Mapping[str, Literal["update", "add", "mul", "max", "min"]] = {
    "SCATTER_UPDATE": "update",
    "SCATTER_ADD": "add",
    "SCATTER_SUB": "add",
    "SCATTER_MUL": "mul",
    "SCATTER_DIV": "mul",
    "SCATTER_MAX": "max",
    "SCATTER_MIN": "min",
}


def _from_start(ctx: Import, indices: Expr, data: Expr, axis: int) -> Expr:
    """Return indices of an axis that are counted from its first entry."""
    return from_start(ctx.integers(indices), length_of(data, axis, "int32"))


def _invert_updates(values: Expr, mode: Scatter) -> Expr:
    """Return what is added or multiplied instead of subtracted or divided by."""
    if mode == "SCATTER_SUB":
        return relay.negative(values)
    return relay.divide(number(1), values) if mode == "SCATTER_DIV" else values


@LAYERS.imports("gather")
def import_gather(ctx: Import, data: Expr, indices: Expr, *, axis: int = 0) -> Expr:
    return relay.serde.take(data, ctx.integers(indices), axis=ctx.axis(data, axis))


@LAYERS.imports("gatherND")
def import_gather_nd(ctx: Import, data: Expr, indices: Expr) -> Expr:
    return relay.serde.gather_nd(data, ctx.integers(indices))


@LAYERS.imports("gatherAlongAxis")
def import_gather_along_axis(ctx: Import, data: Expr, indices: Expr, *, axis: int = 0) -> Expr:
    place = ctx.axis(data, axis)
    return relay.gather(data, place, _from_start(ctx, indices, data, place))


@LAYERS.imports("scatterAlongAxis")
def import_scatter_along_axis(
    ctx: Import, data: Expr, indices: Expr, values: Expr, *, scatter: ScatterAttributes
) -> Expr:
    axis = ctx.axis(data, scatter.axis)
    indices = _from_start(ctx, indices, data, axis)
    return relay.scatter_elements(
        data, indices, _invert_updates(values, scatter.mode), axis, REDUCTIONS[scatter.mode]
    )


@LAYERS.imports("scatter")
def import_scatter(
    ctx: Import, data: Expr, indices: Expr, slices: Expr, *, scatter: ScatterAttributes
) -> Expr:
    """The axis goes first while slices are written, whose own axis takes its place."""
    place, rank = ctx.axis(data, scatter.axis), ctx.type(data).rank
    order = (place, *(each for each in range(rank) if each != place))
    back = tuple(order.index(each) for each in range(rank))
    indices = _from_start(ctx, indices, data, place)
    if ctx.type(indices).rank != 1:
        raise Unsupported(f"indices of {ctx.type(indices).rank} axes")
    written = relay.scatter_nd(
        relay.transpose(data, axes=order),
        relay.expand_dims(indices, axis=0),
        relay.transpose(_invert_updates(slices, scatter.mode), axes=order),
        REDUCTIONS[scatter.mode],
    )
    return relay.transpose(written, axes=back)


@LAYERS.imports("scatterND")
def import_scatter_nd(
    ctx: Import, data: Expr, indices: Expr, slices: Expr, *, mode: Scatter = "SCATTER_UPDATE"
) -> Expr:
    rank = ctx.type(indices).rank
    depth = ctx.type(indices).shape[-1]
    if not isinstance(depth, int):
        raise Unsupported("indices of an unknown number of axes")
    lengths: Expr = relay.strided_slice(relay.shape_of(data, dtype="int32"), [0], [depth])
    places = from_start(ctx.integers(indices), ctx.fold(lengths))
    indices = relay.transpose(places, axes=(rank - 1, *range(rank - 1)))
    return relay.scatter_nd(data, indices, _invert_updates(slices, mode), REDUCTIONS[mode])


def _flags(values: tuple[bool, ...], rank: int) -> tuple[bool, ...]:
    """Return a mask for each axis; none are set beyond those that are written.

    coremltools writes five in a layer whose bounds are inputs.
    """
    if any(values[rank:]):
        raise Unsupported(f"a mask of axis {len(values) - 1} of a tensor of {rank}")
    return (*values[:rank], *(False,) * (rank - len(values)))


@dataclass(frozen=True, kw_only=True)
class SliceAttributes:
    """Attributes of ``sliceStatic`` and ``sliceDynamic``."""

    begin_masks: tuple[bool, ...] = ()
    end_ids: tuple[int, ...] = ()
    end_masks: tuple[bool, ...] = ()
    strides: tuple[int, ...] = ()
    squeeze_masks: tuple[bool, ...] = ()


@LAYERS.imports("sliceStatic")
def import_slice_static(
    ctx: Import, x: Expr, *, begin_ids: tuple[int, ...] = (), cut: SliceAttributes
) -> Expr:
    return _slice(ctx, x, begin_ids, cut)


def _slice(ctx: Import, x: Expr, begins: tuple[int, ...], cut: SliceAttributes) -> Expr:
    """Cut as Python does; a masked end goes as far as there is something."""
    rank = ctx.type(x).rank
    ends, steps = cut.end_ids, cut.strides or (1,) * rank
    if not len(begins) == len(ends) == len(steps) == rank:
        raise Unsupported(f"bounds of {len(begins)} axes for a tensor of {rank}")
    far = 2**31 - 1
    squeezes = _flags(cut.squeeze_masks, rank)
    first, last = [], []
    for begin, end, step, opens, closes, drops in zip(
        begins,
        ends,
        steps,
        _flags(cut.begin_masks, rank),
        _flags(cut.end_masks, rank),
        squeezes,
        strict=True,
    ):
        start = (far if step < 0 else 0) if opens else begin
        first.append(start)
        if drops:
            last.append(far if start == -1 else start + 1)
        else:
            last.append((-far - 1 if step < 0 else far) if closes else end)
    used = tuple(1 if drops else step for step, drops in zip(steps, squeezes, strict=True))
    result = relay.strided_slice(x, begin=tuple(first), end=tuple(last), strides=used)
    dropped = [axis for axis, drops in enumerate(squeezes) if drops]
    if len(dropped) == rank:
        return relay.reshape(result, (1,))
    return relay.squeeze(result, axis=dropped) if dropped else result


@LAYERS.imports("sliceDynamic")
def import_slice_dynamic(
    ctx: Import, x: Expr, begin: Expr, end: Expr | None = None, stride: Expr | None = None,
    begin_mask: Expr | None = None, end_mask: Expr | None = None, squeeze_mask: Expr | None = None,
    *, cut: SliceAttributes,
) -> Expr:  # fmt: skip
    """What an input gives goes before what the layer says."""
    rank = ctx.type(x).rank
    given = {"begin_masks": begin_mask, "end_masks": end_mask, "squeeze_masks": squeeze_mask}
    for name, mask in given.items():
        if mask is not None:
            cut = replace(cut, **{name: tuple(map(bool, ctx.whole(mask)))})
    if stride is not None:
        cut = replace(cut, strides=ctx.whole(stride))
    if ctx.is_constant(begin) and (end is None or ctx.is_constant(end)):
        if end is not None:
            cut = replace(cut, end_ids=ctx.whole(end))
        return _slice(ctx, x, ctx.whole(begin), cut)
    if any(cut.squeeze_masks):
        raise Unsupported("axes that go, beside bounds that are computed when the model runs")
    ends = relay.const(np.array(cut.end_ids, np.int32)) if end is None else ctx.integers(end)
    by = np.array(cut.strides or (1,) * rank, np.int32)
    far = np.where(by > 0, 2**31 - 1, -(2**31)).astype(np.int32)
    first = _open_bounds(
        ctx.integers(begin), _flags(cut.begin_masks, rank), np.where(by > 0, 0, far)
    )
    last = _open_bounds(ends, _flags(cut.end_masks, rank), far)
    return relay.strided_slice(x, first, last, relay.Constant(by))


def _open_bounds(bounds: Expr, masks: tuple[bool, ...], open_: AnyValue) -> Expr:
    """Return bounds, where they are masked those of all that there is."""
    if not any(masks):
        return bounds
    whole = relay.const(np.asarray(open_, np.int32))
    return relay.where(relay.Constant(np.array(masks)), whole, bounds)


@LAYERS.imports("sliceBySize")
def import_slice_by_size(
    ctx: Import, x: Expr, begin: Expr, *, size: int = 0, axis: int = 0
) -> Expr:
    place = ctx.axis(x, axis)
    (first,) = ctx.whole(begin)
    last = first + size
    end = 2**31 - 1 if first < 0 and last == 0 else last
    return relay.strided_slice(x, begin=(first,), end=(end,), axes=(place,))


@LAYERS.imports("slidingWindows")
def import_sliding_windows(
    ctx: Import, x: Expr, *, axis: int = 0, window_size: int = 1, step: int = 1
) -> Expr:
    """The axis of a window's elements follows that of the windows."""
    place = ctx.axis(x, axis)
    length = ctx.type(x).shape[place]
    if not isinstance(length, int):
        raise Unsupported("needs the length of the axis")
    starts = allocation.arange((length - window_size) // step + 1) * step
    indices = allocation.outer_sum(starts, allocation.arange(window_size)).astype(np.int32)
    return relay.serde.take(x, relay.Constant(indices), axis=place)


@LAYERS.imports("topK")
def import_top_k(
    ctx: Import,
    x: Expr,
    count: Expr | None = None,
    *,
    axis: int = 0,
    k: int = 0,
    use_bottom_k: bool = False,
) -> list[Expr]:
    if count is not None:
        (k,) = ctx.whole(count)
    found = relay.topk(
        x, k=k, axis=ctx.axis(x, axis), ret_type="both", is_ascend=use_bottom_k, dtype="int32"
    )
    return [found[0], relay.cast(found[1], "float32")]


@LAYERS.imports("argSort")
def import_arg_sort(ctx: Import, x: Expr, *, axis: int = 0, descending: bool = False) -> Expr:
    found = relay.argsort(x, axis=ctx.axis(x, axis), is_ascend=not descending, dtype="int32")
    return relay.cast(found, "float32")


@LAYERS.imports("oneHot")
def import_one_hot(
    ctx: Import, indices: Expr, size: Expr | None = None,
    *, one_hot_vector_size: int = 0, axis: int = 0, on_value: float = 0.0, off_value: float = 0.0,
) -> Expr:  # fmt: skip
    if size is not None:
        (one_hot_vector_size,) = ctx.whole(size)
    values = relay.const(np.array([off_value, on_value], np.float32))
    return relay.serde.one_hot(ctx.integers(indices), values, depth=one_hot_vector_size, axis=axis)


@LAYERS.imports("whereNonZero")
def import_where_non_zero(ctx: Import, x: Expr) -> Expr:
    return relay.cast(relay.argwhere(x), "float32")


@LAYERS.imports("rangeStatic")
def import_range_static(
    ctx: Import, *, end_value: float = 0.0, start_value: float = 0.0, step_size_value: float = 0.0
) -> Expr:
    return relay.const(allocation.arange(start_value, end_value, step_size_value, np.float32))


@LAYERS.imports("rangeDynamic")
def import_range_dynamic(
    ctx: Import,
    end: Expr | None = None,
    start: Expr | None = None,
    step: Expr | None = None,
    *,
    start_value: float = 0.0,
    step_size_value: float = 0.0,
) -> Expr:
    """The end is the first input, for it has no field."""
    if end is None:
        raise Unsupported("a range without an end")
    first = number(start_value) if start is None else _scalar(ctx, start)
    by = number(step_size_value) if step is None else _scalar(ctx, step)
    return relay.arange(first, _scalar(ctx, end), by, "float32")


def _scalar(ctx: Import, x: Expr) -> Expr:
    return ctx.fold(relay.reshape(x, ())) if ctx.type(x).rank else x


@LAYERS.exports("gather")
def export_gather(
    ctx: Export, x: Value, indices: Value, *, axis: int = 0, batch_dims: int = 0
) -> Value:
    """One index has an axis here, which then goes."""
    if batch_dims:
        raise Unsupported("indices that share axes with what they take")
    if indices.type.rank or x.type.rank < 2:
        return ctx.layer("gather", x, indices, axis=axis)
    shape = list(x.type.shape)
    shape[axis] = 1
    found = ctx.layer("gather", x, indices, of=TensorType(shape, x.type.dtype), axis=axis)
    return ctx.layer("squeeze", found, axes=[axis])


@LAYERS.exports("gather_along_axis")
def export_gather_along_axis(ctx: Export, x: Value, indices: Value, *, axis: int = 0) -> Value:
    return ctx.layer("gatherAlongAxis", x, indices, axis=axis)


@LAYERS.exports("gather_nd")
def export_gather_nd(ctx: Export, x: Value, indices: Value) -> Value:
    return ctx.layer("gatherND", x, indices)


@LAYERS.exports("scatter_along_axis")
def export_scatter_along_axis(
    ctx: Export, data: Value, indices: Value, updates: Value, *, axis: int = 0, mode: str = "add"
) -> Value:
    how = f"SCATTER_{mode.upper()}"
    return ctx.layer("scatterAlongAxis", data, indices, updates, axis=axis, mode=how)


@LAYERS.exports("scatter_nd")
def export_scatter_nd(
    ctx: Export, data: Value, indices: Value, updates: Value, *, mode: str = "add"
) -> Value:
    how = f"SCATTER_{mode.upper()}"
    return ctx.layer("scatterND", data, indices, updates, mode=how)


@LAYERS.exports("slice_by_index")
def export_slice_by_index(
    ctx: Export, x: Value, begin: Value, end: Value,
    *, stride: tuple[int, ...] = (), begin_mask: tuple[bool, ...] = (),
    end_mask: tuple[bool, ...] = (),
) -> Value:  # fmt: skip
    rank = x.type.rank
    fields: dict[str, AnyValue] = {
        "begin_masks": [*begin_mask] or [False] * rank,
        "end_masks": [*end_mask] or [False] * rank,
        "strides": [*stride] or [1] * rank,
        "squeeze_masks": [False] * rank if ctx.target >= 14 else [],
    }
    if begin.data is None or end.data is None:
        return ctx.layer("sliceDynamic", x, begin, end, **fields)
    bounds = {"begin_ids": begin.data.tolist(), "end_ids": end.data.tolist()}
    return ctx.layer("sliceStatic", x, **bounds, **fields)


@LAYERS.exports("slice_by_size")
def export_slice_by_size(ctx: Export, x: Value, begin: Value, size: Value) -> Value:
    if begin.data is not None and not begin.data.any():
        end = size
    else:
        end = ctx.emit("add", size.type, x=begin, y=size)
    return ctx.emit("slice_by_index", x=x, begin=begin, end=end)


@LAYERS.exports("sliding_windows")
def export_sliding_windows(
    ctx: Export, x: Value, *, axis: int, size: int, stride: int = 1
) -> Value:
    return ctx.layer("slidingWindows", x, axis=axis, window_size=size, step=stride)


@LAYERS.exports("topk")
def export_topk(
    ctx: Export, x: Value, *, k: int = 1, axis: int = -1, ascending: bool = False
) -> tuple[Value, ...]:
    return ctx.layers("topK", [x], axis=axis, k=k, use_bottom_k=ascending)


@LAYERS.exports("argsort")
def export_argsort_v13(ctx: Export, x: Value, *, axis: int = -1, ascending: bool = False) -> Value:
    """Before iOS14, all that there are, in order."""
    length = x.type.shape[axis]
    if not isinstance(length, int):
        raise ctx.only_since(14, "order along a length that is not fixed")
    types = [TensorType(x.type.shape, x.type.dtype), ctx.result_type()]
    return ctx.layers("topK", [x], types, axis=axis, k=length, use_bottom_k=ascending)[1]


@LAYERS.exports("argsort", since=14)
def export_argsort(ctx: Export, x: Value, *, axis: int = -1, ascending: bool = False) -> Value:
    return ctx.layer("argSort", x, axis=axis, descending=not ascending)


@LAYERS.exports("non_zero")
def export_non_zero(ctx: Export, x: Value) -> Value:
    return ctx.layer("whereNonZero", x)


@LAYERS.exports("range_1d")
def export_range_1d(ctx: Export, end: Value, start: Value, step: Value) -> Value:
    return ctx.layer("rangeDynamic", end, start, step)
