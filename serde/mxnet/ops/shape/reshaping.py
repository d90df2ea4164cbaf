"""Shapes: reshaping, joining, splitting, broadcasting and filling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.elementwise.arithmetic import scalar_like
from serde.mxnet.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float, normalize_axes, normalize_axis
from serde.relay.ir.types import TensorType
from serde.weights import numpy_dtype

FLOAT32 = np.dtype("float32")


@OPS.imports("Flatten")
def import_flatten(ctx: ImportContext, data: Expr) -> Expr:
    if ctx.type(data).rank == 1:
        return relay.expand_dims(data, 1)
    return relay.nn.batch_flatten(data)


@OPS.imports("Reshape", ignored=("target_shape", "keep_highest"))
def import_reshape(
    ctx: ImportContext, data: Expr, *, shape: tuple[int, ...] = (), reverse: bool = False
) -> Expr:
    """``reverse`` reads the special codes from the last axis on."""
    if not shape:
        raise Unsupported("a reshape without shape (the target_shape of MXNet before 0.9)")
    build = relay.contrib_reverse_reshape if reverse else relay.reshape
    return build(data, newshape=shape)


@OPS.imports("reshape_like")
def import_reshape_like(
    ctx: ImportContext,
    lhs: Expr,
    rhs: Expr,
    *,
    lhs_begin: int | None = None,
    lhs_end: int | None = None,
    rhs_begin: int | None = None,
    rhs_end: int | None = None,
) -> Expr:
    return relay.reshape_like(
        lhs,
        rhs,
        lhs_begin=lhs_begin or 0,
        lhs_end=lhs_end,
        rhs_begin=rhs_begin or 0,
        rhs_end=rhs_end,
    )


@OPS.imports("transpose")
def import_transpose(ctx: ImportContext, data: Expr, *, axes: tuple[int, ...] = ()) -> Expr:
    return relay.transpose(data, axes or None)


@OPS.imports("SwapAxis")
def import_swap_axis(ctx: ImportContext, data: Expr, *, dim1: int = 0, dim2: int = 0) -> Expr:
    rank = ctx.type(data).rank
    order = list(range(rank))
    first, second = normalize_axis(dim1, rank), normalize_axis(dim2, rank)
    order[first], order[second] = second, first
    return relay.transpose(data, order)


@OPS.imports("expand_dims")
def import_expand_dims(ctx: ImportContext, data: Expr, *, axis: int) -> Expr:
    return relay.expand_dims(data, axis)


@OPS.imports("squeeze")
def import_squeeze(
    ctx: ImportContext, data: Expr, *, axis: int | tuple[int, ...] | None = None
) -> Expr:
    """A tensor whose every axis goes keeps one of length 1."""
    shape = ctx.static_shape(data) if axis is None else ctx.type(data).shape
    if axis is None:
        axes = tuple(i for i, length in enumerate(shape) if length == 1)
    else:
        axes = normalize_axes((axis,) if isinstance(axis, int) else axis, len(shape))
    if not axes:
        return data
    return relay.squeeze(data, axes[1:] if len(axes) == len(shape) else axes)


@OPS.imports("Concat")
def import_concat(ctx: ImportContext, *data: Expr, dim: int = 1, num_args: int = 0) -> Expr:
    return relay.concatenate(data, axis=dim)


@OPS.imports("stack")
def import_stack(ctx: ImportContext, *data: Expr, axis: int = 0, num_args: int = 0) -> Expr:
    return relay.stack(data, axis=axis)


@OPS.imports("SliceChannel")
def import_slice_channel(
    ctx: ImportContext, data: Expr, *, num_outputs: int, axis: int = 1, squeeze_axis: bool = False
) -> AnyValue:
    return _split(data, num_outputs, axis, squeeze_axis)


@OPS.imports("_split_v2")
def import_split_v2(
    ctx: ImportContext,
    data: Expr,
    *,
    indices: tuple[int, ...] = (),
    axis: int = 1,
    squeeze_axis: bool = False,
    sections: int = 0,
) -> AnyValue:
    """The file's indices start with the 0 that Relay leaves out."""
    return _split(data, sections if sections > 0 else indices[1:], axis, squeeze_axis)


def _split(data: Expr, where: int | tuple[int, ...], axis: int, squeeze: bool) -> list[Expr]:
    parts = list(relay.split(data, where, axis=axis))
    return [relay.squeeze(part, (axis,)) for part in parts] if squeeze else parts


@OPS.imports("tile")
def import_tile(ctx: ImportContext, data: Expr, *, reps: tuple[int, ...]) -> Expr:
    return relay.tile(data, reps)


@OPS.imports("repeat")
def import_repeat(ctx: ImportContext, data: Expr, *, repeats: int, axis: int | None = None) -> Expr:
    """What is repeated no times is an empty vector, of whatever rank it was."""
    if repeats == 0:
        return relay.zeros([0], ctx.type(data).dtype)
    if axis is None:
        return relay.repeat(relay.reshape(data, (-1,)), repeats, 0)
    return relay.repeat(data, repeats, axis)


@OPS.imports("reverse")
def import_reverse(ctx: ImportContext, data: Expr, *, axis: tuple[int, ...]) -> Expr:
    for each in axis:
        data = relay.reverse(data, each)
    return data


@OPS.imports("broadcast_to")
def import_broadcast_to(ctx: ImportContext, data: Expr, *, shape: tuple[int, ...]) -> Expr:
    """A 0 keeps the length there is."""
    lengths = ctx.type(data).shape
    if len(shape) != len(lengths):
        raise Unsupported(f"shape: expected {len(lengths)} values, found {len(shape)}")
    target = [own if wanted == 0 else wanted for own, wanted in zip(lengths, shape, strict=True)]
    return relay.broadcast_to(data, target)


@OPS.imports("broadcast_axis")
def import_broadcast_axis(
    ctx: ImportContext, data: Expr, *, axis: tuple[int, ...] = (), size: tuple[int, ...] = ()
) -> Expr:
    """An axis that is not named may have any length, even one that is not known."""
    target = list(ctx.type(data).shape)
    repeats = [1] * len(target)
    for each, length in zip(normalize_axes(axis, len(target)), size, strict=True):
        target[each] = repeats[each] = length
    if all(isinstance(length, int) for length in target):
        return relay.broadcast_to(data, target)
    return relay.tile(data, repeats)


@OPS.imports("broadcast_like")
def import_broadcast_like(
    ctx: ImportContext,
    lhs: Expr,
    rhs: Expr,
    *,
    lhs_axes: tuple[int, ...] | None = None,
    rhs_axes: tuple[int, ...] | None = None,
) -> Expr:
    if lhs_axes is None or rhs_axes is None:
        return relay.broadcast_to_like(lhs, rhs)
    target = list(ctx.type(lhs).shape)
    lengths = ctx.type(rhs).shape
    for left, right in zip(lhs_axes, rhs_axes, strict=True):
        target[normalize_axis(left, len(target))] = lengths[right]
    return relay.broadcast_to(lhs, target)


@OPS.imports("Pad")
def import_pad(
    ctx: ImportContext,
    data: Expr,
    *,
    mode: Literal["constant", "edge", "reflect"],
    pad_width: tuple[int, ...],
    constant_value: float = 0.0,
) -> Expr:
    """Widths come as one row: before and after, axis by axis."""
    rank = ctx.type(data).rank
    if len(pad_width) != 2 * rank:
        raise Unsupported(f"pad_width: expected {2 * rank} values, found {len(pad_width)}")
    widths = list(zip(pad_width[::2], pad_width[1::2], strict=True))
    return relay.nn.pad(data, widths, scalar_like(ctx, data, constant_value), pad_mode=mode)


@OPS.imports("shape_array")
def import_shape_array(ctx: ImportContext, data: Expr) -> Expr:
    return relay.shape_of(data, dtype="int64")


@OPS.imports("size_array")
def import_size_array(ctx: ImportContext, data: Expr) -> Expr:
    return relay.expand_dims(relay.ndarray_size(data, dtype="int64"), 0)


@OPS.exports("nn.batch_flatten")
def export_batch_flatten(ctx: ExportContext, data: Value) -> Value:
    return ctx.emit_bytes("Flatten", data)


@OPS.exports("reshape", "contrib_reverse_reshape")
def export_reshape(
    ctx: ExportContext, data: Value, *, newshape: tuple[Dim, ...], allowzero: bool = False
) -> Value:
    """Only the shape that comes out matters."""
    return ctx.reshape(data, ctx.result_type().shape)


@OPS.exports("reshape_like")
def export_reshape_like(
    ctx: ExportContext,
    data: Value,
    shape_like: Value,
    *,
    lhs_begin: int,
    lhs_end: int | None,
    rhs_begin: int,
    rhs_end: int | None,
) -> Value:
    return ctx.emit(
        "reshape_like", data, shape_like, lhs_begin=lhs_begin, lhs_end=lhs_end,
        rhs_begin=rhs_begin, rhs_end=rhs_end,
    )  # fmt: skip


@OPS.exports("expand_dims")
def export_expand_dims(ctx: ExportContext, data: Value, *, axis: int, num_newaxis: int) -> Value:
    rank = ctx.type(data).rank
    if num_newaxis == 1 and rank:
        return ctx.emit("expand_dims", data, axis=axis % (rank + 1))
    return ctx.reshape(data, ctx.result_type().shape)


@OPS.exports("squeeze")
def export_squeeze(ctx: ExportContext, data: Value, *, axis: tuple[int, ...] | None) -> Value:
    result = ctx.result_type()
    if not result.shape or axis == () or result.rank == ctx.type(data).rank:
        return ctx.reshape(data, result.shape)
    return ctx.emit("squeeze", data, axis=axis)


@OPS.exports("transpose")
def export_transpose(ctx: ExportContext, data: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(data).rank
    order = tuple(reversed(range(rank))) if axes is None else normalize_axes(axes, rank)
    if rank > MOST_TRANSPOSED:
        return ctx.spell(lambda x: _one_by_one(x, order), data)
    return data if rank < 2 else ctx.emit_bytes("transpose", data, axes=order)


MOST_TRANSPOSED = 6
"""Rank of what MXNet transposes, at most."""


def _one_by_one(data: Expr, order: Sequence[int]) -> Expr:
    """Bring the axes to the front, the last one first."""
    type_ = data.checked_type
    if not isinstance(type_, TensorType) or type_.concrete_shape is None:
        raise Unsupported(f"needs a fixed shape, found {type_!r}")
    lengths, axes = list(type_.concrete_shape), list(range(type_.rank))
    for axis in reversed(order):
        place = axes.index(axis)
        before, after = prod(lengths[:place]), prod(lengths[place + 1 :])
        parts = relay.reshape(data, [before, lengths[place], after])
        data = relay.transpose(parts, [1, 0, 2])
        axes.insert(0, axes.pop(place))
        lengths.insert(0, lengths.pop(place))
    return relay.reshape(data, lengths)


@OPS.exports("concatenate")
def export_concatenate(ctx: ExportContext, data: tuple[Value, ...], *, axis: int) -> Value:
    if len(data) == 1:
        return data[0]
    return ctx.emit_bytes("Concat", *data, dim=axis, num_args=len(data))


@OPS.exports("stack")
def export_stack(ctx: ExportContext, data: tuple[Value, ...], *, axis: int) -> Value:
    result = ctx.emit_bytes("stack", *data, axis=axis, num_args=len(data))
    if ctx.type(data[0]).rank:
        return result
    return ctx.reshape(replace(result, type=ctx.result_type()), ctx.result_type().shape)


@OPS.exports("split")
def export_split(
    ctx: ExportContext, data: Value, *, indices_or_sections: int | tuple[int, ...], axis: int
) -> Sequence[Value]:
    """The indices of MXNet start with a 0."""
    axis = normalize_axis(axis, ctx.type(data).rank)
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        return ctx.emit_tuple(
            "SliceChannel", data, outputs=count, num_outputs=count, axis=axis, squeeze_axis=False
        )
    places = (0, *indices_or_sections)
    return ctx.emit_tuple(
        "_split_v2", data, outputs=len(places), indices=places, axis=axis, squeeze_axis=False,
        sections=0,
    )  # fmt: skip


@OPS.exports("broadcast_to")
def export_broadcast_to(
    ctx: ExportContext, data: Value, *, shape: tuple[Dim, ...], dtype: AnyValue
) -> Value:
    """A 0 keeps the length there is, but to NumPy's operator."""
    wanted = ctx.result_type().shape
    if ctx.result_type().size == 0:
        return ctx.emit("_npi_broadcast_to", data, shape=ctx.result_type().concrete_shape)
    have: tuple[Dim, ...] = (*[1] * (len(wanted) - ctx.type(data).rank), *ctx.type(data).shape)
    data = ctx.reshape(data, have)
    lengths = [0 if dim == own else dim for dim, own in zip(wanted, have, strict=True)]
    if any(not isinstance(length, int) for length in lengths):
        raise Unsupported(f"a length that no input shows: {ctx.result_type()!r}")
    return data if wanted == have else ctx.emit_bytes("broadcast_to", data, shape=lengths)


@OPS.exports("broadcast_to_like")
def export_broadcast_to_like(ctx: ExportContext, data: Value, broadcast_type: Value) -> Value:
    missing = ctx.type(broadcast_type).rank - ctx.type(data).rank
    data = ctx.reshape(data, (*[1] * missing, *ctx.type(data).shape))
    return ctx.emit_bytes("broadcast_like", data, broadcast_type)


@OPS.exports("tile")
def export_tile(ctx: ExportContext, data: Value, *, reps: tuple[int, ...]) -> Value:
    return ctx.emit_bytes("tile", data, reps=reps)


@OPS.exports("repeat")
def export_repeat(ctx: ExportContext, data: Value, *, repeats: int, axis: int | None) -> Value:
    return ctx.emit_bytes("repeat", data, repeats=repeats, axis=axis)


@OPS.exports("reverse")
def export_reverse(ctx: ExportContext, data: Value, *, axis: int) -> Value:
    return ctx.emit_bytes("reverse", data, axis=(axis % ctx.type(data).rank,))


@OPS.exports("nn.pad")
def export_pad(
    ctx: ExportContext,
    data: Value,
    pad_val: Value,
    *,
    pad_width: tuple[tuple[int, int], ...],
    pad_mode: Literal["constant", "edge", "reflect"],
) -> Value:
    """MXNet pads the trailing axes of floats of rank 4 and 5; others get axes of length 1."""
    type_ = ctx.type(data)
    computed = pad_mode == "constant" and pad_val.data is None
    if computed or not is_float(type_.dtype):
        return _padded_by_parts(ctx, data, pad_val, pad_width, pad_mode)
    if type_.rank > 5 or (type_.rank > 3 and any(map(any, pad_width[:2]))):
        return _padded_by_parts(ctx, data, pad_val, pad_width, pad_mode)
    value = float(ctx.constant(pad_val)) if pad_mode == "constant" else None
    more = max(0, 5 - type_.rank) if type_.rank < 4 else 0
    wide = [*[(0, 0)] * more, *pad_width]
    data = ctx.reshape(data, (*[1] * more, *type_.shape))
    result = ctx.emit_bytes(
        "Pad", data, mode=pad_mode, pad_width=[each for pair in wide for each in pair],
        constant_value=value,
    )  # fmt: skip
    if not more:
        return result
    shape = ctx.result_type().shape
    return ctx.reshape(replace(result, type=TensorType((*[1] * more, *shape), type_.dtype)), shape)


def _padded_by_parts(
    ctx: ExportContext,
    data: Value,
    pad_val: Value,
    pad_width: Sequence[tuple[int, int]],
    pad_mode: str,
) -> Value:
    """Put blocks of the value around each axis, or look the places of the border up."""

    def spelled(x: Expr, value: Expr) -> Expr:
        for axis, widths in enumerate(pad_width):
            if any(widths) and pad_mode == "constant":
                x = _between_blocks(x, value, axis, widths)
            elif any(widths):
                (length,) = ctx.static_lengths(data, [axis])
                mode: Literal["edge", "reflect"] = "edge" if pad_mode == "edge" else "reflect"
                places = np.pad(np.arange(length), widths, mode=mode)
                x = relay.take(x, relay.Constant(places), axis=axis, mode="clip")
        return x

    return ctx.spell(spelled, data, pad_val)


def _between_blocks(data: Expr, value: Expr, axis: int, widths: tuple[int, int]) -> Expr:
    type_ = data.checked_type
    if not isinstance(type_, TensorType) or type_.concrete_shape is None:
        raise Unsupported(f"needs a fixed shape, found {type_!r}")
    shape = list(type_.concrete_shape)
    blocks = [
        relay.full(value, [*shape[:axis], width, *shape[axis + 1 :]], type_.dtype)
        for width in widths
    ]
    parts = [blocks[0]] * (widths[0] > 0) + [data] + [blocks[1]] * (widths[1] > 0)
    return relay.concatenate(parts, axis)


def _declare_filled_export(name: str, value: float) -> None:
    @OPS.exports(name)
    def export_filled(
        ctx: ExportContext, *, shape: tuple[Dim, ...] | None, dtype: AnyValue
    ) -> Value:
        type_ = ctx.result_type()
        lengths = type_.concrete_shape
        if lengths is None:
            raise Unsupported(f"a length that no input shows: {type_!r}")
        return ctx.const(np.full(lengths, value, numpy_dtype(type_.dtype)))


for _name, _value in (("zeros", 0), ("ones", 1)):
    _declare_filled_export(_name, _value)


@OPS.exports("zeros_like")
def export_zeros_like(ctx: ExportContext, data: Value) -> Value:
    return ctx.emit_bytes("zeros_like", data)


@OPS.exports("ones_like")
def export_ones_like(ctx: ExportContext, data: Value) -> Value:
    return ctx.emit_bytes("ones_like", data)


@OPS.exports("full")
def export_full(
    ctx: ExportContext, fill_value: Value, *, shape: tuple[Dim, ...] | None, dtype: AnyValue
) -> Value:
    lengths = ctx.result_type().concrete_shape
    if lengths is None:
        raise Unsupported(f"a length that no input shows: {ctx.result_type()!r}")
    value = ctx.cast(fill_value, ctx.result_type().dtype)
    if value.data is not None:
        return ctx.const(np.broadcast_to(value.data, lengths))
    return ctx.emit_bytes("broadcast_to", ctx.reshape(value, (1,) * len(lengths)), shape=lengths)


@OPS.exports("shape_of")
def export_shape_of(ctx: ExportContext, data: Value, *, dtype: AnyValue) -> Value:
    return ctx.emit("Cast", ctx.emit("shape_array", data), dtype=dtype)
