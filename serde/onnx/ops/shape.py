"""Shapes: reshaping, joining, splitting, broadcasting and filling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise import cast, filled
from serde.onnx.ops.table import OPS
from serde.relay.dims import Any, Dim, product
from serde.relay.types import TensorType, TupleType


def arranged(ctx: Ctx, x: Value, layout: str, wanted: str) -> Value:
    """Return `x`, whose axes are `layout`, with its axes in the order `wanted`.

    Raises:
        Unsupported: The layout does not have these axes.
    """
    if layout == wanted:
        return x
    if sorted(layout) != sorted(wanted):
        raise Unsupported(f"layout {layout!r} has no counterpart", hint=f"use {wanted}")
    return ctx.emit("Transpose", x, perm=[layout.index(letter) for letter in wanted])


def unsqueeze(ctx: Ctx, x: Value, axes: Sequence[int]) -> Value:
    """Insert axes of length 1; their places are an attribute before 13."""
    if ctx.version >= 13:
        return ctx.emit("Unsqueeze", x, ctx.ints(axes))
    return ctx.emit("Unsqueeze", x, axes=list(axes))


def squeeze(ctx: Ctx, x: Value, axes: Sequence[int]) -> Value:
    """Drop axes of length 1; their places are an attribute before 13."""
    if ctx.version >= 13:
        return ctx.emit("Squeeze", x, ctx.ints(axes))
    return ctx.emit("Squeeze", x, axes=list(axes))


def reshape(ctx: Ctx, x: Value, dims: Sequence[Dim]) -> Value:
    """Return `x` with the shape `dims`, spelled with as little shape arithmetic as possible.

    Before 14 a Reshape cannot say a length of 0; what has one is made new, as it has no elements.
    """
    if any(type(dim) is int and dim == 0 for dim in dims):
        if ctx.version < 14:
            return filled(ctx, ctx.shape(dims), 0, ctx.type(x).dtype)
        return ctx.emit("Reshape", x, ctx.shape(dims), allowzero=1)
    codes = _codes(ctx.type(x).shape, dims)
    if codes is not None:
        return ctx.emit("Reshape", x, ctx.ints(codes))
    return ctx.emit("Reshape", x, ctx.shape(dims))


def _codes(source: Sequence[Dim], dims: Sequence[Dim]) -> list[int] | None:
    """Return the shape in ONNX's codes, 0 for a length kept, -1 for one inferred, if possible."""
    codes: list[int] = []
    for axis, dim in enumerate(dims):
        if isinstance(dim, int):
            codes.append(dim)
        elif axis < len(source) and source[axis] == dim and not isinstance(dim, Any):
            codes.append(0)
        else:
            codes.append(-1)
    if codes.count(-1) > 1:
        return None
    if -1 in codes:
        others = [dim for dim, code in zip(dims, codes, strict=True) if code != -1]
        known = product(others)
        inferred = dims[codes.index(-1)]
        exact = isinstance(inferred, Any) or product(source) == known * inferred
        return codes if exact else None
    return codes


@OPS.exports("reshape")
def export_reshape(ctx: Ctx, x: Value, *, newshape: tuple[int, ...], allowzero: bool) -> Value:
    return reshape(ctx, x, ctx.result_type().shape)


@OPS.exports("contrib_reverse_reshape")
def export_reverse_reshape(
    ctx: Ctx, x: Value, *, newshape: tuple[int, ...], allowzero: bool
) -> Value:
    return reshape(ctx, x, ctx.result_type().shape)


@OPS.exports("reshape_like")
def export_reshape_like(
    ctx: Ctx,
    x: Value,
    like: Value,
    *,
    lhs_begin: int,
    lhs_end: int | None,
    rhs_begin: int,
    rhs_end: int | None,
) -> Value:
    whole = (lhs_begin, lhs_end, rhs_begin, rhs_end) == (0, None, 0, None)
    if whole and any(isinstance(dim, Any) for dim in ctx.result_type().shape):
        return ctx.emit("Reshape", x, ctx.emit("Shape", like))
    return reshape(ctx, x, ctx.result_type().shape)


@OPS.exports("nn.batch_flatten")
def export_batch_flatten(ctx: Ctx, x: Value) -> Value:
    return ctx.emit("Flatten", x, axis=1)


@OPS.exports("transpose")
def export_transpose(ctx: Ctx, x: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(x).rank
    order = range(rank - 1, -1, -1) if axes is None else (axis % rank for axis in axes)
    return ctx.emit("Transpose", x, perm=list(order))


@OPS.exports("expand_dims")
def export_expand_dims(ctx: Ctx, x: Value, *, axis: int, num_newaxis: int) -> Value:
    first = axis if axis >= 0 else ctx.type(x).rank + 1 + axis
    return unsqueeze(ctx, x, range(first, first + num_newaxis)) if num_newaxis else x


@OPS.exports("squeeze")
def export_squeeze(ctx: Ctx, x: Value, *, axis: tuple[int, ...] | None) -> Value:
    shape = ctx.type(x).shape
    if axis is None:
        axes = [i for i, dim in enumerate(shape) if dim == 1]
    else:
        axes = sorted(each % len(shape) for each in axis)
    return squeeze(ctx, x, axes) if axes else x


@OPS.exports("concatenate")
def export_concatenate(ctx: Ctx, data: tuple[Value, ...], *, axis: int) -> Value:
    return ctx.emit("Concat", *data, axis=axis)


@OPS.exports("nn.fifo_buffer")
def export_fifo_buffer(ctx: Ctx, x: Value, buffer: Value, *, axis: int) -> Value:
    place = axis % ctx.type(x).rank
    joined = ctx.emit("Concat", buffer, x, axis=place)
    start = ctx.shape([ctx.type(x).shape[place]])
    return ctx.emit("Slice", joined, start, ctx.ints([np.iinfo(np.int64).max]), ctx.ints([place]))


@OPS.exports("stack")
def export_stack(ctx: Ctx, data: tuple[Value, ...], *, axis: int) -> Value:
    place = axis % ctx.result_type().rank
    return ctx.emit("Concat", *[unsqueeze(ctx, each, [place]) for each in data], axis=place)


@OPS.exports("split")
def export_split(
    ctx: Ctx, x: Value, *, indices_or_sections: int | tuple[int, ...], axis: int
) -> tuple[Value, ...]:
    """The lengths are an attribute before 13."""
    if not isinstance(ctx.result, TupleType):
        raise Unsupported("the number of parts is not known")
    place = axis % ctx.type(x).rank
    parts = len(ctx.result.fields)
    lengths = [part.shape[place] for part in ctx.result.fields]  # type: ignore[union-attr]
    fixed = [length for length in lengths if isinstance(length, int)]
    if len(fixed) == parts:
        if ctx.version >= 13:
            return ctx.emit_tuple("Split", x, ctx.ints(fixed), outputs=parts, axis=place)
        return ctx.emit_tuple("Split", x, outputs=parts, axis=place, split=fixed)
    if isinstance(indices_or_sections, int):
        count = parts if ctx.version >= 18 else None
        return ctx.emit_tuple("Split", x, outputs=parts, axis=place, num_outputs=count)
    if ctx.version >= 13:
        return ctx.emit_tuple("Split", x, ctx.shape(lengths), outputs=parts, axis=place)
    raise Unsupported("a split of a dynamic axis at given places needs version 13")


@OPS.exports("tile")
def export_tile(ctx: Ctx, x: Value, *, reps: tuple[int, ...]) -> Value:
    rank = ctx.type(x).rank
    if len(reps) > rank:
        x = unsqueeze(ctx, x, range(len(reps) - rank))
    return ctx.emit("Tile", x, ctx.ints([*(1,) * (rank - len(reps)), *reps]))


@OPS.exports("repeat")
def export_repeat(ctx: Ctx, x: Value, *, repeats: int, axis: int | None) -> Value:
    shape = ctx.type(x).shape
    if axis is None:
        x, shape = ctx.emit("Reshape", x, ctx.ints([-1])), (ctx.type(x).size,)
    place = (axis or 0) % len(shape)
    counts = [1] * (len(shape) + 1)
    counts[place + 1] = repeats
    tiled = ctx.emit("Tile", unsqueeze(ctx, x, [place + 1]), ctx.ints(counts))
    counted = zip((*shape[: place + 1], 1, *shape[place + 1 :]), counts, strict=True)
    wide = TensorType([dim * count for dim, count in counted], ctx.result_type().dtype)
    return reshape(ctx, Value(tiled.name, wide), ctx.result_type().shape)


@OPS.exports("reverse")
def export_reverse(ctx: Ctx, x: Value, *, axis: int | None) -> Value:
    place = ctx.ints([0 if axis is None else axis])
    lowest = ctx.ints([np.iinfo(np.int64).min])
    return ctx.emit("Slice", x, ctx.ints([-1]), lowest, place, ctx.ints([-1]))


@OPS.exports("broadcast_to")
def export_broadcast_to(
    ctx: Ctx, x: Value, *, shape: tuple[Dim, ...] | None, dtype: np.dtype[AnyValue] | None
) -> Value:
    return ctx.emit("Expand", x, ctx.shape(ctx.result_type().shape))


@OPS.exports("broadcast_to_like")
def export_broadcast_to_like(ctx: Ctx, x: Value, like: Value) -> Value:
    return ctx.emit("Expand", x, ctx.emit("Shape", like))


@OPS.exports("shape_of")
def export_shape_of(ctx: Ctx, x: Value, *, dtype: np.dtype[AnyValue] | None) -> Value:
    return _as_result(ctx, ctx.emit("Shape", x))


@OPS.exports("ndarray_size")
def export_ndarray_size(ctx: Ctx, x: Value, *, dtype: np.dtype[AnyValue] | None) -> Value:
    return _as_result(ctx, ctx.emit("Size", x))


def _as_result(ctx: Ctx, x: Value) -> Value:
    """Return int64 in the dtype that Relay says."""
    dtype = ctx.result_type().dtype
    return x if dtype == "int64" else cast(ctx, x, dtype)


@OPS.exports("zeros")
def export_zeros(
    ctx: Ctx, *, shape: tuple[Dim, ...] | None, dtype: np.dtype[AnyValue] | None
) -> Value:
    result = ctx.result_type()
    return filled(ctx, ctx.shape(result.shape), 0, result.dtype)


@OPS.exports("ones")
def export_ones(
    ctx: Ctx, *, shape: tuple[Dim, ...] | None, dtype: np.dtype[AnyValue] | None
) -> Value:
    result = ctx.result_type()
    return filled(ctx, ctx.shape(result.shape), 1, result.dtype)


@OPS.exports("full")
def export_full(
    ctx: Ctx, value: Value, *, shape: tuple[Dim, ...] | None, dtype: np.dtype[AnyValue] | None
) -> Value:
    result = ctx.result_type()
    if value.data is not None:
        return filled(ctx, ctx.shape(result.shape), value.data.item(), result.dtype)
    return ctx.emit("Expand", cast(ctx, value, result.dtype), ctx.shape(result.shape))


@OPS.exports("nn.pad")
def export_pad(
    ctx: Ctx, x: Value, value: Value, *, pad_width: tuple[tuple[int, int], ...], pad_mode: str
) -> Value:
    """ONNX lists all widths before the axes first, then those behind them."""
    widths = ctx.ints([w[0] for w in pad_width] + [w[1] for w in pad_width])
    if pad_mode != "constant":
        return ctx.emit("Pad", x, widths, mode=pad_mode)
    dtype = ctx.type(x).dtype
    if ctx.type(value).dtype != dtype:
        value = ctx.scalar_like(x, ctx.constant(value).item())
    return ctx.emit("Pad", x, widths, value, mode="constant")


@OPS.exports("nn.mirror_pad")
def export_mirror_pad(
    ctx: Ctx, x: Value, *, mode: str, pad_width: tuple[tuple[int, int], ...]
) -> Value:
    if mode != "REFLECT":
        raise Unsupported(f"mode={mode!r} has no counterpart", hint="use mode='REFLECT'")
    widths = ctx.ints([w[0] for w in pad_width] + [w[1] for w in pad_width])
    return ctx.emit("Pad", x, widths, mode="reflect")


@OPS.exports("nn.depth_to_space")
def export_depth_to_space(ctx: Ctx, x: Value, *, block_size: int, layout: str, mode: str) -> Value:
    moved = ctx.emit(
        "DepthToSpace", arranged(ctx, x, layout, "NCHW"), blocksize=block_size, mode=mode
    )
    return arranged(ctx, moved, "NCHW", layout)


@OPS.exports("nn.space_to_depth")
def export_space_to_depth(ctx: Ctx, x: Value, *, block_size: int, layout: str, mode: str) -> Value:
    moved = ctx.emit("SpaceToDepth", arranged(ctx, x, layout, "NCHW"), blocksize=block_size)
    return arranged(ctx, moved, "NCHW", layout)


def integers(ctx: Ctx, x: Value) -> Value:
    """Return a tensor of integers as int64, which ONNX takes for shapes."""
    return x if ctx.type(x).dtype == "int64" else cast(ctx, x, np.int64)


@OPS.exports("dyn.zeros")
def export_dyn_zeros(ctx: Ctx, shape: Value, *, dtype: np.dtype[AnyValue] | None) -> Value:
    return filled(ctx, integers(ctx, shape), 0, ctx.result_type().dtype)


@OPS.exports("dyn.ones")
def export_dyn_ones(ctx: Ctx, shape: Value, *, dtype: np.dtype[AnyValue] | None) -> Value:
    return filled(ctx, integers(ctx, shape), 1, ctx.result_type().dtype)


@OPS.exports("dyn.full")
def export_dyn_full(
    ctx: Ctx, value: Value, shape: Value, *, dtype: np.dtype[AnyValue] | None
) -> Value:
    wanted = ctx.result_type().dtype
    whole = value if ctx.type(value).dtype == wanted else cast(ctx, value, wanted)
    return ctx.emit("Expand", whole, integers(ctx, shape))


@OPS.exports("dyn.broadcast_to")
def export_dyn_broadcast_to(
    ctx: Ctx, x: Value, shape: Value, *, dtype: np.dtype[AnyValue] | None
) -> Value:
    return ctx.emit("Expand", x, integers(ctx, shape))


@OPS.exports("dyn.reshape")
def export_dyn_reshape(ctx: Ctx, x: Value, newshape: Value, *, allowzero: bool) -> Value:
    """Of Relay's codes, ONNX has 0 and -1."""
    if newshape.data is not None:
        return reshape(ctx, x, ctx.result_type().shape)
    if allowzero and ctx.version < 14:
        raise Unsupported("a shape with a length of 0 needs version 14")
    return ctx.emit("Reshape", x, integers(ctx, newshape), allowzero=int(allowzero) or None)


@OPS.exports("dyn.tile")
def export_dyn_tile(ctx: Ctx, x: Value, reps: Value) -> Value:
    rank, (count,) = ctx.type(x).rank, ctx.static_shape(reps)
    counts = integers(ctx, reps)
    if count > rank:
        x = unsqueeze(ctx, x, range(count - rank))
    if count < rank:
        counts = ctx.emit("Concat", ctx.ints([1] * (rank - count)), counts, axis=0)
    return ctx.emit("Tile", x, counts)


@OPS.exports("dyn.expand_dims", since=13)
def export_dyn_expand_dims(ctx: Ctx, x: Value, axis: Value, *, num_newaxis: int) -> Value:
    """New axes are counted from the front of the result, or all from its end."""
    if not num_newaxis:
        return x
    place = ctx.emit("Reshape", integers(ctx, axis), ctx.ints([1]))
    rank = ctx.ints([ctx.type(x).rank + 1])
    front = ctx.emit("Mod", ctx.emit("Add", place, rank), rank)
    return ctx.emit("Unsqueeze", x, ctx.emit("Add", front, ctx.ints(range(num_newaxis))))


@OPS.exports("dyn.expand_dims")
def export_dyn_expand_dims_v1(ctx: Ctx, x: Value, axis: Value, *, num_newaxis: int) -> Value:
    """Before 13 the places are an attribute."""
    return export_expand_dims(ctx, x, axis=int(ctx.constant(axis).item()), num_newaxis=num_newaxis)


@OPS.exports("dyn.squeeze")
def export_dyn_squeeze(ctx: Ctx, x: Value, axes: Value) -> Value:
    """Before 13 the places are an attribute."""
    if not ctx.static_shape(axes)[0]:
        return x
    if ctx.version >= 13:
        return ctx.emit("Squeeze", x, integers(ctx, axes))
    return squeeze(ctx, x, [int(axis) for axis in ctx.constant(axes)])


@OPS.exports("dyn.nn.pad")
def export_dyn_pad(ctx: Ctx, x: Value, widths: Value, value: Value, *, pad_mode: str) -> Value:
    turned = ctx.emit("Transpose", integers(ctx, widths), perm=[1, 0])
    sides = ctx.emit("Reshape", turned, ctx.ints([-1]))
    if pad_mode != "constant":
        return ctx.emit("Pad", x, sides, mode=pad_mode)
    dtype = ctx.type(x).dtype
    filler = value if ctx.type(value).dtype == dtype else cast(ctx, value, dtype)
    return ctx.emit("Pad", x, sides, filler, mode="constant")
