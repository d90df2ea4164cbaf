"""Importers of what arranges the elements of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any as AnyValue

import serde.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext, Scalar, Shape
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr, Tuple
from serde.relay.ir.shapes import normalize_axis
from serde.walk.pairs import reads

__all__: list[str] = []


@OPS.imports("relax.reshape")
def import_reshape(ctx: ImportContext, x: Expr, *, shape: Shape) -> Expr:
    return ctx.reshape(x, shape)


@OPS.imports("relax.broadcast_to")
def import_broadcast_to(ctx: ImportContext, x: Expr, *, shape: Shape) -> Expr:
    return ctx.broadcast_to(x, shape)


@OPS.imports("relax.expand_dims")
def import_expand_dims(ctx: ImportContext, x: Expr, *, axis: tuple[int, ...]) -> Expr:
    """Axes are those of the result."""
    rank = ctx.rank(x) + len(axis)
    for place in sorted(normalize_axis(each, rank) for each in axis):
        x = relay.expand_dims(x, place)
    return x


@OPS.imports("relax.squeeze")
def import_squeeze(ctx: ImportContext, x: Expr, *, axis: tuple[int, ...] | None) -> Expr:
    """Without axes, those go whose length is known to be 1."""
    if axis is None:
        axis = tuple(place for place, length in enumerate(ctx.type(x).shape) if length == 1)
    return relay.squeeze(x, axis=list(axis)) if axis else x


@OPS.imports("relax.concat")
def import_concat(ctx: ImportContext, tensors: Expr, *, axis: int | None) -> Expr:
    fields = ctx.fields(tensors)
    if axis is None:
        return relay.concatenate([relay.reshape(each, (-1,)) for each in fields], axis=0)
    return relay.concatenate(fields, axis=axis)


@OPS.imports("relax.stack")
def import_stack(ctx: ImportContext, tensors: Expr, *, axis: int | None) -> Expr:
    return relay.stack(Tuple(ctx.fields(tensors)), axis=axis or 0)


@OPS.imports("relax.split")
def import_split(
    ctx: ImportContext, x: Expr, *, indices_or_sections: AnyValue, axis: int
) -> list[Expr]:
    """Of sections that do not divide the length the last one is shorter."""
    if isinstance(indices_or_sections, tuple):
        return _split_at(x, [ctx.number(each) for each in indices_or_sections], axis)
    length, count = ctx.type(x).shape[axis], indices_or_sections
    if count < 1:
        raise Unsupported(f"a split into {count} sections")
    allocation.iterations(count, "the sections of a split")
    if not isinstance(length, int) or length % count == 0:
        return list(relay.split(x, count, axis=axis))
    step = -(-length // count)
    if step * (count - 1) > length:
        raise Unsupported(f"{length} elements in {count} sections")
    return _split_at(x, [step * place for place in range(1, count)], axis)


def _split_at(x: Expr, indices: Sequence[int], axis: int) -> list[Expr]:
    return list(relay.split(x, tuple(indices), axis=axis))


@OPS.imports("relax.tile")
def import_tile(ctx: ImportContext, data: Expr, *, repeats: tuple[int, ...]) -> Expr:
    return relay.tile(data, repeats) if repeats else data


@OPS.imports("relax.repeat")
def import_repeat(ctx: ImportContext, data: Expr, *, repeats: int, axis: int | None) -> Expr:
    if axis is None:
        data, axis = relay.reshape(data, (-1,)), 0
    return relay.repeat(data, repeats, axis=axis)


@OPS.imports("relax.nn.pad")
def import_pad(
    ctx: ImportContext, data: Expr, *, pad_width: tuple[int, ...], pad_value: float, pad_mode: str
) -> Expr:
    """Widths before and after each axis follow each other."""
    widths = tuple(zip(pad_width[::2], pad_width[1::2], strict=True))
    if pad_mode == "constant":
        return relay.nn.pad(data, widths, pad_value=ctx.like(data, pad_value))
    if pad_mode in ("reflect", "replicate"):
        mode = {"reflect": "reflect", "replicate": "edge"}[pad_mode]
        return relay.nn.pad(data, widths, pad_mode=mode)
    if pad_mode != "circular":
        raise Unsupported(f"pad_mode={pad_mode!r} has no counterpart")
    for axis, (before, after) in enumerate(widths):
        data = _wrap(ctx, data, axis, before, after)
    return data


def _wrap(ctx: ImportContext, x: Expr, axis: int, before: int, after: int) -> Expr:
    """Return a tensor that goes on around along an axis."""
    if not before and not after:
        return x
    (length,) = ctx.static_lengths(x, [axis])
    if before > length or after > length:
        raise Unsupported(f"{max(before, after)} elements around an axis of {length}")
    parts = [x]
    if before:
        parts.insert(0, relay.strided_slice(x, [length - before], [length], axes=[axis]))
    if after:
        parts.append(relay.strided_slice(x, [0], [after], axes=[axis]))
    return relay.concatenate(parts, axis=axis)


@OPS.imports("relax.memory.view")
def import_view(
    ctx: ImportContext,
    x: Expr,
    *,
    shape: Shape | tuple[()] | None = None,
    dtype: str | tuple[()] | None = None,
    relative_byte_offset: Scalar | tuple[()] | None = None,
) -> Expr:
    """An empty tuple stands for what is left out."""
    if relative_byte_offset and ctx.number(relative_byte_offset):
        raise Unsupported("a part of a tensor's memory has no counterpart")
    if dtype and dtype != ctx.dtype(x):
        x = relay.reinterpret(x, dtype)
    return ctx.reshape(x, shape) if shape else x


@OPS.imports("relax.layout_transform", ignored=("axis_separators", "input_axis_separators"))
def import_layout_transform(
    ctx: ImportContext, x: Expr, *, index_map: AnyValue, pad_value: AnyValue
) -> Expr:
    """Each axis of the result is one of the tensor, or the quotient or the rest of one."""
    shape = ctx.static_shape(x)
    axes = ctx.lengths.read_index_map(index_map)
    factors: dict[int, int] = {}
    for axis, kind, factor in axes:
        if kind and factors.setdefault(axis, factor) != factor:
            raise Unsupported("an axis that is divided twice")
    widths = [(0, -length % factors.get(axis, 1)) for axis, length in enumerate(shape)]
    if any(after for _, after in widths):
        value = 0 if pad_value is None else ctx.number(pad_value)
        x = relay.nn.pad(x, widths, pad_value=ctx.like(x, value))
    places: dict[tuple[int, str], int] = {}
    divided: list[int] = []
    for axis, length in enumerate(ctx.static_shape(x)):
        if axis in factors:
            places[axis, "quotient"], places[axis, "rest"] = len(divided), len(divided) + 1
            divided += [length // factors[axis], factors[axis]]
        else:
            places[axis, ""] = len(divided)
            divided.append(length)
    order = [places[axis, kind] for axis, kind, _ in axes if (axis, kind) in places]
    if sorted(order) != list(range(len(divided))):
        raise Unsupported("an index map that drops or repeats axes")
    return relay.transpose(relay.reshape(x, divided), axes=order)


@OPS.imports(
    "relax.builtin.stop_lift_params",
    "relax.grad.end_checkpoint",
    "relax.grad.no_grad",
    "relax.grad.start_checkpoint",
    "relax.memory.ensure_zero_offset",
)
@OPS.imports("relax.hint_on_device", ignored=("device_type", "index", "memory_scope"))
@OPS.imports("relax.to_vdevice", ignored=("dst_vdevice",))
def import_identity(ctx: ImportContext, x: Expr) -> Expr:
    return x


@OPS.imports("relax.size")
def import_size(ctx: ImportContext, input: Expr) -> Expr:
    shape = ctx.type(input).concrete_shape
    if shape is not None:
        return ctx.const(prod(shape), "int64")
    return relay.ndarray_size(input, dtype="int64")


@OPS.imports("relax.shape_to_tensor")
def import_shape_to_tensor(ctx: ImportContext, *, input: Shape) -> Expr:
    return ctx.shape_tensor(input)


OPS.pairs(
    reads("relax.flatten", "reshape", fixed={"newshape": (-1,)}),
    reads("relax.nn.batch_flatten", "nn.batch_flatten"),
    reads("relax.permute_dims", "transpose", axes=None),
    reads("relax.flip", "reverse", "axis"),
    reads("relax.reverse_sequence", "reverse_sequence", "seq_axis", "batch_axis"),
)
