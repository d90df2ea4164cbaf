"""Pooling over sliding windows, by norms too, and the partial inverse of that by maxima."""

from __future__ import annotations

import math
from dataclasses import replace
from operator import add

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.onnx.ops.conv.windows import pad_same, per_axis, to_onnx_pads
from serde.onnx.ops.elementwise.convert import (
    as_dtype,
    cast,
    comparison_dtype,
    compute_dtype,
    scalar_like,
)
from serde.onnx.ops.pool.geometry import (
    DilatedPoolAttributes,
    RelayPool,
    extend_padding,
    reach_past_padding,
    read_window,
)
from serde.onnx.ops.reduce import emit_reduce
from serde.onnx.ops.shape.columns import Windows
from serde.onnx.ops.shape.reshape import emit_lengths, reshape_along
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, call, is_float, lowest, split_padding
from serde.relay.op.pool.indices import PooledPlaces
from serde.relay.op.pool.unpool import MaxUnpool
from serde.walk.takes import Takes, all_are, between


def _may_miss_data(pool: RelayPool) -> bool:
    """Whether a window may lie in the padding alone, which ONNX Runtime refuses to run."""
    window = pool.geometry()
    return any(pad >= size for pad, size in zip(window.padding, window.size * 2, strict=True))


def _keep_apart(ctx: Export, x: Value, rank: int) -> Value:
    """Part a Pad from the windows behind it, into which ONNX Runtime 1.31 would fold it.

    Its zeros would be taken for padding, which never is the largest; and what is as wide as the
    window is refused.
    """
    if ctx.maker(x) != "Pad":
        return x
    return ctx.emit("Reshape", x, ctx.ints([0] * rank))


@OPS.exports("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")
def export_max_pool(ctx: Export, x: Value, *, pool: RelayPool) -> Value:
    dtype = ctx.type(x).dtype
    lacking = not is_float(dtype) and (ctx.version < 12 or dtype not in ("int8", "uint8"))
    if lacking or _may_miss_data(pool):
        return _max_of_windows(ctx, x, pool.windows(ctx, x))
    window = pool.geometry()
    return ctx.emit(
        "MaxPool",
        _keep_apart(ctx, x, ctx.type(x).rank),
        kernel_shape=window.size,
        strides=window.strides,
        dilations=window.dilations,
        pads=window.padding,
        ceil_mode=int(pool.ceil_mode),
    )


@OPS.exports("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d")
def export_avg_pool(ctx: Export, x: Value, *, pool: RelayPool, count_include_pad: bool) -> Value:
    """Sums are spelled out of integers, and before 19 of dilated windows, which ONNX lacks.

    Runtimes differ in what a window that reaches past the padding counts. Where
    lengths are fixed there is none: zeros are put behind the data, and the means
    scaled to the count that Relay divides by.
    """
    window, include_pad = pool.geometry(), count_include_pad
    lengths = ctx.type(x).shape[2:]
    ndim = len(lengths)
    past = window.past(lengths) if pool.ceil_mode else [0] * ndim
    known = [each for each in lengths if isinstance(each, int)]
    ceil_mode = pool.ceil_mode and any(each != 0 for each in past)
    # Written needlessly, they keep ONNX Runtime from what it makes of quantised means.
    is_dilated = any(each != 1 for each in window.dilations)
    late = ctx.version < 19 and is_dilated
    uneven = ceil_mode and include_pad and len(known) < ndim
    if late or uneven or _may_miss_data(pool) or not is_float(ctx.type(x).dtype):
        return _mean_of_windows(ctx, x, pool.windows(ctx, x), include_pad)
    moved, pads, scale = x, window.padding, None
    if ceil_mode and len(known) == ndim:
        widths = [0, 0, *pads[:ndim], 0, 0, *map(add, pads[ndim:], past)]
        moved = ctx.emit("Pad", moved, ctx.ints(widths), ctx.scalar_like(x, 0))
        scale = None if include_pad else window.scale(known)
        pads, ceil_mode, include_pad = [0] * (2 * ndim), False, True
    result = ctx.emit(
        "AveragePool", _keep_apart(ctx, moved, ndim + 2), kernel_shape=window.size,
        strides=window.strides, dilations=window.dilations if is_dilated else None, pads=pads,
        ceil_mode=int(ceil_mode), count_include_pad=int(include_pad),
    )  # fmt: skip
    if scale is not None:
        result = ctx.emit("Mul", result, ctx.const(scale, ctx.type(x).dtype))
    return result


def _reduce_windows(
    ctx: Export, op: str, x: Value, windows: Windows, rank: int, fill: Value
) -> Value:
    """Reduce the elements of each window, one axis after another."""
    found = windows.pad(ctx, x, rank, fill)
    for axis, indices in zip(windows.axes, windows.indices, strict=True):
        found = emit_reduce(
            ctx, op, ctx.emit("Gather", found, indices, axis=axis), [axis + 1], False
        )
    return found


def _max_of_windows(ctx: Export, x: Value, windows: Windows) -> Value:
    """Return the greatest of each window; padding is the least number of the dtype."""
    dtype = ctx.type(x).dtype
    work = comparison_dtype(dtype)
    least = ctx.const(lowest(np.dtype(dtype)), work)
    found = _reduce_windows(
        ctx, "ReduceMax", as_dtype(ctx, x, work), windows, ctx.type(x).rank, least
    )
    return found if work == dtype else cast(ctx, found, dtype)


def _mean_of_windows(ctx: Export, x: Value, windows: Windows, count_include_pad: bool) -> Value:
    """Return the sum of each window over its size, or over its elements inside the data.

    Integers are summed in int64, and the quotient cut towards zero.
    """
    type_ = ctx.type(x)
    work = compute_dtype(type_.dtype) if is_float(type_.dtype) else "int64"
    zero = ctx.const(0, work)
    total = _reduce_windows(ctx, "ReduceSum", as_dtype(ctx, x, work), windows, type_.rank, zero)
    if count_include_pad:
        divisor = ctx.const(int(np.prod(windows.sizes)), np.int64)
    else:
        divisor = _count_inside(ctx, x, windows)
    by = divisor if work == "int64" else cast(ctx, divisor, work)
    mean = ctx.emit("Div", total, by)
    return mean if work == type_.dtype else cast(ctx, mean, type_.dtype)


def _count_inside(ctx: Export, x: Value, windows: Windows) -> Value:
    """Return how many elements of each window hold data, at least 1."""
    zero, one = ctx.const(0, np.int64), ctx.const(1, np.int64)
    result = one
    parts = zip(windows.axes, windows.sides, windows.indices, strict=True)
    for axis, (before, _), indices in parts:
        first = ctx.const(before, np.int64)
        end = ctx.emit("Add", emit_lengths(ctx, x, [axis]), first)
        behind = ctx.emit("Not", ctx.emit("Less", indices, first))
        held = ctx.emit("And", behind, ctx.emit("Less", indices, end))
        count = emit_reduce(ctx, "ReduceSum", cast(ctx, held, np.int64), [1], keepdims=False)
        count = ctx.emit("Where", ctx.emit("Less", zero, count), count, one)
        result = ctx.emit("Mul", result, reshape_along(ctx, count, axis, ctx.type(x).rank))
    return result


@OPS.exports("serde.max_pool_with_places", op="MaxPool", takes=Takes(padding=between(0, math.inf)))
def export_max_pool_with_places(ctx: Export, x: Value, *, pool: PooledPlaces) -> tuple[Value, ...]:
    """Places count in the whole image, so that none of it is cut off."""
    return ctx.emit_tuple(
        "MaxPool", x, outputs=2, kernel_shape=list(pool.pool_size), strides=list(pool.strides),
        dilations=list(pool.dilation), pads=list(pool.padding),
        storage_order=int(pool.column_major) or None,
    )  # fmt: skip


@OPS.imports("MaxPool", since=(1, 8, 10, 11, 12, 22))
def import_max_pool(
    ctx: Import, x: Expr, *, pool: DilatedPoolAttributes, storage_order: bool = False
) -> Expr | list[Expr]:
    """With a second output, the indices of the maxima are flat over the whole tensor."""
    kernel, ndim = pool.kernel_shape, len(pool.kernel_shape)
    if ctx.wants(1):
        attrs, past = read_window(ctx, x, pool)
        if attrs["ceil_mode"]:
            past = reach_past_padding(ctx, x, attrs)
        found = call(
            "serde.max_pool_with_places",
            x,
            pool_size=kernel,
            strides=attrs["strides"],
            dilation=attrs["dilation"],
            padding=extend_padding(attrs["padding"], past),
            column_major=storage_order,
        )
        return [relay.TupleGetItem(found, each) for each in range(2)]
    strides = per_axis(pool.strides, ndim, "strides")
    dilations = per_axis(pool.dilations, ndim, "dilations")
    least = lowest(numpy_dtype(ctx.type(x).dtype))
    x, auto_pad = pad_same(ctx, x, kernel, strides, dilations, pool.auto_pad, least)
    attrs, past = read_window(ctx, x, replace(pool, auto_pad=auto_pad))
    build = getattr(relay.nn, f"max_pool{ndim}d")
    return build(x, **{**attrs, "padding": extend_padding(attrs["padding"], past)})


@OPS.imports("AveragePool", since=(1, 7, 10, 11, 19, 22))
def import_average_pool(
    ctx: Import, x: Expr, *, pool: DilatedPoolAttributes, count_include_pad: bool = False
) -> Expr:
    """What lies past the padding is never counted: with padding that is, it becomes data."""
    attrs, past = read_window(ctx, x, pool)
    ndim, padding = len(pool.kernel_shape), attrs["padding"]
    if count_include_pad and (attrs["ceil_mode"] or any(past)):
        around = [(0, 0), (0, 0), *zip(padding[:ndim], padding[ndim:], strict=True)]
        x = relay.nn.pad(x, around, scalar_like(ctx, x, 0))
        padding = (0,) * (2 * ndim)
        count_include_pad = False
    attrs["padding"] = extend_padding(padding, past)
    build = getattr(relay.nn, f"avg_pool{ndim}d")
    return build(x, **attrs, count_include_pad=count_include_pad)


@OPS.exports("serde.lp_pool", since=18, ignored=("layout",))
@OPS.exports(
    "serde.lp_pool", takes=Takes(dilation=all_are(1), ceil_mode=False), ignored=("layout",)
)
def export_lp_pool(
    ctx: Export, x: Value,
    *, p: int, pool_size: tuple[int, ...], strides: tuple[int, ...], dilation: tuple[int, ...],
    padding: tuple[int, ...], ceil_mode: bool,
) -> Value:  # fmt: skip
    """``ceil_mode`` and dilation came with 18; before, such a pooling is decomposed."""
    late = ceil_mode or any(each != 1 for each in dilation)
    ndim = len(pool_size)
    steps, gaps = (each * ndim if len(each) == 1 else each for each in (strides, dilation))
    return ctx.emit(
        "LpPool", x, p=p, kernel_shape=list(pool_size), strides=list(steps),
        pads=to_onnx_pads(padding, ndim), dilations=list(gaps) if late else None,
        ceil_mode=int(ceil_mode) if late else None,
    )  # fmt: skip


@OPS.imports("LpPool", since=(1, 2, 11, 18, 22))
def import_lp_pool(ctx: Import, x: Expr, *, p: float = 2, pool: DilatedPoolAttributes) -> Expr:
    """The first version has a number for `p` that need not be whole."""
    if p != int(p):
        raise Unsupported(f"p={p} is no whole number")
    attrs, past = read_window(ctx, x, pool)
    return call(
        "serde.lp_pool", x, p=int(p), **{**attrs, "padding": extend_padding(attrs["padding"], past)}
    )


@OPS.imports("GlobalLpPool", since=(1, 2, 22))
def import_global_lp_pool(ctx: Import, x: Expr, *, p: float = 2) -> Expr:
    axes = tuple(range(2, ctx.type(x).rank))
    if p in (1, 2):
        return call(f"serde.reduce_l{int(p)}", x, axis=axes, keepdims=True)
    powers = relay.power(relay.abs(x), scalar_like(ctx, x, p))
    total = relay.sum(powers, axis=axes, keepdims=True)
    return relay.power(total, scalar_like(ctx, x, 1 / p))


@OPS.exports("serde.max_unpool", takes=Takes(output_shape=None))
def export_max_unpool(ctx: Export, data: Value, indices: Value, *, window: MaxUnpool) -> Value:
    """Given another shape, ONNX numbers elements as in the least one, ONNX Runtime as in that."""
    if ctx.type(indices).dtype != "int64":
        indices = cast(ctx, indices, "int64")
    before, after = split_padding(window.padding, len(window.pool_size))
    return ctx.emit(
        "MaxUnpool",
        data,
        indices,
        kernel_shape=list(window.pool_size),
        strides=list(window.strides or (1,) * len(window.pool_size)),
        pads=[*before, *after],
    )


@OPS.imports("MaxUnpool", since=(9, 11, 22))
def import_max_unpool(
    ctx: Import, x: Expr, indices: Expr, output_shape: Expr | None = None,
    *, kernel_shape: tuple[int, ...], pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Expr:  # fmt: skip
    """Indices count in the shape that the window gives, to which a greater shape adds zeros."""
    result = call(
        "serde.max_unpool",
        x,
        indices,
        pool_size=kernel_shape,
        strides=strides,
        padding=pads or (0,),
    )
    if output_shape is None:
        return result
    least = relay.Constant(np.array(ctx.static_shape(result), np.int64))
    more = relay.subtract(relay.cast(output_shape, "int64"), least)
    widths = ctx.fold(relay.stack([relay.zeros_like(more), more], axis=1))
    return relay.nn.pad(result, widths, scalar_like(ctx, x, 0))
