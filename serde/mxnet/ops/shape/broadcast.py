"""Repeated elements, and sums that undo broadcasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.axis_groups import split_axes
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Any, Dim, Expr, TensorType, call, normalize_axes, normalize_axis


@OPS.imports("broadcast_to")
def import_broadcast_to(ctx: Import, data: Expr, *, shape: tuple[int, ...]) -> Expr:
    """A 0 keeps the length there is."""
    lengths = ctx.type(data).shape
    if len(shape) != len(lengths):
        raise Unsupported(f"shape: expected {len(lengths)} values, found {len(shape)}")
    target = [own if wanted == 0 else wanted for own, wanted in zip(lengths, shape, strict=True)]
    return relay.broadcast_to(data, target)


@OPS.imports("_npi_broadcast_to")
def import_np_broadcast_to(ctx: Import, array: Expr, *, shape: tuple[int, ...] | int = ()) -> Expr:
    """-2 keeps the length there is, counted from the last axis."""
    wanted = (shape,) if isinstance(shape, int) else shape
    own = ctx.type(array).shape
    missing = len(wanted) - len(own)
    if -2 in wanted[: max(missing, 0)]:
        raise Unsupported(f"-2 in shape={wanted} stands for an axis that {own} has not")
    target = [
        own[index - missing] if length == -2 else length for index, length in enumerate(wanted)
    ]
    return relay.broadcast_to(array, target)


@OPS.exports("broadcast_to", ignored=("shape", "dtype"))
def export_broadcast_to(ctx: Export, data: Value) -> Value:
    """A 0 keeps the length there is, but to NumPy's operator."""
    wanted = ctx.result_type().shape
    if ctx.result_type().size == 0:
        lengths = ctx.result_type().concrete_shape
        if lengths is None:
            raise Unsupported(f"a shape with open lengths and one of 0: {ctx.result_type()!r}")
        return ctx.emit("_npi_broadcast_to", data, shape=lengths)
    data, parts = _prepare(ctx, data, wanted)
    for part in parts:
        fixed = [axis for axis in part if isinstance(wanted[axis], int)]
        if fixed:
            codes = [wanted[axis] if axis in fixed else 0 for axis in range(len(wanted))]
            step = ctx.emit_bytes("broadcast_to", data, shape=codes)
            data = replace(step, type=_stretched(ctx.type(data), wanted, fixed))
        for axis in set(part).difference(fixed):
            type_ = ctx.type(data)
            like = ctx.cast(ctx.length(wanted[axis]), type_.dtype)
            step = ctx.emit_bytes("broadcast_like", data, like, lhs_axes=(axis,), rhs_axes=(0,))
            data = replace(step, type=_stretched(type_, wanted, (axis,)))
    return data


def _prepare(
    ctx: Export, data: Value, wanted: Sequence[Dim]
) -> tuple[Value, list[tuple[int, ...]]]:
    """Return `data` with as many axes as are wanted, and those to broadcast, in one step each."""
    have: tuple[Dim, ...] = (*[1] * (len(wanted) - ctx.type(data).rank), *ctx.type(data).shape)
    kept = [
        own == length or (isinstance(own, int) and own != 1)
        for own, length in zip(have, wanted, strict=True)
    ]
    changed = [axis for axis, same in enumerate(kept) if not same]
    return ctx.reshape(data, have), split_axes(changed, len(have)) if changed else []


def _stretched(type_: TensorType, wanted: Sequence[Dim], axes: Sequence[int]) -> TensorType:
    shape = [wanted[axis] if axis in axes else own for axis, own in enumerate(type_.shape)]
    return TensorType(shape, type_.dtype)


@OPS.imports("broadcast_axis")
def import_broadcast_axis(
    ctx: Import, data: Expr, *, axis: tuple[int, ...] = (), size: tuple[int, ...] = ()
) -> Expr:
    """An axis that is not named may have any length, even one that is not known."""
    if len(axis) != len(size):
        raise Unsupported(f"{len(size)} lengths for axes {axis}")
    target = list(ctx.type(data).shape)
    repeats = [1] * len(target)
    for each, length in zip(normalize_axes(axis, len(target)), size, strict=True):
        target[each] = repeats[each] = length
    if all(isinstance(length, int) for length in target):
        return relay.broadcast_to(data, target)
    return relay.tile(data, repeats)


@OPS.imports("broadcast_like")
def import_broadcast_like(
    ctx: Import,
    lhs: Expr,
    rhs: Expr,
    *,
    lhs_axes: tuple[int, ...] | None = None,
    rhs_axes: tuple[int, ...] | None = None,
) -> Expr:
    if lhs_axes is None or rhs_axes is None:
        return relay.broadcast_to_like(lhs, rhs)
    if len(lhs_axes) != len(rhs_axes):
        raise Unsupported(f"axes {lhs_axes} like {rhs_axes}")
    target = list(ctx.type(lhs).shape)
    sources = [*range(len(target))]
    for left, right in zip(lhs_axes, rhs_axes, strict=True):
        axis = normalize_axis(left, len(target))
        target[axis] = ctx.dim_at(rhs, right)
        sources[axis] = len(target) + normalize_axis(right, ctx.type(rhs).rank)
    if not any(isinstance(dim, Any) for dim in target):
        return relay.broadcast_to(lhs, target)
    lengths = relay.concatenate([relay.shape_of(each, "int64") for each in (lhs, rhs)], 0)
    return call("dyn.broadcast_to", lhs, relay.take(lengths, relay.const(sources, "int64"), axis=0))


@OPS.exports("broadcast_to_like")
def export_broadcast_to_like(ctx: Export, data: Value, broadcast_type: Value) -> Value:
    wanted = ctx.type(broadcast_type).shape
    data, parts = _prepare(ctx, data, wanted)
    if len(parts) < 2:
        return ctx.emit_bytes("broadcast_like", data, broadcast_type)
    for part in parts:
        step = ctx.emit_bytes("broadcast_like", data, broadcast_type, lhs_axes=part, rhs_axes=part)
        data = replace(step, type=_stretched(ctx.type(data), wanted, part))
    return data


@OPS.imports("tile")
def import_tile(ctx: Import, data: Expr, *, reps: tuple[int, ...]) -> Expr:
    return relay.tile(data, reps)


@OPS.exports("tile")
def export_tile(ctx: Export, data: Value, *, reps: tuple[int, ...]) -> Value:
    """MXNet broadcasts an axis in front of each, of which it takes no more than three at once."""
    repeated = [index for index, count in enumerate(reps) if count != 1]
    if len(repeated) < 3:
        return ctx.emit_bytes("tile", data, reps=reps)
    first = [count if index in repeated[:2] else 1 for index, count in enumerate(reps)]
    later = [1 if index in repeated[:2] else count for index, count in enumerate(reps)]
    return ctx.spell(lambda x: relay.tile(relay.tile(x, first), later), data)


@OPS.imports("repeat")
def import_repeat(ctx: Import, data: Expr, *, repeats: int, axis: int | None = None) -> Expr:
    """What is repeated no times is an empty vector, of whatever rank it was."""
    if repeats == 0:
        return relay.zeros([0], ctx.type(data).dtype)
    if axis is None:
        return relay.repeat(relay.reshape(data, (-1,)), repeats, 0)
    return relay.repeat(data, repeats, axis)


@OPS.exports("repeat")
def export_repeat(ctx: Export, data: Value, *, repeats: int, axis: int | None) -> Value:
    return ctx.emit_bytes("repeat", data, repeats=repeats, axis=axis)
