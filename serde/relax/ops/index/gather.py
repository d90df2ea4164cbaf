"""Elements picked by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from serde.errors import Unsupported
from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.shape.reshape import flatten
from serde.relax.ops.table import OPS

__all__ = ["widen_indices"]


def widen_indices(ctx: ExportContext, indices: Value) -> Value:
    """Return indices in numbers that lengths fit into."""
    if ctx.type(indices).dtype in ("int32", "int64"):
        return indices
    if indices.data is not None:
        return ctx.const(indices.data.astype("int64"))
    return ctx.emit("astype", indices, "int64")


@OPS.exports("take")
def export_take(
    ctx: ExportContext,
    data: Value,
    indices: Value,
    *,
    batch_dims: int,
    axis: int | None,
    mode: str,
) -> Value:
    places = widen_indices(ctx, indices)
    mode = "clip" if mode == "fast" else mode  # TVM warns of the other, which reads anything.
    if axis is None:
        return ctx.emit("take", flatten(ctx, data), places, 0, mode)
    along, rank = axis % ctx.type(data).rank, ctx.type(indices).rank
    shared = batch_dims + rank if batch_dims < 0 else batch_dims
    if not shared:
        return ctx.emit("take", data, places, along, mode)
    te, tir = ctx.framework.te, ctx.framework.tir

    def take(x: AnyValue, at: AnyValue) -> AnyValue:
        shape = [*x.shape[:along], *at.shape[shared:], *x.shape[along + 1 :]]
        length = x.shape[along]

        def one(*out: AnyValue) -> AnyValue:
            inner = out[along : along + rank - shared]
            place = at(*out[:shared], *inner).astype("int64")
            if mode == "wrap":
                place = tir.floormod(place, length)
            else:
                place = tir.max(tir.min(place, length - 1), tir.IntImm("int64", 0))
            return x(*out[:along], place, *out[along + rank - shared :])

        return te.compute(shape, one, name="take")

    return ctx.emit_te(take, data, indices)


@OPS.exports("gather")
def export_gather(ctx: ExportContext, data: Value, indices: Value, *, axis: int | None) -> Value:
    """Negative indices count from the end, which Relax's operator does not know."""
    te, tir = ctx.framework.te, ctx.framework.tir
    along = (axis or 0) % ctx.type(data).rank

    def gather(x: AnyValue, at: AnyValue) -> AnyValue:
        length = x.shape[along]

        def one(*out: AnyValue) -> AnyValue:
            place = at(*out).astype("int64")
            place = tir.Select(place < 0, place + length, place)
            return x(*out[:along], place, *out[along + 1 :])

        return te.compute(at.shape, one, name="gather")

    return ctx.emit_te(gather, data, indices)


@OPS.exports("gather_nd")
def export_gather_nd(
    ctx: ExportContext, data: Value, indices: Value, *, batch_dims: int, index_rank: int | None
) -> Value:
    te = ctx.framework.te
    first = ctx.type(indices).shape[0]
    depth = first if isinstance(first, int) else index_rank
    if depth is None:
        raise Unsupported("an index of as many axes as only the model's run shows")
    rank = ctx.type(indices).rank - 1

    def gather_nd(x: AnyValue, at: AnyValue) -> AnyValue:
        shape = [*at.shape[1:], *x.shape[batch_dims + depth :]]

        def one(*out: AnyValue) -> AnyValue:
            place = [at(number, *out[:rank]).astype("int64") for number in range(depth)]
            return x(*out[:batch_dims], *place, *out[rank:])

        return te.compute(shape, one, name="gather_nd")

    return ctx.emit_te(gather_nd, data, indices)


def _are_comparable(ctx: ExportContext, shapes: Sequence[Sequence[AnyValue]], rank: int) -> bool:
    """Whether it is known of every axis which shapes are spread over it."""
    for axis in range(-rank, 0):
        lengths = [own[axis] for own in shapes if len(own) >= -axis]
        first, *others = [each for each in lengths if not isinstance(each, int) or each != 1] or [1]
        if not all(ctx.framework.are_equal(first, each) for each in others):
            return False
    return True


@OPS.exports("adv_index")
def export_adv_index(ctx: ExportContext, inputs: tuple[Value, ...]) -> Value:
    te = ctx.framework.te
    data, *indices = inputs
    rank = max(ctx.type(each).rank for each in indices)
    extents = [ctx.extents(each) for each in indices]
    if not _are_comparable(ctx, extents, rank):
        indices = ctx.spread(indices)
        extents = [ctx.extents(each) for each in indices]
    shape: list[AnyValue] = []
    for axis in range(rank):
        known = [own[axis - rank] for own in extents if axis - rank >= -len(own)]
        spread = [each for each in known if not (isinstance(each, int) and each == 1)]
        shape.append(spread[0] if spread else 1)
    shape += ctx.extents(data)[len(indices) :]

    def adv_index(x: AnyValue, at: Sequence[AnyValue]) -> AnyValue:
        def one(*out: AnyValue) -> AnyValue:
            places = []
            for each in at:
                inner = out[rank - len(each.shape) : rank]
                own = [
                    0 if getattr(n, "value", None) == 1 else place
                    for n, place in zip(each.shape, inner, strict=True)
                ]
                places.append(each(*own).astype("int64"))
            return x(*places, *out[rank:])

        return te.compute(ctx.wide(shape), one, name="adv_index")

    return ctx.emit_te(adv_index, data, list(indices))


@OPS.exports("unravel_index")
def export_unravel_index(ctx: ExportContext, data: Value, shape: Value) -> Value:
    te, tir = ctx.framework.te, ctx.framework.tir
    dtype = ctx.type(data).dtype
    (rank,) = ctx.extents(shape)
    if not isinstance(rank, int):
        raise Unsupported("a number of axes that only the model's run shows")

    def unravel_index(x: AnyValue, lengths: AnyValue) -> AnyValue:
        steps = [lengths[axis].astype("int64") for axis in range(rank)]

        def one(axis: AnyValue, *out: AnyValue) -> AnyValue:
            rest, found = x(*out).astype("int64"), tir.IntImm("int64", 0)
            for number in reversed(range(rank)):
                found = tir.Select(axis == number, tir.floormod(rest, steps[number]), found)
                rest = tir.floordiv(rest, steps[number])
            return found.astype(dtype)

        return te.compute([*ctx.wide([rank]), *x.shape], one, name="unravel_index")

    return ctx.emit_te(unravel_index, data, shape)
