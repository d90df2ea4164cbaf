"""Slicing and looking up. MXNet's indices are floats as a rule and are cut towards zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float, normalize_axes, normalize_axis
from serde.relay.ir.types import TensorType
from serde.weights import numpy_dtype

FLOAT32 = np.dtype("float32")

Bounds = tuple[int | None, ...]

LAST = 2**31 - 1
"""Stands for the end of an axis, whatever its length."""


def as_index(ctx: ImportContext, indices: Expr) -> Expr:
    """Return indices as integers."""
    if is_float(ctx.type(indices).dtype):
        return relay.cast(indices, "int32")
    return indices


@OPS.imports("slice")
def import_slice(
    ctx: ImportContext, data: Expr, *, begin: Bounds, end: Bounds, step: Bounds = ()
) -> Expr:
    """A missing bound is the end that the step comes from or goes to."""
    if len(end) != len(begin) or len(step) not in (0, len(begin)):
        raise Unsupported("begin, end and step differ in length")
    steps = [each or 1 for each in step] or [1] * len(begin)
    starts, stops = [], []
    for first, last, by in zip(begin, end, steps, strict=True):
        starts.append((0 if by > 0 else LAST) if first is None else first)
        stops.append((LAST if by > 0 else -LAST) if last is None else last)
    return relay.strided_slice(data, starts, stops, steps)


@OPS.imports("slice_axis")
def import_slice_axis(
    ctx: ImportContext, data: Expr, *, axis: int, begin: int, end: int | None
) -> Expr:
    axis = normalize_axis(axis, ctx.type(data).rank)
    return relay.strided_slice(data, [begin], [LAST if end is None else end], [1], axes=[axis])


@OPS.imports("slice_like")
def import_slice_like(
    ctx: ImportContext, data: Expr, shape_like: Expr, *, axes: tuple[int, ...] = ()
) -> Expr:
    return relay.slice_like(data, shape_like, axes or None)


@OPS.imports("Crop")
def import_crop(
    ctx: ImportContext,
    data: Expr,
    crop_like: Expr | None = None,
    *,
    num_args: int = 1,
    offset: tuple[int, ...] = (0, 0),
    h_w: tuple[int, ...] = (0, 0),
    center_crop: bool = False,
) -> Expr:
    """Cuts height and width to ``h_w`` or to those of the second input."""
    if crop_like is not None and not center_crop and not any(offset):
        return relay.slice_like(data, crop_like, (2, 3))
    wanted = h_w if crop_like is None else ctx.type(crop_like).shape[2:]
    lengths = ctx.type(data).shape[2:]
    known = [length for length in (*wanted, *lengths) if isinstance(length, int)]
    if not center_crop and crop_like is not None and len(known) < 4:
        tail = relay.strided_slice(data, list(offset), [LAST, LAST], [1, 1], axes=[2, 3])
        return relay.slice_like(tail, crop_like, (2, 3))
    if center_crop and len(known) < 4:
        return _centre(data, crop_like, h_w)
    sizes = known[:2]
    starts: Sequence[int] = offset
    if center_crop:
        starts = [(own - cut) // 2 for own, cut in zip(known[2:], sizes, strict=True)]
    stops = [start + cut for start, cut in zip(starts, sizes, strict=True)]
    return relay.strided_slice(data, starts, stops, [1, 1], axes=[2, 3])


def _centre(data: Expr, crop_like: Expr | None, h_w: Sequence[int]) -> Expr:
    """Cut height and width, of which one is a symbol, on both sides alike."""
    own = relay.strided_slice(relay.shape_of(data, "int64"), [2], [4])
    wanted: Expr = relay.Constant(np.array(h_w, np.int64))
    if crop_like is not None:
        wanted = relay.strided_slice(relay.shape_of(crop_like, "int64"), [2], [4])
    surplus = relay.subtract(own, wanted)
    starts = relay.floor_divide(surplus, relay.const(2, "int64"))
    cut = relay.strided_slice(data, starts, relay.add(starts, wanted), axes=[2, 3])
    if crop_like is None:
        return relay.reshape(cut, (0, 0, *h_w))
    return relay.slice_like(cut, crop_like, (2, 3))


@OPS.imports("Embedding", "_contrib_SparseEmbedding", ignored=("sparse_grad",))
def import_embedding(
    ctx: ImportContext,
    data: Expr,
    weight: Expr,
    *,
    input_dim: int,
    output_dim: int,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    return relay.take(weight, as_index(ctx, data), axis=0, mode="clip")


@OPS.imports("take")
def import_take(
    ctx: ImportContext,
    a: Expr,
    indices: Expr,
    *,
    axis: int = 0,
    mode: Literal["clip", "raise", "wrap"] = "clip",
) -> Expr:
    """``raise`` differs from ``clip`` only where MXNet would stop with an error."""
    return relay.take(
        a, as_index(ctx, indices), axis=axis, mode="wrap" if mode == "wrap" else "clip"
    )


@OPS.imports("one_hot")
def import_one_hot(
    ctx: ImportContext,
    indices: Expr,
    *,
    depth: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    if depth == 0:
        return relay.zeros([*ctx.type(indices).shape, 0], dtype)
    on, off = (relay.Constant(np.array(value, dtype=dtype)) for value in (on_value, off_value))
    return relay.one_hot(as_index(ctx, indices), on, off, depth, -1, dtype)


@OPS.imports("gather_nd")
def import_gather_nd(ctx: ImportContext, data: Expr, indices: Expr) -> Expr:
    return relay.gather_nd(data, as_index(ctx, indices))


@OPS.imports("SequenceMask")
def import_sequence_mask(
    ctx: ImportContext,
    data: Expr,
    sequence_length: Expr | None = None,
    *,
    use_sequence_length: bool = False,
    value: float = 0.0,
    axis: int = 0,
) -> Expr:
    if not use_sequence_length or sequence_length is None:
        return data
    return relay.sequence_mask(data, as_index(ctx, sequence_length), mask_value=value, axis=axis)


@OPS.imports("SequenceLast")
def import_sequence_last(
    ctx: ImportContext,
    data: Expr,
    sequence_length: Expr | None = None,
    *,
    use_sequence_length: bool = False,
    axis: int = 0,
) -> Expr:
    """The batch is the other one of the two first axes."""
    if not use_sequence_length or sequence_length is None:
        last = relay.strided_slice(data, [-1], [LAST], [1], axes=[axis])
        return relay.squeeze(last, (axis,))
    lengths = relay.cast(sequence_length, "int32")
    if axis == 0:
        data = relay.transpose(data, (1, 0, *range(2, ctx.type(data).rank)))
    places = relay.subtract(lengths, relay.const(np.int32(1)))
    return relay.take(data, places, axis=1, batch_dims=1, mode="clip")


@OPS.exports("strided_slice")
def export_strided_slice(
    ctx: ExportContext,
    data: Value,
    *,
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...] | None,
    slice_mode: Literal["end", "size"],
    axes: tuple[int, ...] | None,
) -> Value:
    """A bound at or past the end that the step goes to is left open; one outside is cut."""
    type_ = ctx.type(data)
    result = ctx.result_type().concrete_shape
    if result is not None and 0 in result:
        return ctx.const(np.zeros(result, numpy_dtype(type_.dtype)))
    starts: list[int | None] = [None] * type_.rank
    stops: list[int | None] = [None] * type_.rank
    steps: list[int | None] = [None] * type_.rank
    places = normalize_axes(axes, type_.rank) if axes is not None else range(len(begin))
    given = [*(strides or ()), *[1] * len(begin)]
    for place, first, last, step in zip(places, begin, end, given, strict=False):
        if slice_mode == "size":
            last, step = LAST if last < 0 else first + last, 1
        starts[place], stops[place] = slice_bounds(type_.shape[place], first, last, step)
        steps[place] = step
    return ctx.emit_bytes("slice", data, begin=starts, end=stops, step=steps)


def slice_bounds(length: Dim, first: int, last: int, step: int) -> tuple[int | None, int | None]:
    """Return the bounds of a slice as MXNet takes them: inside the axis, or open."""
    if isinstance(length, int):
        first, last, step = slice(first, last, step).indices(length)
        return first, None if last in (-1, length) else last
    far = LAST if step > 0 else -LAST
    start = None if first == (0 if step > 0 else -1) or first == -far else first
    return start, None if last == far or abs(last) >= LAST else last


@OPS.exports("slice_like")
def export_slice_like(
    ctx: ExportContext, data: Value, shape_like: Value, *, axes: tuple[int, ...] | None
) -> Value:
    return ctx.emit_bytes("slice_like", data, shape_like, axes=axes or None)


@OPS.exports("take")
def export_take(
    ctx: ExportContext,
    data: Value,
    indices: Value,
    *,
    batch_dims: int,
    axis: int | None,
    mode: Literal["clip", "wrap", "fast"],
) -> Value:
    batch = batch_dims + ctx.type(indices).rank if batch_dims < 0 else batch_dims
    if batch and axis is not None:
        return _taken_by_batch(ctx, data, indices, batch, axis % ctx.type(data).rank, mode)
    if axis is None:
        data, axis = ctx.reshape(data, (ctx.type(data).size,)), 0
    result = ctx.emit_bytes(
        "take", data, indices, axis=axis % ctx.type(data).rank,
        mode="wrap" if mode == "wrap" else "clip",
    )  # fmt: skip
    if ctx.type(indices).rank or ctx.np_shape:
        return result
    return ctx.reshape(replace(result, type=_one_index(ctx)), ctx.result_type().shape)


def _taken_by_batch(
    ctx: ExportContext, data: Value, indices: Value, batch: int, axis: int, mode: str
) -> Value:
    """Name the place on every axis up to the one that is looked up."""
    own = ctx.type(indices)
    lengths = ctx.static_lengths(data, range(axis + 1))
    shape = (*lengths[:-1], *ctx.static_shape(indices)[batch:])
    view = (*own.shape[:batch], *[1] * (axis - batch), *own.shape[batch:])
    grids = np.indices(shape, sparse=True)[:axis]

    def spelled(x: Expr, places: Expr) -> Expr:
        last = relay.const(lengths[-1] - 1, own.dtype)
        if mode == "wrap":
            places = relay.floor_mod(places, relay.const(lengths[-1], own.dtype))
        else:
            places = relay.maximum(relay.minimum(places, last), relay.const(0, own.dtype))
        chosen = relay.broadcast_to(relay.reshape(places, view), shape)
        rows = [relay.Constant(np.broadcast_to(grid, shape).astype(own.dtype)) for grid in grids]
        return relay.gather_nd(x, relay.stack([*rows, chosen], 0))

    return ctx.spell(spelled, data, indices)


def _one_index(ctx: ExportContext) -> TensorType:
    """Return a type of as many elements as the result's, which no shape equals."""
    return TensorType((1, 1, *ctx.result_type().shape), ctx.result_type().dtype)


@OPS.exports("gather")
def export_gather(ctx: ExportContext, data: Value, indices: Value, *, axis: int | None) -> Value:
    """MXNet picks along one axis with an index for each place: a gather of tuples of places."""
    along = (axis or 0) % ctx.type(data).rank
    shape = ctx.static_shape(indices)
    length = ctx.static_lengths(data, [along])[0]
    negative = ctx.emit("_npi_less_scalar", indices, scalar=0.0)
    shifted = ctx.emit("_plus_scalar", indices, scalar=float(length))
    wrapped = ctx.emit("_npi_where", negative, shifted, indices)
    dtype = ctx.type(indices).dtype
    grids = np.indices(shape)
    tuples = [
        wrapped if place == along else ctx.const(grid.astype(dtype))
        for place, grid in enumerate(grids)
    ]
    stacked = ctx.emit("stack", *tuples, axis=0, num_args=len(tuples))
    return ctx.emit_bytes("gather_nd", data, replace(stacked, type=ctx.type(indices)))


@OPS.exports("gather_nd")
def export_gather_nd(
    ctx: ExportContext, data: Value, indices: Value, *, batch_dims: int, index_rank: int | None
) -> Value:
    type_ = ctx.type(indices)
    if type_.rank == 1:
        shape = ctx.result_type().shape
        return ctx.spell(
            lambda x, i: relay.reshape(relay.gather_nd(x, relay.expand_dims(i, 1)), shape),
            data,
            indices,
        )
    if batch_dims:
        shape = ctx.static_shape(indices)[1:]
        grids = [grid.astype(type_.dtype) for grid in np.indices(shape)[:batch_dims]]
        rows = ctx.const(np.stack(grids))
        return ctx.spell(
            lambda x, i, batch: relay.gather_nd(x, relay.concatenate([batch, i], 0)),
            data,
            indices,
            rows,
        )
    return ctx.emit_bytes("gather_nd", data, indices)


@OPS.exports("one_hot")
def export_one_hot(
    ctx: ExportContext,
    indices: Value,
    on_value: Value,
    off_value: Value,
    *,
    depth: int,
    axis: int,
    dtype: np.dtype[AnyValue],
) -> Value:
    """Values that are no constants, and axes but the last, are chosen and moved behind."""
    rank = ctx.type(indices).rank
    on, off = ctx.scalar(on_value), ctx.scalar(off_value)
    fixed = on is not None and off is not None
    result = ctx.emit(
        "one_hot", indices, depth=depth, on_value=on if fixed else 1.0,
        off_value=off if fixed else 0.0, dtype=dtype,
    )  # fmt: skip
    if not fixed:
        chosen = ctx.emit("Cast", result, dtype="bool")
        values = [ctx.cast(value, np.dtype(dtype).name) for value in (on_value, off_value)]
        result = ctx.emit("_npi_where", chosen, *values)
    at = axis % (rank + 1)
    if not rank and not ctx.np_shape:
        return ctx.reshape(replace(result, type=_one_index(ctx)), ctx.result_type().shape)
    if at == rank:
        return result
    order = [*range(at), rank, *range(at, rank)]
    return ctx.emit("transpose", result, axes=order)


@OPS.exports("sequence_mask")
def export_sequence_mask(
    ctx: ExportContext, data: Value, valid_length: Value, *, mask_value: float, axis: int
) -> Value:
    lengths = valid_length
    if is_float(ctx.type(lengths).dtype):
        lengths = ctx.spell(relay.ceil, lengths)
    lengths = ctx.cast(lengths, ctx.type(data).dtype)
    return ctx.emit(
        "SequenceMask", data, lengths, use_sequence_length=True, value=mask_value, axis=axis
    )
