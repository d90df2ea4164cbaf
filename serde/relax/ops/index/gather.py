"""Entries picked by indices, by conditions, as masks and as codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any as AnyValue, Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.ops.shape.dynamic import compute_lengths
from serde.relax.ops.shape.reshape import flatten
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, Tuple, call, is_float, normalize_axis
from serde.walk.pairs import reads

__all__ = ["read_scalar", "widen_indices"]


def widen_indices(ctx: Export, indices: Value) -> Value:
    """Return indices in numbers that lengths fit into."""
    if ctx.type(indices).dtype in ("int32", "int64"):
        return indices
    if indices.data is not None:
        return ctx.const(indices.data.astype("int64"))
    return ctx.emit("astype", indices, "int64")


@OPS.exports("take")
def export_take(
    ctx: Export, data: Value, indices: Value, *, batch_dims: int, axis: int | None, mode: str
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


@OPS.imports("relax.take")
def import_take(
    ctx: Import,
    x: Expr,
    indices: Expr,
    *,
    axis: int | None,
    mode: Literal["fast", "clip", "wrap", "nan"],
) -> Expr:
    """In mode "nan" what is out of range is NaN."""
    if mode != "nan":
        return relay.take(x, indices, axis=axis, mode=mode)
    if not is_float(ctx.dtype(x)):
        raise Unsupported(f"mode='nan' of {ctx.dtype(x)} has no counterpart")
    if axis is None:
        x, axis = relay.reshape(x, (-1,)), 0
    axis = normalize_axis(axis, ctx.rank(x))
    (length,) = ctx.static_lengths(x, [axis])
    places = relay.cast(indices, "int64")
    inside = relay.logical_and(
        relay.greater_equal(places, ctx.const(0, "int64")),
        relay.less(places, ctx.const(length, "int64")),
    )
    for _ in range(ctx.rank(x) - axis - 1):
        inside = relay.expand_dims(inside, ctx.rank(inside))
    found = relay.take(x, indices, axis=axis, mode="clip")
    return relay.where(inside, found, ctx.like(x, float("nan")))


@OPS.exports("gather")
def export_gather(ctx: Export, data: Value, indices: Value, *, axis: int | None) -> Value:
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
    ctx: Export, data: Value, indices: Value, *, batch_dims: int, index_rank: int | None
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


@OPS.imports("relax.gather_nd")
def import_gather_nd(ctx: Import, data: Expr, indices: Expr, *, batch_dims: int) -> Expr:
    """An index lies along the last axis, in Relay along the first."""
    rank = ctx.rank(indices)
    first = relay.transpose(indices, axes=[rank - 1, *range(rank - 1)])
    return relay.gather_nd(data, first, batch_dims=batch_dims)


@OPS.imports("relax.index_tensor")
def import_index_tensor(ctx: Import, data: Expr, indices: Expr) -> Expr:
    return relay.adv_index(Tuple([data, *ctx.fields(indices)]))


OPS.pairs(reads("relax.gather_elements", "gather", "axis"))


@OPS.exports("argwhere")
def export_argwhere(ctx: Export, condition: Value) -> Value:
    """The elements are counted, then written in order."""
    rank = ctx.type(condition).rank
    if 0 in ctx.extents(condition):
        return ctx.emit("zeros", ctx.shape_expr((0, rank)), "int32")
    given = condition if rank else ctx.emit("reshape", condition, ctx.shape_expr((1,)))
    (length,) = ctx.read_shape(ctx.emit_te(_make_search(ctx, None), given))
    if not rank:
        shape = ctx.framework.relax.ShapeExpr(ctx.wide([length, 0]))
        return ctx.emit("zeros", shape, "int32")
    return ctx.emit_te(_make_search(ctx, length), condition)


def _make_search(ctx: Export, count: AnyValue) -> Callable[[AnyValue], AnyValue]:
    """Return what counts the elements that are not zero or, when there are `count`, finds them.

    A loop does both: of no elements, reductions of tensor expressions give any number.
    """
    framework = ctx.framework
    tir, statements = framework.tir, framework.statements

    def argwhere(x: AnyValue) -> AnyValue:
        dtype, rank = str(x.dtype), len(x.shape)
        size = prod(x.shape, start=tir.IntImm("int64", 1))

        def write(given: AnyValue, out: AnyValue) -> None:
            number = framework.cell("int64") if count is not None else out
            number[0] = tir.IntImm("int64", 0)
            with statements.serial(0, size) as place:
                one = given[place]
                hit = one if dtype == "bool" else one != tir.const(0, dtype)
                with statements.If(hit), statements.Then():
                    if count is not None:
                        _write_place(tir, out, number[0], place, x.shape)
                    number[0] = number[0] + tir.IntImm("int64", 1)

        shape = ctx.wide([1] if count is None else [count, rank])
        kind = "int64" if count is None else "int32"
        return framework.extern("argwhere", [x], [shape], [kind], write)[0]

    return argwhere


def _write_place(
    tir: AnyValue, out: AnyValue, row: AnyValue, place: AnyValue, shape: Sequence[AnyValue]
) -> None:
    """Write the coordinates of a place in row-major order into a row."""
    rank = len(shape)
    for axis in reversed(range(rank)):
        out[row * rank + axis] = tir.floormod(place, shape[axis]).astype("int32")
        place = tir.floordiv(place, shape[axis])


@OPS.imports("relax.nonzero")
def import_nonzero(ctx: Import, x: Expr) -> Expr:
    return relay.cast(call("serde.nonzero", x), "int64")


def read_scalar(ctx: Export, x: Value) -> AnyValue:
    """Return the integer that a scalar, or a vector of one, holds, for an argument."""
    if x.data is not None:
        return int(x.data.item())
    rank = ctx.type(x).rank
    (found,) = compute_lengths(ctx, 1, lambda given: [given[0] if rank else given()], x)
    return found
