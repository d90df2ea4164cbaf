"""Pooling over sliding windows, and over all places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.conv.direct import AutoPad, padded_alike, padding_of, per_axis
from serde.onnx.ops.conv.windows import SPATIAL, fixed, pads
from serde.onnx.ops.elementwise.convert import cast, comparable, scalar_like, widened, working
from serde.onnx.ops.reduce import reduce
from serde.onnx.ops.shape.layout import arranged
from serde.onnx.ops.shape.reshape import along, lengths
from serde.onnx.ops.shape.window import Windows
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.precision import lowest
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float, pool_dim
from serde.relay.ir.types import TensorType
from serde.weights import Array, numpy_dtype


def _max_pool(ndim: int) -> Callable[..., Value]:
    def export_max_pool(
        ctx: ExportContext,
        x: Value,
        *,
        pool_size: tuple[Dim, ...],
        strides: tuple[Dim, ...],
        dilation: tuple[Dim, ...],
        padding: tuple[Dim, ...],
        layout: str,
        out_layout: str,
        ceil_mode: bool,
    ) -> Value:
        dtype = ctx.type(x).dtype
        if not is_float(dtype) and (ctx.version < 12 or dtype not in ("int8", "uint8")):
            window = (pool_size, strides, dilation, padding, ceil_mode)
            most = _greatest(ctx, x, _sliding(ctx, x, layout, *window))
            return arranged(ctx, most, layout, out_layout or layout)
        result = ctx.emit(
            "MaxPool",
            arranged(ctx, x, layout, "NC" + SPATIAL[ndim]),
            kernel_shape=fixed(pool_size, "pool_size"),
            strides=fixed(strides, "strides"),
            dilations=fixed(dilation, "dilation"),
            pads=pads(padding, ndim),
            ceil_mode=int(ceil_mode),
        )
        return arranged(ctx, result, "NC" + SPATIAL[ndim], out_layout or layout)

    return export_max_pool


def _avg_pool(ndim: int) -> Callable[..., Value]:
    def export_avg_pool(
        ctx: ExportContext,
        x: Value,
        *,
        pool_size: tuple[Dim, ...],
        strides: tuple[Dim, ...],
        dilation: tuple[Dim, ...],
        padding: tuple[Dim, ...],
        layout: str,
        out_layout: str,
        ceil_mode: bool,
        count_include_pad: bool,
    ) -> Value:
        """ONNX takes no integers, and dilation from 19 on only: sums are spelled out then.

        Runtimes differ in what a window that reaches past the padding counts. Where
        lengths are fixed there is none: zeros are put behind the data, and the means
        scaled to the count that Relay divides by.
        """
        dilations = fixed(dilation, "dilation")
        late = ctx.version < 19 and any(each != 1 for each in dilations)
        if late or not is_float(ctx.type(x).dtype):
            spelled = _sliding(ctx, x, layout, pool_size, strides, dilation, padding, ceil_mode)
            mean = _mean(ctx, x, spelled, count_include_pad)
            return arranged(ctx, mean, layout, out_layout or layout)
        window = _Window(
            fixed(pool_size, "pool_size"), fixed(strides, "strides"), dilations, pads(padding, ndim)
        )
        lengths = [ctx.type(x).shape[layout.index(letter)] for letter in SPATIAL[ndim]]
        past = window.past(lengths) if ceil_mode else [0] * ndim
        known = [each for each in lengths if isinstance(each, int)]
        moved = arranged(ctx, x, layout, "NC" + SPATIAL[ndim])
        around, counts, ceil = window.padding, None, ceil_mode and any(each != 0 for each in past)
        if ceil and len(known) == ndim:
            widths = [0, 0, *around[:ndim], 0, 0, *map(add, around[ndim:], past)]
            moved = ctx.emit("Pad", moved, ctx.ints(widths), ctx.scalar_like(x, 0))
            counts = None if count_include_pad else window.scale(known)
            around, ceil, count_include_pad = [0] * (2 * ndim), False, True
        elif ceil and count_include_pad:
            spelled = _sliding(ctx, x, layout, pool_size, strides, dilation, padding, ceil_mode)
            mean = _mean(ctx, x, spelled, True)
            return arranged(ctx, mean, layout, out_layout or layout)
        result = ctx.emit(
            "AveragePool",
            moved,
            kernel_shape=window.size,
            strides=window.strides,
            dilations=dilations if ctx.version >= 19 else None,
            pads=around,
            ceil_mode=int(ceil),
            count_include_pad=int(count_include_pad),
        )
        if counts is not None:
            result = ctx.emit("Mul", result, ctx.const(counts, ctx.type(x).dtype))
        return arranged(ctx, result, "NC" + SPATIAL[ndim], out_layout or layout)

    return export_avg_pool


@dataclass(frozen=True)
class _Window:
    """Geometry of a pooling; `padding` has all before the axes first."""

    size: list[int]
    strides: list[int]
    dilations: list[int]
    padding: list[int]

    def past(self, lengths: Sequence[Dim]) -> list[int | None]:
        """Return how far the last window reaches past the padding; None where it is not known."""
        return [self._past(axis, length) for axis, length in enumerate(lengths)]

    def _past(self, axis: int, length: Dim) -> int | None:
        count = self._count(axis, length)
        if not isinstance(length, int) or not isinstance(count, int):
            return None
        end = (count - 1) * self.strides[axis] + (self.size[axis] - 1) * self.dilations[axis] + 1
        return max(0, end - length - self._around(axis))

    def _around(self, axis: int) -> int:
        return self.padding[axis] + self.padding[axis + len(self.size)]

    def _count(self, axis: int, length: Dim) -> Dim:
        return pool_dim(
            length,
            self.size[axis],
            self.strides[axis],
            self._around(axis),
            self.dilations[axis],
            ceil_mode=True,
        )

    def scale(self, lengths: Sequence[int]) -> Array:
        """Return for each window its size over the number of its places that hold data."""
        result: Array = np.ones((1, 1), np.float64)
        for axis, length in enumerate(lengths):
            (count,) = fixed([self._count(axis, length)], "windows")
            starts = np.arange(count) * self.strides[axis] - self.padding[axis]
            places = starts[:, None] + np.arange(self.size[axis]) * self.dilations[axis]
            inside = ((places >= 0) & (places < length)).sum(1)
            result = result[..., None] * (self.size[axis] / np.maximum(inside, 1))
        return result


def _sliding(
    ctx: ExportContext,
    x: Value,
    layout: str,
    pool_size: tuple[Dim, ...],
    strides: tuple[Dim, ...],
    dilation: tuple[Dim, ...],
    padding: tuple[Dim, ...],
    ceil_mode: bool,
) -> Windows:
    ndim = len(pool_size)
    return Windows.of(
        ctx,
        ctx.type(x).shape,
        [layout.index(letter) for letter in SPATIAL[ndim]],
        fixed(pool_size, "pool_size"),
        strides=fixed(strides, "strides"),
        dilations=fixed(dilation, "dilation"),
        pads=pads(padding, ndim),
        ceil_mode=ceil_mode,
    )


def _over_windows(
    ctx: ExportContext, op: str, x: Value, windows: Windows, rank: int, fill: Value
) -> Value:
    """Reduce the places of each window, one axis after another."""
    found = windows.padded(ctx, x, rank, fill)
    for axis, places in zip(windows.axes, windows.places, strict=True):
        found = reduce(ctx, op, ctx.emit("Gather", found, places, axis=axis), [axis + 1], False)
    return found


def _greatest(ctx: ExportContext, x: Value, windows: Windows) -> Value:
    """Return the greatest of each window; padding is the least number of the dtype."""
    dtype = ctx.type(x).dtype
    work = comparable(dtype)
    least = ctx.const(lowest(np.dtype(dtype)), work)
    found = _over_windows(ctx, "ReduceMax", widened(ctx, x, work), windows, ctx.type(x).rank, least)
    return found if work == dtype else cast(ctx, found, dtype)


def _mean(ctx: ExportContext, x: Value, windows: Windows, count_include_pad: bool) -> Value:
    """Return the sum of each window over its size, or over its places inside the data.

    Integers are summed in int64, and the quotient cut towards zero.
    """
    type_ = ctx.type(x)
    work = working(type_.dtype) if is_float(type_.dtype) else "int64"
    zero = ctx.const(0, work)
    total = _over_windows(ctx, "ReduceSum", widened(ctx, x, work), windows, type_.rank, zero)
    if count_include_pad:
        divisor = ctx.const(int(np.prod(windows.sizes)), np.int64)
    else:
        divisor = _inside(ctx, x, windows)
    by = divisor if work == "int64" else cast(ctx, divisor, work)
    mean = ctx.emit("Div", total, by)
    return mean if work == type_.dtype else cast(ctx, mean, type_.dtype)


def _inside(ctx: ExportContext, x: Value, windows: Windows) -> Value:
    """Return how many places of each window hold data, at least 1."""
    zero, one = ctx.const(0, np.int64), ctx.const(1, np.int64)
    result = one
    parts = zip(windows.axes, windows.sides, windows.places, strict=True)
    for axis, (before, _), places in parts:
        first = ctx.const(before, np.int64)
        end = ctx.emit("Add", lengths(ctx, x, [axis]), first)
        behind = ctx.emit("Not", ctx.emit("Less", places, first))
        held = ctx.emit("And", behind, ctx.emit("Less", places, end))
        count = reduce(ctx, "ReduceSum", cast(ctx, held, np.int64), [1], keepdims=False)
        count = ctx.emit("Where", ctx.emit("Less", zero, count), count, one)
        result = ctx.emit("Mul", result, along(ctx, count, axis, ctx.type(x).rank))
    return result


for _ndim in SPATIAL:
    OPS.exports(f"nn.max_pool{_ndim}d")(_max_pool(_ndim))
    OPS.exports(f"nn.avg_pool{_ndim}d")(_avg_pool(_ndim))


def _global(op: str, reduction: str) -> Callable[..., Value]:
    def export_global(ctx: ExportContext, x: Value, *, layout: str, out_layout: str) -> Value:
        """Of integers ONNX has the reduction only."""
        image = arranged(ctx, x, layout, "NCHW")
        if ctx.takes(op, ctx.type(x).dtype):
            result = ctx.emit(op, image)
        else:
            result = reduce(ctx, reduction, image, [2, 3], keepdims=True)
        return arranged(ctx, result, "NCHW", out_layout or layout)

    return export_global


OPS.exports("nn.global_max_pool2d")(_global("GlobalMaxPool", "ReduceMax"))
OPS.exports("nn.global_avg_pool2d")(_global("GlobalAveragePool", "ReduceMean"))


def _is_plain(node: Call) -> bool:
    return not node.attrs["ceil_mode"] and all(each == 1 for each in node.attrs["dilation"])


@OPS.exports("serde.lp_pool", since=18)
@OPS.exports("serde.lp_pool", when=_is_plain)
def export_lp_pool(
    ctx: ExportContext,
    x: Value,
    *,
    p: int,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    ceil_mode: bool,
    layout: str,
) -> Value:
    """``ceil_mode`` and dilation came with 18; before, such a pooling is decomposed."""
    late = ceil_mode or any(each != 1 for each in dilation)
    ndim = len(pool_size)
    steps, gaps = (each * ndim if len(each) == 1 else each for each in (strides, dilation))
    result = ctx.emit(
        "LpPool",
        arranged(ctx, x, layout, "NC" + SPATIAL[ndim]),
        p=p,
        kernel_shape=list(pool_size),
        strides=list(steps),
        pads=pads(padding, ndim),
        dilations=list(gaps) if late else None,
        ceil_mode=int(ceil_mode) if late else None,
    )
    return arranged(ctx, result, "NC" + SPATIAL[ndim], layout)


def windowed(
    ctx: ImportContext,
    x: Expr,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads: tuple[int, ...],
    auto_pad: AutoPad,
    ceil_mode: bool,
) -> tuple[dict[str, AnyValue], tuple[int, ...]]:
    """Return a pooling's attributes, and how far its windows reach past the padding.

    ONNX leaves out a window that would start behind the data, which Relay's ``ceil_mode``
    does not; where that matters there is none, and the windows reach past the padding.
    """
    ndim = ctx.type(x).rank - 2
    if ndim not in SPATIAL or len(kernel) != ndim:
        raise Unsupported(f"a window of {list(kernel)} over {ndim} axes")
    steps, gaps = per_axis(strides, ndim, "strides"), per_axis(dilations, ndim, "dilations")
    padding = padding_of(ctx, x, kernel, steps, gaps, pads, auto_pad)
    attrs: dict[str, AnyValue] = {
        "pool_size": kernel,
        "strides": steps,
        "dilation": gaps,
        "padding": padding,
        "layout": "NC" + SPATIAL[ndim],
        "ceil_mode": ceil_mode and auto_pad in ("NOTSET", "VALID"),
    }
    past = [0] * ndim
    drops = False
    for axis, (length, step) in enumerate(zip(ctx.type(x).shape[2:], steps, strict=True)):
        before, after = padding[axis], padding[ndim + axis]
        reach = (kernel[axis] - 1) * gaps[axis] + 1
        if not attrs["ceil_mode"] or step + after <= reach:
            continue
        if not isinstance(length, int):
            raise Unsupported("ceil_mode beside padding needs fixed lengths")
        count = -(-(length + before + after - reach) // step) + 1
        fewer = (count - 1) * step >= length + before
        drops = drops or fewer
        past[axis] = max(0, (count - 1 - fewer) * step + reach - length - before - after)
    if not drops:
        return attrs, (0,) * ndim
    return {**attrs, "ceil_mode": False}, tuple(past)


def beyond(padding: Sequence[int], past: Sequence[int]) -> tuple[int, ...]:
    """Return pads with `past` added behind the axes."""
    ndim = len(past)
    return (*padding[:ndim], *map(add, padding[ndim:], past))


def _of_floats(node: Call) -> bool:
    data = node.args[0].type
    return isinstance(data, TensorType) and is_float(data.dtype)


def _to_the_end(ctx: ImportContext, x: Expr, attrs: dict[str, AnyValue]) -> tuple[int, ...]:
    """Return how far the last windows of ``ceil_mode`` reach past the padding."""
    ndim = len(attrs["pool_size"])
    keys = ("pool_size", "strides", "dilation", "padding")
    window = _Window(*(list(attrs[key]) for key in keys))
    return tuple(each or 0 for each in window.past(ctx.static_lengths(x, range(2, ndim + 2))))


@OPS.exports("serde.max_pool_with_places", since=12)
@OPS.exports("serde.max_pool_with_places", when=_of_floats)
def export_max_pool_with_places(
    ctx: ExportContext,
    x: Value,
    *,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    column_major: bool,
) -> tuple[Value, ...]:
    return ctx.emit_tuple(
        "MaxPool",
        x,
        outputs=2,
        kernel_shape=list(pool_size),
        strides=list(strides),
        dilations=list(dilation),
        pads=list(padding),
        storage_order=int(column_major) or None,
    )


@OPS.imports("MaxPool", since=(1, 8, 10, 11, 12, 22))
def import_max_pool(
    ctx: ImportContext,
    x: Expr,
    *,
    kernel_shape: tuple[int, ...],
    auto_pad: AutoPad = "NOTSET",
    ceil_mode: bool = False,
    dilations: tuple[int, ...] = (),
    pads: tuple[int, ...] = (),
    storage_order: bool = False,
    strides: tuple[int, ...] = (),
) -> Expr | list[Expr]:
    if not ctx.wants(1):
        ndim = len(kernel_shape)
        steps, gaps = per_axis(strides, ndim, "strides"), per_axis(dilations, ndim, "dilations")
        least = lowest(numpy_dtype(ctx.type(x).dtype))
        x, auto_pad = padded_alike(ctx, x, kernel_shape, steps, gaps, auto_pad, least)
    attrs, past = windowed(ctx, x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    if ctx.wants(1):
        if attrs["ceil_mode"]:
            past = _to_the_end(ctx, x, attrs)
        found = call(
            "serde.max_pool_with_places",
            x,
            pool_size=kernel_shape,
            strides=attrs["strides"],
            dilation=attrs["dilation"],
            padding=beyond(attrs["padding"], past),
            column_major=storage_order,
        )
        return [relay.TupleGetItem(found, each) for each in range(2)]
    build = getattr(relay.nn, f"max_pool{len(kernel_shape)}d")
    return build(x, **{**attrs, "padding": beyond(attrs["padding"], past)})


@OPS.imports("AveragePool", since=(1, 7, 10, 11, 19, 22))
def import_average_pool(
    ctx: ImportContext,
    x: Expr,
    *,
    kernel_shape: tuple[int, ...],
    auto_pad: AutoPad = "NOTSET",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    dilations: tuple[int, ...] = (),
    pads: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Expr:
    """What lies past the padding is never counted: with padding that is, it becomes data."""
    attrs, past = windowed(ctx, x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    build = getattr(relay.nn, f"avg_pool{len(kernel_shape)}d")
    if count_include_pad and (attrs["ceil_mode"] or any(past)):
        ndim, padding = len(kernel_shape), attrs["padding"]
        around = [(0, 0), (0, 0), *zip(padding[:ndim], padding[ndim:], strict=True)]
        x = relay.nn.pad(x, around, scalar_like(ctx, x, 0))
        attrs["padding"] = (0,) * (2 * ndim)
        count_include_pad = False
    attrs["padding"] = beyond(attrs["padding"], past)
    return build(x, **attrs, count_include_pad=count_include_pad)


def _global_import(name: str, fold: Callable[..., Expr]) -> Callable[..., Expr]:
    def import_global(ctx: ImportContext, x: Expr) -> Expr:
        """Over other than two axes it is a reduction."""
        rank = ctx.type(x).rank
        if rank == 4:
            return getattr(relay.nn, name)(x)
        return fold(x, axis=tuple(range(2, rank)), keepdims=True)

    return import_global


OPS.imports("GlobalMaxPool", since=(1, 22))(_global_import("global_max_pool2d", relay.max))


OPS.imports("GlobalAveragePool", since=(1, 22))(_global_import("global_avg_pool2d", relay.mean))


@OPS.imports("LpPool", since=(1, 2, 11, 18, 22))
def import_lp_pool(
    ctx: ImportContext,
    x: Expr,
    *,
    kernel_shape: tuple[int, ...],
    auto_pad: AutoPad = "NOTSET",
    ceil_mode: bool = False,
    dilations: tuple[int, ...] = (),
    p: float = 2,
    pads: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Expr:
    """The first version has a number for `p` that need not be whole."""
    if p != int(p):
        raise Unsupported(f"p={p} is no whole number")
    attrs, past = windowed(ctx, x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    return call(
        "serde.lp_pool", x, p=int(p), **{**attrs, "padding": beyond(attrs["padding"], past)}
    )


@OPS.imports("GlobalLpPool", since=(1, 2, 22))
def import_global_lp_pool(ctx: ImportContext, x: Expr, *, p: float = 2) -> Expr:
    axes = tuple(range(2, ctx.type(x).rank))
    if p in (1, 2):
        return call(f"serde.reduce_l{int(p)}", x, axis=axes, keepdims=True)
    powers = relay.power(relay.abs(x), scalar_like(ctx, x, p))
    total = relay.sum(powers, axis=axes, keepdims=True)
    return relay.power(total, scalar_like(ctx, x, 1 / p))
