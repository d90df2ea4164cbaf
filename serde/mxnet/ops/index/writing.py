"""Writing at places that are computed.

Where several updates meet at a place, MXNet's ``scatter_nd`` leaves open which one counts. So they
are sorted by place first, combined with those before them at the same place, and only the last of
each place is written.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.elementwise import scalar_like
from serde.mxnet.ops.index.lookup import wrapped
from serde.mxnet.ops.index.selection import Bounds, as_index, slice_bounds
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.types import TensorType

FAR = 2**31 - 1
"""More than an axis has places."""

Mode = Literal["update", "add", "mul", "mean", "min", "max"]

COMBINE: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": relay.add,
    "mean": relay.add,
    "mul": relay.multiply,
    "min": relay.minimum,
    "max": relay.maximum,
}


def _before(data: Expr, places: int, fill: float) -> Expr:
    """Return the rows `places` earlier, the first ones filled."""
    type_ = data.checked_type
    if not isinstance(type_, TensorType):
        raise Unsupported(f"expected a tensor, found {type_!r}")
    first = relay.full(relay.const(fill, type_.dtype), [places, *type_.shape[1:]], type_.dtype)
    return relay.concatenate([first, relay.strided_slice(data, [0], [-places], [1], axes=[0])], 0)


def _totals(rows: Expr, place: Expr, count: int, mode: Mode) -> Expr:
    """Return each row combined with the rows before it that have the same place."""
    reach = 1
    while reach < count and mode in COMBINE:
        same = relay.expand_dims(relay.equal(place, _before(place, reach, -1)), 1)
        rows = relay.where(same, COMBINE[mode](_before(rows, reach, 0), rows), rows)
        reach *= 2
    return rows


def _ordered(places: Expr, updates: Expr, size: int, count: int, mode: Mode) -> Expr:
    """Return where the rows go, the rows, and how many each stands for.

    A row that is not the last of its place goes behind the end.
    """
    number = relay.Constant(np.arange(count))
    factor = relay.const(count, "int64")
    keys = relay.sort(relay.add(relay.multiply(places, factor), number), 0)
    place = relay.divide(keys, factor)
    origin = relay.subtract(keys, relay.multiply(place, factor))
    rows = _totals(relay.take(updates, origin, axis=0, mode="clip"), place, count, mode)
    ones = relay.const(np.ones((count, 1), np.int32))
    numbers = _totals(ones, place, count, "add") if mode == "mean" else ones
    following: list[Expr] = [relay.Constant(np.array([-1]))]
    if count > 1:
        following.insert(0, relay.strided_slice(place, [1], [count], [1]))
    is_last = relay.not_equal(place, relay.concatenate(following, 0))
    target = relay.where(is_last, place, relay.const(size, "int64"))
    return relay.Tuple([relay.expand_dims(target, 0), rows, numbers])


def _write(
    ctx: ExportContext, data: Value, places: Value, updates: Value, size: int, mode: Mode
) -> Value:
    """Return `data` of `size` rows with `updates` at rows; places are of int64 and one axis."""
    count = ctx.static_shape(places)[0]
    type_ = ctx.type(data)
    width = ctx.static_shape(data)[1]
    parts = ctx.spell_tuple(lambda at, rows: _ordered(at, rows, size, count, mode), places, updates)
    if isinstance(parts, Value):
        raise Unsupported("no updates")
    target, rows, numbers = parts

    def scattered(x: Value, columns: int) -> Value:
        wide = ctx.cast(x, "uint8") if ctx.type(x).dtype == "bool" else x
        whole = ctx.typed(
            ctx.emit("scatter_nd", wide, target, shape=(size + 1, columns)),
            TensorType((size + 1, columns), ctx.type(wide).dtype),
        )
        return ctx.spell(
            lambda y: relay.cast(
                relay.strided_slice(y, [0], [size], [1], axes=[0]), ctx.type(x).dtype
            ),
            whole,
        )

    def spelled(old: Expr, new: Expr, hits: Expr) -> Expr:
        value = COMBINE[mode](old, new) if mode in COMBINE else new
        if mode == "mean":
            total = relay.add(hits, relay.const(1, "int32"))
            value = relay.divide(value, relay.cast(total, type_.dtype))
        return relay.where(relay.greater(hits, relay.const(0, "int32")), value, old)

    return ctx.spell(spelled, data, scattered(rows, width), scattered(numbers, 1))


@OPS.exports("scatter_elements")
def export_scatter_elements(
    ctx: ExportContext, data: Value, indices: Value, updates: Value, *, axis: int, reduction: Mode
) -> Value:
    """Each element is a row of its own."""
    shape, window = ctx.static_shape(data), ctx.static_shape(indices)
    if 0 in window:
        return data
    along = axis % len(shape)
    steps = [prod(shape[i + 1 :]) for i in range(len(shape))]
    grids = np.indices(window)
    fixed = np.zeros(window, np.int64)
    for i, grid in enumerate(grids):
        if i != along:
            fixed += grid * steps[i]

    def places(at: Expr) -> Expr:
        chosen = relay.cast(wrapped(at, shape[along]), "int64")
        flat = relay.add(
            relay.multiply(chosen, relay.const(steps[along], "int64")), relay.Constant(fixed)
        )
        return relay.reshape(flat, (-1,))

    size = prod(shape)
    result = _write(
        ctx,
        ctx.reshape(data, (size, 1)),
        ctx.spell(places, indices),
        ctx.reshape(updates, (prod(window), 1)),
        size,
        reduction,
    )
    return ctx.reshape(result, shape)


@OPS.exports("scatter_nd")
def export_scatter_nd(
    ctx: ExportContext, data: Value, indices: Value, updates: Value, *, mode: Mode
) -> Value:
    shape, window = ctx.static_shape(data), ctx.static_shape(indices)
    if 0 in window:
        return data
    depth, count = window[0], prod(window[1:])
    steps = np.array([prod(shape[i + 1 : depth]) for i in range(depth)], np.int64)

    def places(at: Expr) -> Expr:
        rows = relay.reshape(relay.cast(at, "int64"), (depth, count))
        return relay.sum(relay.multiply(rows, relay.Constant(steps[:, None])), axis=(0,))

    size, width = prod(shape[:depth]), prod(shape[depth:])
    result = _write(
        ctx,
        ctx.reshape(data, (size, width)),
        ctx.spell(places, indices),
        ctx.reshape(updates, (count, width)),
        size,
        mode,
    )
    return ctx.reshape(result, shape)


@OPS.exports("sparse_to_dense")
def export_sparse_to_dense(
    ctx: ExportContext,
    sparse_indices: Value,
    sparse_values: Value,
    default_value: Value,
    *,
    output_shape: tuple[int, ...],
) -> Value:
    shape = ctx.result_type().concrete_shape
    if shape is None:
        raise Unsupported(f"needs a fixed shape, found {ctx.result_type()!r}")
    dtype = ctx.result_type().dtype
    count = prod(ctx.static_shape(sparse_indices)) // len(shape)

    def spelled(at: Expr, values: Expr, default: Expr) -> Expr:
        places = relay.transpose(relay.reshape(at, (count, len(shape))), [1, 0])
        blank = relay.full(relay.cast(default, dtype), shape, dtype)
        return relay.scatter_nd(blank, places, relay.broadcast_to(values, (count,)))

    return ctx.spell(spelled, sparse_indices, sparse_values, default_value)


@OPS.exports("strided_set")
def export_strided_set(
    ctx: ExportContext, data: Value, v: Value, begin: Value, end: Value, strides: Value
) -> Value:
    starts: list[int | None] = []
    stops: list[int | None] = []
    steps = [int(step) for step in ctx.constant(strides)]
    bounds = zip(ctx.constant(begin), ctx.constant(end), steps, strict=False)
    lengths = ctx.static_lengths(data, range(len(steps)))
    region = list(ctx.type(data).shape)
    for axis, (first, last, step) in enumerate(bounds):
        region[axis] = len(range(*slice(int(first), int(last), step).indices(lengths[axis])))
        start, stop = slice_bounds(lengths[axis], int(first), int(last), step)
        starts.append(start)
        stops.append(stop)
    if 0 in region:
        return data
    block = ctx.spell(lambda x: relay.broadcast_to(x, region), v)
    return ctx.emit_bytes("_slice_assign", data, block, begin=starts, end=stops, step=steps)


def _ranges(
    ctx: ImportContext, data: Expr, begin: Bounds, end: Bounds, step: Bounds
) -> list[range | None]:
    """Return the places along each leading axis, None for all of an axis."""
    if len(end) != len(begin) or len(step) not in (0, len(begin)):
        raise Unsupported("begin, end and step differ in length")
    found: list[range | None] = []
    for axis, bounds in enumerate(zip(begin, end, step or [None] * len(begin), strict=True)):
        if bounds[:2] == (None, None) and bounds[2] in (None, 1):
            found.append(None)
            continue
        (length,) = ctx.static_lengths(data, [axis])
        found.append(range(*slice(*bounds).indices(length)))
    return found


@OPS.imports("_slice_assign")
def import_slice_assign(
    ctx: ImportContext, lhs: Expr, rhs: Expr, *, begin: Bounds, end: Bounds, step: Bounds = ()
) -> Expr:
    places = _ranges(ctx, lhs, begin, end, step)
    if any(each is not None and not each for each in places):
        return lhs
    whole = range(FAR)
    cuts = [whole if each is None else each for each in places]
    # An end in front of the first element is not -1, which would be the last element.
    stops = [-FAR if each.stop < 0 else each.stop for each in cuts]
    return relay.strided_set(
        lhs, rhs, [each.start for each in cuts], stops, [each.step for each in cuts]
    )


@OPS.imports("_slice_assign_scalar")
def import_slice_assign_scalar(
    ctx: ImportContext,
    data: Expr,
    *,
    scalar: float = 0.0,
    begin: Bounds,
    end: Bounds,
    step: Bounds = (),
) -> Expr:
    """A mask over the axes that are cut, which broadcasts over the others."""
    places = _ranges(ctx, data, begin, end, step)
    shape = [1] * ctx.type(data).rank
    for axis, each in enumerate(places):
        if each is not None:
            (shape[axis],) = ctx.static_lengths(data, [axis])
    mask = np.zeros(shape, np.bool_)
    mask[np.ix_(*(range(1) if each is None else each for each in places))] = True
    return relay.where(relay.Constant(mask), scalar_like(ctx, data, scalar), data)


@OPS.imports("scatter_nd")
def import_scatter_nd(
    ctx: ImportContext, data: Expr, indices: Expr, *, shape: tuple[int, ...]
) -> Expr:
    blank = relay.zeros(list(shape), ctx.type(data).dtype)
    return relay.scatter_nd(blank, as_index(ctx, indices), data)


@OPS.imports("_scatter_set_nd")
def import_scatter_set_nd(
    ctx: ImportContext, lhs: Expr, rhs: Expr, indices: Expr, *, shape: tuple[int, ...]
) -> Expr:
    """MXNet writes into the first tensor, whose shape the attribute repeats."""
    return relay.scatter_nd(lhs, as_index(ctx, indices), rhs)


@OPS.imports("_contrib_index_copy")
def import_index_copy(
    ctx: ImportContext, old_tensor: Expr, index_vector: Expr, new_tensor: Expr
) -> Expr:
    rows = relay.expand_dims(as_index(ctx, index_vector), 0)
    return relay.scatter_nd(old_tensor, rows, new_tensor)
