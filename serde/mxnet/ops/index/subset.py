"""Entries of an axis left out, put in between, or without repetition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.index.gather import wrap_indices
from serde.mxnet.ops.index.select import as_mask
from serde.mxnet.ops.shape.reshape import with_rank
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Array, Dim, Expr, TensorType, as_dtype, call, normalize_axis


@OPS.imports("_contrib_boolean_mask")
def import_boolean_mask(ctx: Import, data: Expr, index: Expr, *, axis: int = 0) -> Expr:
    if axis:
        raise Unsupported(f"axis={axis}: MXNet masks axis 0 alone")
    return call("serde.compress", data, as_mask(ctx, index), axis=0)


@OPS.imports("_npx_nonzero")
def import_nonzero(ctx: Import, x: Expr) -> Expr:
    """One row an element; of a scalar as of a vector."""
    data = x if ctx.type(x).rank else relay.reshape(x, (1,))
    return relay.transpose(call("serde.nonzero", data), [1, 0])


@OPS.imports("_npi_unique")
def import_np_unique(
    ctx: Import,
    data: Expr,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Sequence[Expr]:
    given = data if ctx.type(data).rank else relay.reshape(data, (1,))
    found = call("serde.unique", given, axis=axis, sorted=True)
    wanted = (True, return_index, return_inverse, return_counts)
    return [relay.TupleGetItem(found, index) for index, each in enumerate(wanted) if each]


@OPS.exports("argwhere")
def export_argwhere(ctx: Export, condition: Value) -> Value:
    return ctx.emit("Cast", ctx.emit("_npx_nonzero", condition), dtype="int32")


@OPS.exports("unique")
def export_unique(
    ctx: Export, data: Value, *, sorted: bool, return_counts: bool
) -> Value | tuple[Value, ...]:
    (count,) = ctx.static_shape(data, 1)
    if count == 0:
        raise Unsupported("the values of no elements")

    def build(x: Expr) -> Expr:
        groups = _group_values(x, count)
        found = groups if sorted else _order_by_appearance(groups, count)
        return relay.Tuple(list(found if return_counts else found[:4]))

    return ctx.spell_tuple(build, data)


def _group_values(data: Expr, count: int) -> tuple[Expr, ...]:
    """Return for each value in order, zeros behind the last: itself, where it is first, how often.

    Also, for each element, the place of its value, and how many values there are.
    """
    type_ = data.checked_type
    dtype = type_.dtype if isinstance(type_, TensorType) else ""
    order = relay.argsort(data, axis=0, dtype="int64")
    ordered = relay.take(data, order, axis=0, mode="clip")
    changes: list[Expr] = [relay.Constant(np.zeros(1, np.int64))]
    if count > 1:
        before = relay.strided_slice(ordered, [0], [count - 1], [1])
        after = relay.strided_slice(ordered, [1], [count], [1])
        changes.append(relay.cast(relay.not_equal(before, after), "int64"))
    group = relay.cumsum(relay.concatenate(changes, 0), axis=0)
    at, blank = relay.expand_dims(group, 0), relay.const(allocation.zeros(count, np.int32))
    values = relay.scatter_nd(relay.zeros((count,), dtype), at, ordered)
    # Of the indices that meet, the last one written counts, which is to be the first one.
    backwards = relay.reverse(relay.cast(order, "int32"), 0)
    indices = relay.scatter_nd(blank, relay.reverse(at, 1), backwards)
    counts = relay.scatter_nd(blank, at, relay.const(allocation.ones(count, np.int32)), mode="add")
    inverse = relay.scatter_nd(blank, relay.expand_dims(order, 0), relay.cast(group, "int32"))
    last = relay.strided_slice(group, [count - 1], [count], [1])
    number = relay.cast(relay.add(last, relay.const(1, "int64")), "int32")
    return values, indices, inverse, number, counts


def _order_by_appearance(groups: tuple[Expr, ...], count: int) -> tuple[Expr, ...]:
    values, indices, inverse, number, counts = groups
    steps = relay.const(allocation.arange(count, dtype=np.int32))
    behind = relay.const(np.int32(count))
    order = relay.argsort(
        relay.where(relay.less(steps, number), indices, behind), axis=0, dtype="int32"
    )
    moved = [relay.take(x, order, axis=0, mode="clip") for x in (values, indices, counts)]
    rank = relay.argsort(order, axis=0, dtype="int32")
    return moved[0], moved[1], relay.take(rank, inverse, axis=0, mode="clip"), number, moved[2]


@dataclass(frozen=True, kw_only=True)
class Entries:
    """Entries of an axis: an index or a slice; without an axis, of the flat tensor."""

    start: int | None = None
    stop: int | None = None
    step: int | None = None
    int_ind: int | None = None
    axis: int | None = None

    def slice_indices(self, length: int) -> Array:
        """Return the indices in the slice of an axis."""
        return allocation.arange(*slice(self.start, self.stop, self.step).indices(length))


def _flatten_unless_axis(ctx: Import, data: Expr, axis: int | None) -> tuple[Expr, int, int]:
    """Return the data, flat if no axis is named, the axis and its length."""
    if axis is None:
        data = relay.reshape(data, (-1,))
    along = normalize_axis(axis or 0, ctx.type(data).rank)
    return data, along, ctx.static_lengths(data, [along])[0]


def _normalize_index(index: int, length: int, last: int) -> int:
    """Return an index counted from the start, which is at most `last`."""
    if not -length <= index <= last:
        raise Unsupported(f"index {index} is outside an axis of {length}")
    return index + length if index < 0 else index


@OPS.imports("_npi_delete")
def import_delete(ctx: Import, arr: Expr, obj: Expr | None = None, *, at: Entries) -> Expr:
    """Of indices that are computed, negative ones and those behind the end leave nothing out."""
    data, along, length = _flatten_unless_axis(ctx, arr, at.axis)
    if obj is not None:
        if ctx.type(obj).size == 0:
            return data
        indices = relay.reshape(as_dtype(obj, "int64"), (1, -1))
        steps = relay.Constant(allocation.arange(length)[:, None])
        hit = relay.any(relay.equal(steps, indices), axis=(1,))
        return call("serde.compress", data, relay.logical_not(hit), axis=along)
    if at.int_ind is None:
        gone = at.slice_indices(length)
    else:
        gone = np.array([_normalize_index(at.int_ind, length, length - 1)])
    kept = np.delete(allocation.arange(length), gone)
    return relay.take(data, relay.Constant(kept), axis=along, mode="fast")


def _insert(ctx: Import, data: Expr, values: Expr, axis: int, order: Expr, count: Dim) -> Expr:
    """Return values and data, one behind the other along an axis, in another order."""
    wanted: list[Dim] = list(ctx.type(data).shape)
    wanted[axis] = count
    new = as_dtype(values, ctx.type(data).dtype)
    spread = new if ctx.type(new).shape == tuple(wanted) else relay.broadcast_to(new, wanted)
    return relay.take(relay.concatenate([spread, data], axis), order, axis=axis, mode="fast")


def _insertion_order(indices: Array, length: int) -> Expr:
    """Return the order of new entries, each before the old one at its place, and old ones."""
    keys = np.concatenate([2 * indices, 2 * allocation.arange(length) + 1])
    return relay.Constant(np.argsort(keys, kind="stable"))


def _inserted_values(ctx: Import, data: Expr, values: Expr | None, val: float | None) -> Expr:
    """Return what is inserted, of the rank of the data."""
    if values is None:
        if val is None:
            raise Unsupported("neither values nor val to insert")
        values = scalar_like(ctx, data, val)
    return with_rank(ctx, values, ctx.type(data).rank)


@OPS.imports("_npi_insert_scalar")
def import_insert_scalar(
    ctx: Import, arr: Expr, values: Expr | None = None, *, val: float | None = None, at: Entries
) -> Expr:
    """The first axis of the values goes to the axis in question, and they are as many as it has."""
    if at.int_ind is None:
        raise Unsupported("an insertion without index")
    data, along, length = _flatten_unless_axis(ctx, arr, at.axis)
    place = _normalize_index(at.int_ind, length, length)
    given = _inserted_values(ctx, data, values, val)
    if along:
        rank = ctx.type(data).rank
        order = [*range(1, along + 1), 0, *range(along + 1, rank)]
        given = relay.transpose(given, order)
    (count,) = ctx.static_lengths(given, [along])
    return _insert(
        ctx, data, given, along, _insertion_order(allocation.full(count, place), length), count
    )


@OPS.imports("_npi_insert_slice")
def import_insert_slice(
    ctx: Import, arr: Expr, values: Expr | None = None, *, val: float | None = None, at: Entries
) -> Expr:
    """A slice of one place takes all that the values have there."""
    data, along, length = _flatten_unless_axis(ctx, arr, at.axis)
    indices = at.slice_indices(length)
    given = _inserted_values(ctx, data, values, val)
    if len(indices) == 1:
        indices = allocation.repeat(indices, ctx.static_lengths(given, [along])[0])
    return _insert(ctx, data, given, along, _insertion_order(indices, length), len(indices))


@OPS.imports("_npi_insert_tensor")
def import_insert_tensor(
    ctx: Import, arr: Expr, *others: Expr, val: float | None = None, at: Entries
) -> Expr:
    """Values come before the indices, unless they are the attribute ``val``.

    Where each goes is found by sorting the indices of the new, doubled, among odd ones of the old.
    """
    if not others:
        raise Unsupported("an insertion without places")
    *tensors, obj = others
    data, along, length = _flatten_unless_axis(ctx, arr, at.axis)
    if ctx.type(obj).rank != 1:
        raise Unsupported(f"an index {ctx.type(obj)!r}: of a scalar MXNet reads past the end")
    (count,) = ctx.static_shape(obj)
    given = _inserted_values(ctx, data, tensors[0] if tensors else None, val)
    indices = wrap_indices(obj, length)
    if count == 1:
        (count,) = ctx.static_lengths(given, [along])
        indices = relay.broadcast_to(indices, [count])
    twice = relay.multiply(indices, relay.const(2, "int64"))
    odd = relay.Constant(2 * allocation.arange(length) + 1)
    order = relay.argsort(relay.concatenate([twice, odd], 0), axis=0, dtype="int64")
    return _insert(ctx, data, given, along, order, count)
