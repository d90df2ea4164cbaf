"""Entries put between those of an axis, or left out, as by numpy.insert and numpy.delete."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.elementwise.arithmetic import scalar_like
from serde.mxnet.ops.index.lookup import wrapped
from serde.mxnet.ops.layout import converted
from serde.mxnet.ops.shape.joining import with_rank
from serde.mxnet.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import Array, call
from serde.relay.ir.shapes import normalize_axis


def _along(ctx: ImportContext, data: Expr, axis: int | None) -> tuple[Expr, int, int]:
    """Return the data, flat if no axis is named, the axis and its length."""
    if axis is None:
        data = relay.reshape(data, (-1,))
    along = normalize_axis(axis or 0, ctx.type(data).rank)
    return data, along, ctx.static_lengths(data, [along])[0]


def _one_index(index: int, length: int, last: int) -> int:
    """Return an index counted from the start, which is at most `last`."""
    if not -length <= index <= last:
        raise Unsupported(f"index {index} is outside an axis of {length}")
    return index + length if index < 0 else index


@OPS.imports("_npi_delete")
def import_delete(
    ctx: ImportContext,
    arr: Expr,
    obj: Expr | None = None,
    *,
    start: int | None = None,
    stop: int | None = None,
    step: int | None = None,
    int_ind: int | None = None,
    axis: int | None = None,
) -> Expr:
    """Of indices that are computed, negative ones and those behind the end leave nothing out."""
    data, along, length = _along(ctx, arr, axis)
    if obj is not None:
        if ctx.type(obj).size == 0:
            return data
        places = relay.reshape(converted(obj, "int64"), (1, -1))
        steps = relay.Constant(np.arange(length)[:, None])
        hit = relay.any(relay.equal(steps, places), axis=(1,))
        return call("serde.compress", data, relay.logical_not(hit), axis=along)
    if int_ind is None:
        gone = np.arange(length)[slice(start, stop, step)]
    else:
        gone = np.array([_one_index(int_ind, length, length - 1)])
    kept = np.delete(np.arange(length), gone)
    return relay.take(data, relay.Constant(kept), axis=along, mode="fast")


def _insert(
    ctx: ImportContext, data: Expr, values: Expr, axis: int, order: Expr, count: Dim
) -> Expr:
    """Return values and data, one behind the other along an axis, in another order."""
    wanted: list[Dim] = list(ctx.type(data).shape)
    wanted[axis] = count
    new = converted(values, ctx.type(data).dtype)
    spread = new if ctx.type(new).shape == tuple(wanted) else relay.broadcast_to(new, wanted)
    return relay.take(relay.concatenate([spread, data], axis), order, axis=axis, mode="fast")


def _order(places: Array, length: int) -> Expr:
    """Return the order of new entries, each before the old one at its place, and old ones."""
    keys = np.concatenate([2 * places, 2 * np.arange(length) + 1])
    return relay.Constant(np.argsort(keys, kind="stable"))


def _values(ctx: ImportContext, data: Expr, values: Expr | None, val: float | None) -> Expr:
    """Return what is inserted, of the rank of the data."""
    if values is None:
        if val is None:
            raise Unsupported("neither values nor val to insert")
        values = scalar_like(ctx, data, val)
    return with_rank(ctx, values, ctx.type(data).rank)


@OPS.imports("_npi_insert_scalar")
def import_insert_scalar(
    ctx: ImportContext,
    arr: Expr,
    values: Expr | None = None,
    *,
    val: float | None = None,
    start: int | None = None,
    stop: int | None = None,
    step: int | None = None,
    int_ind: int | None = None,
    axis: int | None = None,
) -> Expr:
    """The first axis of the values goes to the axis in question, and they are as many as it has."""
    if int_ind is None:
        raise Unsupported("an insertion without index")
    data, along, length = _along(ctx, arr, axis)
    place = _one_index(int_ind, length, length)
    given = _values(ctx, data, values, val)
    if along:
        rank = ctx.type(data).rank
        order = [*range(1, along + 1), 0, *range(along + 1, rank)]
        given = relay.transpose(given, order)
    (count,) = ctx.static_lengths(given, [along])
    return _insert(ctx, data, given, along, _order(np.full(count, place), length), count)


@OPS.imports("_npi_insert_slice")
def import_insert_slice(
    ctx: ImportContext,
    arr: Expr,
    values: Expr | None = None,
    *,
    val: float | None = None,
    start: int | None = None,
    stop: int | None = None,
    step: int | None = None,
    int_ind: int | None = None,
    axis: int | None = None,
) -> Expr:
    """A slice of one place takes all that the values have there."""
    data, along, length = _along(ctx, arr, axis)
    places = np.arange(*slice(start, stop, step).indices(length))
    given = _values(ctx, data, values, val)
    if len(places) == 1:
        places = np.repeat(places, ctx.static_lengths(given, [along])[0])
    return _insert(ctx, data, given, along, _order(places, length), len(places))


@OPS.imports("_npi_insert_tensor")
def import_insert_tensor(
    ctx: ImportContext,
    arr: Expr,
    *others: Expr,
    val: float | None = None,
    start: int | None = None,
    stop: int | None = None,
    step: int | None = None,
    int_ind: int | None = None,
    axis: int | None = None,
) -> Expr:
    """Values come before the indices, unless they are the attribute ``val``.

    Where each goes is found by sorting the places of the new, doubled, among odd ones of the old.
    """
    *tensors, obj = others
    data, along, length = _along(ctx, arr, axis)
    if ctx.type(obj).rank != 1:
        raise Unsupported(f"an index {ctx.type(obj)!r}: of a scalar MXNet reads past the end")
    (count,) = ctx.static_shape(obj)
    given = _values(ctx, data, tensors[0] if tensors else None, val)
    places = wrapped(obj, length)
    if count == 1:
        (count,) = ctx.static_lengths(given, [along])
        places = relay.broadcast_to(places, [count])
    twice = relay.multiply(places, relay.const(2, "int64"))
    odd = relay.Constant(2 * np.arange(length) + 1)
    order = relay.argsort(relay.concatenate([twice, odd], 0), axis=0, dtype="int64")
    return _insert(ctx, data, given, along, order, count)
