"""Elements written at indices, and counted by value.

Where several updates meet at an index, MXNet's ``scatter_nd`` leaves open which one counts. So they
are sorted by index first, combined with those before them at the same index, and only the last of
each index is written.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.mxnet.ops.index.gather import as_index, wrap_indices
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TensorType, as_dtype

Mode = Literal["update", "add", "mul", "mean", "min", "max"]


COMBINE: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": relay.add,
    "mean": relay.add,
    "mul": relay.multiply,
    "min": relay.minimum,
    "max": relay.maximum,
}


def _shift_rows(data: Expr, offset: int, fill: float) -> Expr:
    """Return the rows `offset` earlier, the first ones filled."""
    type_ = data.checked_type
    if not isinstance(type_, TensorType):
        raise Unsupported(f"expected a tensor, found {type_!r}")
    first = relay.full(relay.const(fill, type_.dtype), [offset, *type_.shape[1:]], type_.dtype)
    return relay.concatenate([first, relay.strided_slice(data, [0], [-offset], [1], axes=[0])], 0)


def _totals(rows: Expr, place: Expr, count: int, mode: Mode) -> Expr:
    """Return each row combined with the rows before it that have the same place."""
    reach = 1
    while reach < count and mode in COMBINE:
        same = relay.expand_dims(relay.equal(place, _shift_rows(place, reach, -1)), 1)
        rows = relay.where(same, COMBINE[mode](_shift_rows(rows, reach, 0), rows), rows)
        reach *= 2
    return rows


def _sort_updates(indices: Expr, updates: Expr, size: int, count: int, mode: Mode) -> Expr:
    """Return where the rows go, the rows, and how many each stands for.

    A row that is not the last of its place goes behind the end.
    """
    number = relay.Constant(allocation.arange(count))
    factor = relay.const(count, "int64")
    keys = relay.sort(relay.add(relay.multiply(indices, factor), number), 0)
    place = relay.divide(keys, factor)
    origin = relay.subtract(keys, relay.multiply(place, factor))
    rows = _totals(relay.take(updates, origin, axis=0, mode="clip"), place, count, mode)
    ones = relay.const(allocation.ones((count, 1), np.int32))
    numbers = _totals(ones, place, count, "add") if mode == "mean" else ones
    following: list[Expr] = [relay.Constant(np.array([-1]))]
    if count > 1:
        following.insert(0, relay.strided_slice(place, [1], [count], [1]))
    is_last = relay.not_equal(place, relay.concatenate(following, 0))
    target = relay.where(is_last, place, relay.const(size, "int64"))
    return relay.Tuple([relay.expand_dims(target, 0), rows, numbers])


def _write(
    ctx: Export, data: Value, indices: Value, updates: Value, size: int, mode: Mode
) -> Value:
    """Return `data` of `size` rows with `updates` at rows; indices are of int64 and one axis."""
    count = ctx.static_shape(indices)[0]
    type_ = ctx.type(data)
    width = ctx.static_shape(data)[1]
    parts = ctx.spell_tuple(
        lambda at, rows: _sort_updates(at, rows, size, count, mode), indices, updates
    )
    if isinstance(parts, Value):
        raise Unsupported("no updates")
    target, rows, numbers = parts

    def scatter(x: Value, columns: int) -> Value:
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

    def build(old: Expr, new: Expr, hits: Expr) -> Expr:
        value = COMBINE[mode](old, new) if mode in COMBINE else new
        if mode == "mean":
            total = relay.add(hits, relay.const(1, "int32"))
            value = relay.divide(value, relay.cast(total, type_.dtype))
        return relay.where(relay.greater(hits, relay.const(0, "int32")), value, old)

    return ctx.spell(build, data, scatter(rows, width), scatter(numbers, 1))


@OPS.exports("scatter_elements")
def export_scatter_elements(
    ctx: Export, data: Value, indices: Value, updates: Value, *, axis: int, reduction: Mode
) -> Value:
    """Each element is a row of its own."""
    shape, window = ctx.static_shape(data), ctx.static_shape(indices)
    if 0 in window:
        return data
    along = axis % len(shape)
    steps = [prod(shape[i + 1 :]) for i in range(len(shape))]
    grids = allocation.indices(window)
    fixed = allocation.zeros(window, np.int64)
    for i, grid in enumerate(grids):
        if i != along:
            fixed += grid * steps[i]

    def flatten(at: Expr) -> Expr:
        chosen = relay.cast(wrap_indices(at, shape[along]), "int64")
        flat = relay.add(
            relay.multiply(chosen, relay.const(steps[along], "int64")), relay.Constant(fixed)
        )
        return relay.reshape(flat, (-1,))

    size = prod(shape)
    result = _write(
        ctx,
        ctx.reshape(data, (size, 1)),
        ctx.spell(flatten, indices),
        ctx.reshape(updates, (prod(window), 1)),
        size,
        reduction,
    )
    return ctx.reshape(result, shape)


@OPS.imports("scatter_nd")
def import_scatter_nd(ctx: Import, data: Expr, indices: Expr, *, shape: tuple[int, ...]) -> Expr:
    blank = relay.zeros(list(shape), ctx.type(data).dtype)
    return relay.scatter_nd(blank, as_index(ctx, indices), data)


@OPS.imports("_scatter_set_nd")
def import_scatter_set_nd(
    ctx: Import, lhs: Expr, rhs: Expr, indices: Expr, *, shape: tuple[int, ...]
) -> Expr:
    """MXNet writes into the first tensor, whose shape the attribute repeats."""
    return relay.scatter_nd(lhs, as_index(ctx, indices), rhs)


@OPS.exports("scatter_nd")
def export_scatter_nd(
    ctx: Export, data: Value, indices: Value, updates: Value, *, mode: Mode
) -> Value:
    """The leading axes are written as one: ``row = sum(index[i] * prod(shape[i + 1 :]))``."""
    shape, window = ctx.static_shape(data), ctx.static_shape(indices)
    if 0 in window:
        return data
    depth, count = window[0], prod(window[1:])
    steps = np.array([prod(shape[i + 1 : depth]) for i in range(depth)], np.int64)

    def flatten(at: Expr) -> Expr:
        rows = relay.reshape(relay.cast(at, "int64"), (depth, count))
        return relay.sum(relay.multiply(rows, relay.Constant(steps[:, None])), axis=(0,))

    size, width = prod(shape[:depth]), prod(shape[depth:])
    result = _write(
        ctx,
        ctx.reshape(data, (size, width)),
        ctx.spell(flatten, indices),
        ctx.reshape(updates, (count, width)),
        size,
        mode,
    )
    return ctx.reshape(result, shape)


@OPS.imports("_contrib_index_copy")
def import_index_copy(ctx: Import, old_tensor: Expr, index_vector: Expr, new_tensor: Expr) -> Expr:
    rows = relay.expand_dims(as_index(ctx, index_vector), 0)
    return relay.scatter_nd(old_tensor, rows, new_tensor)


@OPS.imports("fill_element_0index")
def import_fill_element(ctx: Import, lhs: Expr, mhs: Expr, rhs: Expr) -> Expr:
    """An index outside its row leaves the row as it is."""
    (length,) = ctx.static_lengths(lhs, [1])
    columns = relay.const(allocation.arange(length, dtype=np.int32))
    indices = as_dtype(rhs, "int32")
    marked = relay.equal(columns, relay.expand_dims(indices, 1))
    return relay.where(marked, relay.expand_dims(mhs, 1), lhs)


@OPS.imports("_histogram")
def import_histogram(
    ctx: Import,
    data: Expr,
    bins: Expr | None = None,
    *,
    bin_cnt: int | None = None,
    range: tuple[float, float] | None = None,
) -> list[Expr]:
    """Bins are half open, the last one is closed."""
    flat = relay.reshape(data, (-1,))
    if bins is not None:
        return [_count_bins(flat, bins), bins]
    if bin_cnt is None or range is None:
        raise Unsupported("neither bounds nor both a number of bins and a range")
    low, high = range
    steps = allocation.arange(bin_cnt + 1)
    bounds = (high * steps + low * (bin_cnt - steps)) / bin_cnt
    edges = relay.Constant(bounds.astype(numpy_dtype(ctx.type(data).dtype)))
    return [_counted_evenly(flat, edges, bin_cnt, low, high), edges]


def _count_bins(flat: Expr, bins: Expr) -> Expr:
    """The elements from a bound on, less those from the next on; none are above the last bound."""
    lows = relay.strided_slice(bins, [0], [-1], [1])
    last = relay.strided_slice(bins, [-1], [2**31 - 1], [1])
    column = relay.expand_dims(flat, 1)
    above = relay.logical_and(relay.greater_equal(column, lows), relay.less_equal(column, last))
    number = relay.sum(relay.cast(above, "int64"), axis=(0,))
    following = relay.strided_slice(number, [1], [2**31 - 1], [1])
    return relay.subtract(number, relay.nn.pad(following, [(0, 1)], relay.const(0, "int64")))


def _counted_evenly(flat: Expr, edges: Expr, count: int, low: float, high: float) -> Expr:
    """A bin is computed in float64 and then corrected by one, as the rounded bounds say."""
    wide = as_dtype(flat, "float64")
    first, last, span = (relay.const(v, "float64") for v in (low, high, high - low))
    inside = relay.logical_and(relay.greater_equal(wide, first), relay.less_equal(wide, last))
    scaled = relay.multiply(relay.subtract(wide, first), relay.const(count, "float64"))
    raw = relay.floor(relay.divide(relay.where(inside, scaled, relay.const(0.0, "float64")), span))
    one, top = relay.const(1, "int64"), relay.const(count - 1, "int64")
    target = relay.minimum(relay.cast(raw, "int64"), top)
    below = relay.less(flat, relay.take(edges, target, axis=0, mode="fast"))
    target = relay.subtract(target, relay.cast(below, "int64"))
    above = relay.greater_equal(
        flat, relay.take(edges, relay.add(target, one), axis=0, mode="fast")
    )
    moves = relay.logical_and(above, relay.not_equal(target, top))
    target = relay.add(target, relay.cast(moves, "int64"))
    number = relay.where(inside, target, relay.const(-1, "int64"))
    hits = relay.equal(relay.expand_dims(number, 1), relay.Constant(allocation.arange(count)))
    return relay.sum(relay.cast(hits, "int64"), axis=(0,))


@OPS.imports("_npi_bincount")
def import_bincount(
    ctx: Import,
    data: Expr,
    weights: Expr | None = None,
    *,
    minlength: int = 0,
    has_weights: bool = False,
) -> Expr:
    """The result is as long as the greatest element asks for; counts have the dtype of the data."""
    indices = as_dtype(data, "int64")
    least = relay.Constant(np.array([minlength - 1]))
    most = relay.max(relay.concatenate([indices, least], 0), axis=(0,), keepdims=True)
    length = relay.add(most, relay.const(1, "int64"))
    given = weights if has_weights and weights is not None else relay.ones_like(data)
    blank = relay.zeros(length, ctx.type(given).dtype)
    return relay.scatter_nd(blank, relay.expand_dims(indices, 0), given, mode="add")
