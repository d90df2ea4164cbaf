"""Pooling over sliding windows, and the partial inverse of that by maxima."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, TupleGetItem, call, is_float, lowest
from serde.relay.op.pool.indices import PooledPlaces
from serde.relay.op.pool.reduction import Pooling, Window as RelayWindow
from serde.torch.ops.conv.windows import SPATIAL, Sizes, over_batch, per_axis
from serde.torch.ops.pool.geometry import UNKNOWN_PLACES, PoolAttributes, Window, has_fixed_lengths
from serde.torch.ops.reduce.plain import count
from serde.torch.ops.shape.pad import flat_widths
from serde.torch.ops.table import OPS, Export, Import, Value
from serde.torch.ops.written import cast
from serde.walk.takes import FLOATS, Takes


def _find_greatest(x: Expr, window: Window) -> Expr:
    """Return where the maximum of each window lies among the spatial elements."""
    attrs = window.attributes()
    del attrs["layout"], attrs["ceil_mode"]
    return TupleGetItem(call("serde.max_pool_with_places", x, **attrs), 1)


def make_max_pool(ndim: int) -> Callable[..., Expr]:
    def import_max_pool(ctx: Import, self: Expr, *, pool: PoolAttributes) -> Expr:
        attrs = pool.window(ctx, self, ndim).attributes()
        build = getattr(relay.nn, f"max_pool{ndim}d")
        return over_batch(ctx, self, ndim, lambda x: build(x, **attrs))

    return import_max_pool


def _make_max_pool_with_indices(ndim: int) -> Callable[..., tuple[Expr, ...]]:
    greatest = make_max_pool(ndim)

    def import_max_pool_with_indices(
        ctx: Import, self: Expr, *, pool: PoolAttributes
    ) -> tuple[Expr, ...]:
        """Indices count the elements of one channel."""
        if pool.ceil_mode and not has_fixed_lengths(ctx, self, ndim):
            return greatest(ctx, self, pool=pool), ctx.unread(UNKNOWN_PLACES)
        window = pool.window(ctx, self, ndim).rounded(ctx, self)
        size = count(ctx, self, tuple(range(-ndim, 0)), "int64")

        def locate(x: Expr) -> Expr:
            return relay.floor_mod(_find_greatest(x, window), size)

        return greatest(ctx, self, pool=pool), over_batch(ctx, self, ndim, locate)

    return import_max_pool_with_indices


def make_avg_pool(ndim: int) -> Callable[..., Expr]:
    def import_avg_pool(
        ctx: Import,
        self: Expr,
        *,
        pool: PoolAttributes,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Expr:
        """What lies past the padding is never counted: padding that counts becomes data then."""
        window = pool.window(ctx, self, ndim)
        build = getattr(relay.nn, f"avg_pool{ndim}d")
        if divisor_override is not None:
            return over_batch(
                ctx, self, ndim, lambda x: _sum_windows(ctx, x, window, build, divisor_override)
            )
        attrs, counted = window.attributes(), count_include_pad
        padding = window.padding
        beyond = window.ceil_mode or any(window.past)
        around = None
        if counted and beyond and any(padding):
            around = [(0, 0), (0, 0), *zip(padding[:ndim], padding[ndim:], strict=True)]
            attrs["padding"] = (*(0,) * ndim, *window.past)
        if beyond:
            counted = False

        def build_mean(x: Expr) -> Expr:
            if around is not None:
                x = relay.nn.pad(x, around, ctx.scalar(0, ctx.dtype(x)))
            found: Expr = build(x, **attrs, count_include_pad=counted)
            return found

        return over_batch(ctx, self, ndim, build_mean)

    return import_avg_pool


def _sum_windows(
    ctx: Import, x: Expr, window: Window, build: Callable[..., Expr], divisor: int
) -> Expr:
    """Return the sum of each window over a divisor; integers are multiplied before the mean."""
    dtype, size = ctx.dtype(x), math.prod(window.size)
    attrs = {**window.attributes(), "count_include_pad": True}
    if is_float(dtype):
        return relay.multiply(build(x, **attrs), ctx.scalar(size / divisor, dtype))
    total = build(relay.multiply(x, ctx.scalar(size, dtype)), **attrs)
    return relay.trunc_divide(total, ctx.scalar(divisor, dtype))


for _ndim in (1, 2, 3):
    OPS.imports(f"aten::max_pool{_ndim}d", f"aten::quantized_max_pool{_ndim}d")(
        make_max_pool(_ndim)
    )
    OPS.imports(f"aten::max_pool{_ndim}d_with_indices")(_make_max_pool_with_indices(_ndim))
    OPS.imports(f"aten::avg_pool{_ndim}d")(make_avg_pool(_ndim))


class RelayPool(Pooling):
    """Attributes of Relay's poolings."""

    def options(self) -> dict[str, object]:
        """Return what differs from PyTorch's defaults, padding left out."""
        found: dict[str, object] = {}
        if self.strides != self.pool_size:
            found["stride"] = self.strides
        if set(self.dilation) != {1}:
            found["dilation"] = self.dilation
        return found


def _counts(ctx: Export, x: Value, window: RelayWindow) -> tuple[int, ...] | None:
    """Return how many windows there are along each axis, None where lengths are open."""
    lengths = ctx.type(x).shape[2:]
    found = [window.length(i, length) for i, length in enumerate(lengths)]
    fixed = tuple(each for each in found if isinstance(each, int))
    return fixed if len(fixed) == len(found) else None


def _is_direct(ctx: Export, x: Value, window: RelayWindow) -> bool:
    """Whether PyTorch has the same windows: padding alike on both sides, at most half of one."""
    if window.before != window.after:
        return False
    if any(2 * pad > size for pad, size in zip(window.before, window.size, strict=True)):
        return False
    if not window.ceil_mode:
        return True
    counts = _counts(ctx, x, window)
    if counts is None:
        return False
    starts = [(n - 1) * s for n, s in zip(counts, window.strides, strict=True)]
    lengths = ctx.static_lengths(x, range(2, ctx.type(x).rank))
    return all(
        start < length + pad
        for start, length, pad in zip(starts, lengths, window.before, strict=True)
    )


def _reach_beyond(ctx: Export, x: Value, window: RelayWindow) -> bool:
    """Whether the last windows reach beyond the padding."""
    counts = _counts(ctx, x, window) or ()
    rows = zip(
        counts, window.strides, window.size, window.dilation, ctx.type(x).shape[2:],
        window.before, window.after, strict=True,
    )  # fmt: skip
    return any(
        (count - 1) * step + (size - 1) * gap + 1 > int(str(length)) + before + after
        for count, step, size, gap, length, before, after in rows
    )


def _extended(ctx: Export, x: Value, window: RelayWindow, value: object) -> Value:
    """Return data padded so far that all windows lie inside."""
    counts = _counts(ctx, x, window)
    if counts is None and window.ceil_mode:
        raise Unsupported("windows that are rounded up over lengths that are not known")
    sides = []
    for axis, length in enumerate(ctx.type(x).shape[2:]):
        after = window.after[axis]
        if counts is not None:
            span = (window.size[axis] - 1) * window.dilation[axis] + 1
            reach = (counts[axis] - 1) * window.strides[axis] + span
            after = reach - int(str(length)) - window.before[axis]
        sides.append((window.before[axis], after))
    if not any(width for pair in sides for width in pair):
        return x
    return ctx.call("F.pad", x, flat_widths(sides), value=value)


def _export_max_pool(ctx: Export, data: Value, *, rank: int, pooling: RelayPool) -> Value:
    """Windows that PyTorch has not are those of data that are padded by the least number."""
    x, window, options, dtype = data, pooling.window, pooling.options(), ctx.type(data).dtype
    if not is_float(dtype):
        if dtype not in ("int8", "uint8", "int16", "int32", "bool"):
            raise Unsupported(f"a pooling of {dtype}")
        type_ = type(ctx.type(x))(ctx.type(x).shape, "float64")
        x = ctx.typed(cast(ctx, x, "float64", dtype), type_)
    if _is_direct(ctx, x, window):
        if any(window.before):
            options["padding"] = window.before
        if window.ceil_mode:
            options["ceil_mode"] = True
    else:
        least = float(lowest(numpy_dtype(dtype)))
        x = _extended(ctx, x, window, least)
    result = ctx.call(f"F.max_pool{rank}d", x, pooling.pool_size, **options)
    return result if is_float(dtype) else cast(ctx, result, dtype, "float64")


def _is_longer(ctx: Export, x: Value, window: RelayWindow) -> bool:
    """Whether a window is longer than its axis without padding, which `F.avg_pool3d` refuses."""
    pairs = zip(ctx.type(x).shape[2:], window.size, strict=True)
    return any(isinstance(length, int) and length < size for length, size in pairs)


def _export_avg_pool(
    ctx: Export, data: Value, *, rank: int, pooling: RelayPool, count_include_pad: bool
) -> Value:
    """A divisor that PyTorch has not divides the sum: the mean of all taps times them."""
    x, window, options, dtype = data, pooling.window, pooling.options(), ctx.type(data).dtype
    direct = is_float(dtype) and set(window.dilation) == {1} and _is_direct(ctx, x, window)
    direct = direct and not (rank == 3 and _is_longer(ctx, x, window))
    if direct and window.ceil_mode:
        direct = not _reach_beyond(ctx, x, window) or not count_include_pad
    if direct:
        if any(window.before):
            options["padding"] = window.before
            if not count_include_pad:
                options["count_include_pad"] = False
        if window.ceil_mode:
            options["ceil_mode"] = True
            options.setdefault("count_include_pad", count_include_pad)
        return ctx.call(f"F.avg_pool{rank}d", x, pooling.pool_size, **options)
    return _mean(ctx, x, pooling, count_include_pad)


def _mean(ctx: Export, x: Value, pooling: RelayPool, count_include_pad: bool) -> Value:
    """Return the sums of windows divided by their divisors."""
    window, dtype = pooling.window, ctx.type(x).dtype
    rank = len(window.size)
    taps = int(np.prod(window.size))
    if not is_float(dtype):
        if dtype not in ("int8", "uint8", "int16", "int32"):
            raise Unsupported(f"a mean of {dtype}")
        type_ = type(ctx.type(x))(ctx.type(x).shape, "float64")
        x = ctx.typed(cast(ctx, x, "float64", dtype), type_)
    padded = _extended(ctx, x, window, 0.0)
    if set(window.dilation) == {1}:
        total = ctx.call(f"F.avg_pool{rank}d", padded, window.size, window.strides)
        total = ctx.infix("*", total, taps)
    else:
        steps = [list(window.size), list(window.strides), list(window.dilation)]
        total = ctx.call(ctx.helper("sum_windows"), padded, *steps)
    divisor = _divisor(ctx, x, window, count_include_pad, taps)
    if is_float(dtype):
        return ctx.infix("/", total, divisor)
    whole = ctx.call("torch.trunc", ctx.infix("/", ctx.call("torch.round", total), divisor))
    return ctx.method(whole, "to", ctx.dtype(dtype))


def _divisor(
    ctx: Export, x: Value, window: RelayWindow, count_include_pad: bool, taps: int
) -> Value | int:
    """Return by what the sum of each window is divided."""
    no_padding = not any((*window.before, *window.after)) and not window.ceil_mode
    if count_include_pad or no_padding:
        return taps
    lengths = ctx.static_lengths(x, range(2, ctx.type(x).rank))
    rows = [window.counts(i, length) for i, length in enumerate(lengths)]
    counts = np.maximum(reduce(np.multiply.outer, rows), 1)
    return ctx.const(counts.astype(numpy_dtype(ctx.type(x).dtype)))


for _rank in SPATIAL:
    OPS.exports(f"nn.max_pool{_rank}d")(partial(_export_max_pool, rank=_rank))
    OPS.exports(f"nn.avg_pool{_rank}d")(partial(_export_avg_pool, rank=_rank))


def _is_plain(call: Call) -> bool:
    """Whether PyTorch has the windows."""
    size, padding = call.attrs["pool_size"], call.attrs["padding"]
    rank = len(size)
    halves = all(2 * pad <= length for pad, length in zip(padding, size, strict=False))
    return padding[:rank] == padding[rank : 2 * rank] and halves


@OPS.exports(
    "serde.max_pool_with_places", takes=Takes(data=FLOATS, column_major=False), when=_is_plain
)
def export_max_pool_with_places(
    ctx: Export, data: Value, *, pool: PooledPlaces
) -> tuple[Value, Value]:
    """PyTorch counts places within each image and channel."""
    rank = len(pool.pool_size)
    options: dict[str, object] = {} if pool.strides == pool.pool_size else {"stride": pool.strides}
    if any(pool.padding):
        options["padding"] = pool.padding[:rank]
    if set(pool.dilation) != {1}:
        options["dilation"] = pool.dilation
    most, places = ctx.call_tuple(
        f"F.max_pool{rank}d", data, pool.pool_size, **options, return_indices=True, outputs=2
    )
    return most, ctx.call(ctx.helper("number_places"), data, places)


def _make_max_unpool(ndim: int) -> Callable[..., Expr]:
    def import_max_unpool(ctx: Import, self: Expr, indices: Expr, *, output_size: Sizes) -> Expr:
        """Indices count the elements of one channel; where no maximum goes it is zero."""
        sizes = per_axis(ctx, output_size, ndim, "output_size")
        batched = ctx.type(self).rank == ndim + 2
        rows, places = (x if batched else relay.expand_dims(x, axis=0) for x in (self, indices))
        rows, places = (relay.reshape(x, (0, 0, -1)) for x in (rows, places))
        head = ctx.type(rows).shape[:2]
        shape = (*head, math.prod(sizes))
        empty = relay.zeros(shape, ctx.dtype(self))
        filled = relay.scatter_elements(empty, places, rows, axis=2, reduction="update")
        found = relay.reshape(filled, (0, 0, *sizes))
        return found if batched else relay.squeeze(found, axis=[0])

    return import_max_unpool


OPS.imports("aten::max_unpool2d")(_make_max_unpool(2))
OPS.imports("aten::max_unpool3d", ignored=("stride", "padding"))(_make_max_unpool(3))
