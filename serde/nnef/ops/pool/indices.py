"""Where in a window the maximum is, and elements by such places.

A place is counted inside its window, row by row over all axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import Array
from serde.errors import Unsupported
from serde.nnef.ops.conv.transposed import transpose_windows
from serde.nnef.ops.conv.windows import pad_border, steps
from serde.nnef.ops.pool.unpool import UnpoolAttributes, read_unpool
from serde.nnef.ops.pool.window import PoolAttributes, Windows, max_windows, read_windows, volume_of
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, OpDef, TupleGetItem, split_padding, tensor_type
from serde.relay.op.pool.indices import PooledPlaces
from serde.relay.op.pool.unpool import MaxUnpool


def _spread_windows(ctx: Import, x: Expr, windows: Windows, border: str, value: float) -> Expr:
    """Return the elements of each window along a last axis; beyond the data is `value`."""
    x = pad_border(ctx, x, [(each.before, each.after) for each in windows], border, value)
    lengths = ctx.static_shape(x)
    shape: list[int] = []
    outer: list[int] = []
    inner: list[int] = []
    for axis, (each, length) in enumerate(zip(windows, lengths, strict=True)):
        count = each._replace(before=0, after=0).count(length)
        outer.append(len(shape))
        shape.append(count)
        if each.size == 1 and count == length:
            continue
        taps = _taps(each.stride, count, each.dilation, each.size)
        x = relay.take(x, relay.const(taps.reshape(-1), "int32"), axis=axis, mode="fast")
        if each.size > 1:
            inner.append(len(shape))
            shape.append(each.size)
    counts = [shape[i] for i in outer]
    moved = relay.transpose(relay.reshape(x, shape), (*outer, *inner))
    return relay.reshape(moved, (*counts, math.prod(shape[i] for i in inner)))


def _taps(stride: int, count: int, dilation: int, size: int) -> Array:
    """Return the elements of each window along an axis."""
    starts, steps = allocation.arange(count) * stride, allocation.arange(size) * dilation
    return allocation.outer_sum(starts, steps)


def _argmax_windows(ctx: Import, x: Expr, windows: Windows, border: str) -> Expr:
    """Return where the first maximum of each window is; what is ignored is none."""
    least = -math.inf if border == "ignore" else 0.0
    return relay.argmax(_spread_windows(ctx, x, windows, border, least), axis=-1)


@OPS.imports("argmax_pool")
def import_argmax_pool(ctx: Import, input: Expr, *, pool: PoolAttributes) -> Expr:
    return _argmax_windows(ctx, input, read_windows(ctx, input, pool), pool.border)


@OPS.imports("max_pool_with_index")
def import_max_pool_with_index(ctx: Import, input: Expr, *, pool: PoolAttributes) -> list[Expr]:
    windows = read_windows(ctx, input, pool)
    return [make(ctx, input, windows, pool.border) for make in (max_windows, _argmax_windows)]


def _is_at(ctx: Import, index: Expr, axis: int, size: int) -> Expr:
    """Return along a new axis whether a place is the first, the second and so on.

    Places are compared as scalars, which more formats can.
    """
    places = relay.expand_dims(relay.cast(index, ctx.scalar), axis)
    shape = [size if i == axis else 1 for i in range(ctx.rank(places))]
    return relay.equal(places, ctx.const(allocation.arange(size).reshape(shape)))


@OPS.imports("sample")
def import_sample(ctx: Import, input: Expr, index: Expr, *, pool: PoolAttributes) -> Expr:
    windows, rank = read_windows(ctx, input, pool), ctx.rank(index)
    spread = _spread_windows(ctx, input, windows, pool.border, 0.0)
    chosen = _is_at(ctx, index, rank, volume_of(windows))
    return relay.sum(relay.where(chosen, spread, ctx.const(0.0)), axis=rank)


@OPS.imports("desample", "max_unpool")
def import_desample(ctx: Import, input: Expr, index: Expr, *, unpool: UnpoolAttributes) -> Expr:
    """Elements that meet are added; those that would lie beyond the result are lost.

    The places in a window are channels, of which a transposed convolution moves each to its own.
    """
    if unpool.border not in ("constant", "ignore"):
        raise Unsupported(f"desample with border '{unpool.border}', which no place tells")
    windows, wanted = read_unpool(ctx, input, unpool)
    active = [axis for axis, each in enumerate(windows) if not each.is_idle] or [len(windows) - 1]
    chosen = _is_at(ctx, index, 0, volume_of(windows))
    spread = relay.where(chosen, relay.expand_dims(input, 0), ctx.const(0.0))
    for axes in (active[:3], active[3:]):
        if axes:
            spread = _move_places(ctx, spread, axes, windows, wanted)
    return relay.reshape(spread, wanted)


def _move_places(
    ctx: Import, x: Expr, axes: Sequence[int], windows: Windows, wanted: Sequence[int]
) -> Expr:
    """Return elements of which each is moved along some axes, by its place in a window.

    Args:
        ctx: The context.
        x: The elements, with an axis in front for their places in windows over these axes and
            those behind.
        axes: At most three axes.
        windows: The windows over all axes.
        wanted: Lengths of the result.

    Returns:
        The same, with an axis in front for their places along the axes behind these.
    """
    places, *lengths = ctx.static_shape(x, at_least=1)
    over = [windows[axis] for axis in axes]
    size = math.prod(each.size for each in over)
    others = [axis for axis in range(len(lengths)) if axis not in axes]
    apart = relay.reshape(x, (size, places // size, *lengths))
    order = [1, *(2 + axis for axis in others), 0, *(2 + axis for axis in axes)]
    rows = relay.reshape(
        relay.transpose(apart, order), (-1, size, *(lengths[axis] for axis in axes))
    )
    moved = transpose_windows(
        ctx, rows, ctx.const(allocation.eye(size).reshape(size, 1, *(each.size for each in over))),
        strides=[each.stride for each in over], dilation=[each.dilation for each in over],
        begin=[each.before for each in over], wanted=[wanted[axis] for axis in axes], groups=1,
    )  # fmt: skip
    kept = [lengths[axis] for axis in others]
    whole = relay.reshape(moved, (places // size, *kept, *(wanted[axis] for axis in axes)))
    back = [others.index(i) if i in others else len(others) + list(axes).index(i)
            for i in range(len(lengths))]  # fmt: skip
    return relay.transpose(whole, (0, *(1 + place for place in back)))


_EXACT = 1 << 24
"""Up to this a scalar of 32 bits holds every integer."""


@OPS.exports("serde.max_pool_with_places")
def export_max_pool_with_places(
    ctx: Export, data: Value, *, pool: PooledPlaces
) -> tuple[Value, Value]:
    """Relay counts in the whole tensor: where windows start is added, exactly, in scalars."""
    shape, ndim = ctx.static_shape(data), len(pool.pool_size)
    size = math.prod(shape)
    if size > _EXACT:
        raise Unsupported(f"places in {size} elements; scalars count to {_EXACT}")
    before, after = split_padding(pool.padding, ndim)
    pairs = [(0, 0), (0, 0), *zip(before, after, strict=True)]
    most, index = ctx.emit_tuple(
        "max_pool_with_index", data, outputs=2, size=[1, 1, *pool.pool_size],
        border="ignore" if any(pool.padding) else "constant", padding=pairs,
        stride=steps(pool.strides, 2), dilation=steps(pool.dilation, 2),
    )  # fmt: skip
    lengths, counts = shape[2:], (ctx.result_types()[0].concrete_shape or ())[2:]
    shifts: Array = allocation.zeros(pool.pool_size)
    starts: Array = allocation.zeros(counts)
    for axis, taps in enumerate(pool.pool_size):
        step = math.prod(lengths[:axis] if pool.column_major else lengths[axis + 1 :])
        shifts = shifts + _along(allocation.arange(taps) * pool.dilation[axis] * step, axis, ndim)
        start = allocation.arange(counts[axis]) * pool.strides[axis] - before[axis]
        starts = starts + _along(start * step, axis, ndim)
    images = allocation.arange(math.prod(shape[:2])).reshape(*shape[:2], *(1,) * ndim)
    dtype = ctx.type(data).dtype
    place = ctx.emit("gather", ctx.const(shifts.reshape(-1), dtype), index)
    for each in (starts[None, None], images * math.prod(lengths)):
        place = ctx.emit("add", place, ctx.const(each, dtype))
    places = ctx.emit("cast", place, dtype="integer")
    ctx.places[places.name] = index
    return most, places


def _undoes_pool(node: Call) -> bool:
    """Whether elements go back to where a pooling by the same windows, which lie apart, took them.

    Only then it is known where in its window each stands.
    """
    places, attrs = node.args[1], node.attrs
    pool = places.tuple_value if isinstance(places, TupleGetItem) and places.index else None
    if not isinstance(pool, Call) or not isinstance(pool.op, OpDef):
        return False
    if pool.op.name != "serde.max_pool_with_places":
        return False
    given, size = pool.attrs, attrs["pool_size"]
    sides = tuple(each for side in split_padding(attrs["padding"], len(size)) for each in side)
    return (
        tensor_type(pool.args[0]).shape == tensor_type(node).shape
        and (size, attrs["strides"] or (1,) * len(size), sides)
        == (given["pool_size"], given["strides"], given["padding"])
        and all(n == 1 for n in given["dilation"])
        and all(step >= n for step, n in zip(given["strides"], size, strict=True))
    )


@OPS.exports("serde.max_unpool", when=_undoes_pool)
def export_max_unpool(ctx: Export, data: Value, indices: Value, *, window: MaxUnpool) -> Value:
    """The pooling before it knows places in windows."""
    ndim = len(window.pool_size)
    pairs = zip(*split_padding(window.padding, ndim), strict=True)
    return ctx.emit(
        "desample",
        data,
        ctx.places[indices.name],
        size=[1, 1, *window.pool_size],
        padding=[(0, 0), (0, 0), *pairs],
        stride=steps(window.strides or (), 2),
        output_shape=list(ctx.result_type().concrete_shape or ()),
    )


def _along(values: Array, axis: int, rank: int) -> Array:
    """Return a vector that broadcasts along one axis."""
    shape: Sequence[int] = [-1 if i == axis else 1 for i in range(rank)]
    return values.reshape(shape)
