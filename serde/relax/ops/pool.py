"""Poolings, as Relax's own operators or as tensor expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any as AnyValue, Final

import serde.relay as relay
from serde.core import dataclass, numpy_dtype, replace
from serde.relax.framework import Framework
from serde.relax.ops.conv import cast, sum_dtype
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, is_float, lowest
from serde.relay.op.conv.windows import SPATIAL
from serde.relay.op.pool.reduction import Pooling, Window
from serde.walk.expansion.pool import USUAL

__all__ = ["adaptive_pool"]


@dataclass(frozen=True)
class _PoolWindow:
    """A window that slides over the spatial axes of what is channels first.

    Attributes:
        framework: TVM.
        size: Its lengths.
        strides: Its steps.
        dilation: Distances of its taps.
        before: Padding before each axis.
        lengths: How many windows there are along each axis.
    """

    framework: Framework
    size: Sequence[int]
    strides: Sequence[int]
    dilation: Sequence[int]
    before: Sequence[int]
    lengths: Sequence[AnyValue]

    def _starts(self, places: Sequence[AnyValue]) -> list[AnyValue]:
        axes = zip(places, self.strides, self.before, strict=True)
        return [place * step - before for place, step, before in axes]

    def _reduce(
        self, data: AnyValue, dtype: str, fill: AnyValue, reduce: Callable[..., AnyValue]
    ) -> AnyValue:
        """Return the stage that reduces what is inside each window, `fill` being the rest."""
        te, tir = self.framework.te, self.framework.tir
        batch, channels, *space = data.shape
        taps = [te.reduce_axis((0, size), name=f"k{i}") for i, size in enumerate(self.size)]

        def at_window(n: AnyValue, c: AnyValue, *indices: AnyValue) -> AnyValue:
            axes = zip(self._starts(indices), taps, self.dilation, strict=True)
            read = [begin + tap * step for begin, tap, step in axes]
            inside = [tir.all(r >= 0, r < end) for r, end in zip(read, space, strict=True)]
            value = data[(n, c, *read)].astype(dtype)
            return reduce(tir.if_then_else(tir.all(*inside), value, fill), axis=taps)

        return te.compute((batch, channels, *self.lengths), at_window, name="window")

    def maximum(self, data: AnyValue) -> AnyValue:
        """Return the maximum of each window; outside lies the least number of the dtype."""
        dtype = str(data.dtype)
        te, tir = self.framework.te, self.framework.tir
        least = lowest(numpy_dtype(dtype))
        fill = tir.const(int(least) if least.dtype.kind in "iub" else float(least), dtype)
        return self._reduce(data, dtype, fill, te.max)

    def mean(self, data: AnyValue, count_include_pad: bool) -> AnyValue:
        """Return the mean of each window; padding may count, and all that lies beyond it then."""
        te, tir = self.framework.te, self.framework.tir
        dtype = str(data.dtype)
        total = dtype if is_float(dtype) else "int64"
        sums = self._reduce(data, total, tir.const(0, total), te.sum)

        def divide(n: AnyValue, c: AnyValue, *indices: AnyValue) -> AnyValue:
            taps = tir.const(math.prod(self.size), "int64")
            divisor = taps if count_include_pad else self._count(indices, data.shape[2:])
            quotient = divide_in(tir, sums[(n, c, *indices)], divisor.astype(total), total)
            return quotient.astype(dtype)

        return te.compute(sums.shape, divide, name="mean_pool")

    def _count(self, places: Sequence[AnyValue], space: Sequence[AnyValue]) -> AnyValue:
        """Return how many taps of a window are inside, 1 where none is."""
        tir = self.framework.tir
        found: AnyValue = tir.const(1, "int64")
        axes = zip(self._starts(places), space, self.size, self.dilation, strict=True)
        for begin, length, size, step in axes:
            first = tir.max(0, tir.floordiv(step - 1 - begin, step))
            last = tir.min(size, tir.floordiv(length - begin + step - 1, step))
            found = found * tir.max(last - first, 0).astype("int64")
        return tir.max(found, tir.const(1, "int64"))


def divide_in(tir: AnyValue, total: AnyValue, divisor: AnyValue, dtype: str) -> AnyValue:
    """Return a quotient in a dtype; that of integers is rounded towards zero."""
    return total / divisor if is_float(dtype) else tir.truncdiv(total, divisor)


def adaptive_pool(
    framework: Framework, counts: Sequence[int], kind: str
) -> Callable[..., AnyValue]:
    """Return what computes means or maxima, "avg" or "max", over as many parts of each axis."""
    te, tir = framework.te, framework.tir

    def parts(places: Sequence[AnyValue], space: Sequence[AnyValue]) -> list[AnyValue]:
        axes = zip(places, space, counts, strict=True)
        return [(tir.floordiv(p * n, c), tir.floordiv((p + 1) * n + c - 1, c)) for p, n, c in axes]

    def adaptive_pool(data: AnyValue) -> AnyValue:
        (batch, channels, *space), dtype = data.shape, str(data.dtype)
        total = dtype if kind == "max" or is_float(dtype) else "int64"
        fill = te.min_value(dtype) if kind == "max" else tir.const(0, total)
        most = [tir.floordiv(n + c - 1, c) + 1 for n, c in zip(space, counts, strict=True)]
        taps = [te.reduce_axis((0, each), name=f"k{i}") for i, each in enumerate(most)]

        def reduce(n: AnyValue, c: AnyValue, *places: AnyValue) -> AnyValue:
            spans = parts(places, space)
            read = [first + tap for (first, _), tap in zip(spans, taps, strict=True)]
            inside = [r < last for r, (_, last) in zip(read, spans, strict=True)]
            held = tir.if_then_else(tir.all(*inside), data[(n, c, *read)].astype(total), fill)
            return te.max(held, axis=taps) if kind == "max" else te.sum(held, axis=taps)

        found = te.compute((batch, channels, *counts), reduce, name="parts")
        if kind == "max":
            return found

        def divide(n: AnyValue, c: AnyValue, *places: AnyValue) -> AnyValue:
            size: AnyValue = tir.const(1, "int64")
            for first, last in parts(places, space):
                size = size * (last - first).astype("int64")
            return divide_in(tir, found[(n, c, *places)], size.astype(total), total).astype(dtype)

        return te.compute(found.shape, divide, name="adaptive_mean")

    return adaptive_pool


@OPS.exports("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")
def export_max_pool(ctx: Export, data: Value, *, pool: Pooling) -> Value:
    """TVM takes infinity for the least number of bfloat16."""
    window, (_, _, *space), dtype = pool.window, ctx.type(data).shape, ctx.type(data).dtype
    if _is_relax_window(window, space) and dtype != "bfloat16":
        return _emit_pool(ctx, "max", data, window, space)
    return ctx.emit_te(_expression(ctx, window).maximum, data)


@OPS.exports("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d")
def export_avg_pool(ctx: Export, data: Value, *, pool: Pooling, count_include_pad: bool) -> Value:
    """Half precision is summed in float32; Relax takes no means of integers."""
    window, (_, _, *space), dtype = pool.window, ctx.type(data).shape, ctx.type(data).dtype
    wide = sum_dtype(dtype, None)
    x = cast(ctx, data, dtype, wide)
    known = all(isinstance(length, int) for length in space)
    if (
        is_float(dtype)
        and _is_relax_window(window, space)
        and (known or not (pool.ceil_mode and count_include_pad))
    ):
        made = _emit_pool(ctx, "avg", x, window, space, count_include_pad=count_include_pad)
    else:
        made = ctx.emit_te(_expression(ctx, window).mean, x, count_include_pad)
    return cast(ctx, made, wide, dtype)


def _is_relax_window(window: Window, space: Sequence[Dim]) -> bool:
    """Whether Relax has the same windows: it leaves out those that begin behind all data."""
    if not window.ceil_mode or all(isinstance(length, int) for length in space):
        return True
    axes = zip(window.size, window.strides, window.dilation, window.after, strict=True)
    return all(after + step - 1 <= (size - 1) * gap for size, step, gap, after in axes)


def _expression(ctx: Export, window: Window) -> _PoolWindow:
    return _PoolWindow(
        ctx.framework,
        window.size,
        window.strides,
        window.dilation,
        window.before,
        ctx.dims(ctx.result_type().shape[2:]),
    )


def _emit_pool(
    ctx: Export, kind: str, x: Value, window: Window, space: Sequence[Dim], **attrs: AnyValue
) -> Value:
    """Write a pooling; where lengths are known, what rounding up reaches is padding."""
    rank, after, ceil_mode = len(window.size), list(window.after), window.ceil_mode
    lengths = [length for length in space if isinstance(length, int)]
    if ceil_mode and len(lengths) == rank:
        ceil_mode = False
        for axis, length in enumerate(lengths):
            count = window.length(axis, length)
            reach = (window.size[axis] - 1) * window.dilation[axis] + 1
            if isinstance(count, int):
                reach += (count - 1) * window.strides[axis]
            after[axis] = max(after[axis], reach - length - window.before[axis])
    return ctx.emit(
        f"nn.{kind}_pool{rank}d", x, pool_size=list(window.size), strides=list(window.strides),
        padding=[*window.before, *after], dilation=list(window.dilation), ceil_mode=ceil_mode,
        layout=USUAL[rank], **attrs,
    )  # fmt: skip


def _are_parts_right(ctx: Export, data: Value, size: Sequence[int]) -> bool:
    """Whether TVM's own pooling takes the parts; before 0.27 it errs where one axis divides."""
    pairs = zip(ctx.type(data).shape[2:], size, strict=True)
    even = [count == 1 or (isinstance(n, int) and n % count == 0) for n, count in pairs]
    return all(even) or ctx.framework.version.startswith("0.27")


def _export_adaptive(
    ctx: Export, data: Value, *, kind: str, rank: int, output_size: tuple[int, ...]
) -> Value:
    """Pooling over parts of `rank` axes; Relax has one of means of floats."""
    dtype = ctx.type(data).dtype
    wide = sum_dtype(dtype, None) if kind == "avg" else dtype
    x = cast(ctx, data, dtype, wide)
    size = list(output_size * rank if len(output_size) == 1 else output_size)
    if not size:
        made = x
    elif kind == "avg" and is_float(dtype) and _are_parts_right(ctx, data, size):
        made = ctx.emit(f"nn.adaptive_avg_pool{rank}d", x, output_size=size)
    else:
        made = ctx.emit_te(adaptive_pool(ctx.framework, size, kind), x)
    return cast(ctx, made, wide, dtype)


for _kind, _rank in product(("max", "avg"), SPATIAL):
    _export = partial(_export_adaptive, kind=_kind, rank=_rank)
    OPS.exports(f"nn.adaptive_{_kind}_pool{_rank}d")(_export)


@dataclass(frozen=True, kw_only=True)
class PoolAttributes:
    """What all pooling has."""

    pool_size: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    ceil_mode: bool
    layout: str
    out_layout: str

    def keywords(self) -> dict[str, object]:
        """Return them as Relay's builders take them."""
        return {
            **vars(self),
            "out_layout": "" if self.out_layout == self.layout else self.out_layout,
        }


def _import_max_pool(
    ctx: Import, data: Expr, *, op: str, count_include_pad: bool, attrs: PoolAttributes
) -> Expr:
    found = getattr(relay.nn, op)(data, **attrs.keywords())
    return _drop_windows(ctx, data, found, attrs)


def _import_avg_pool(
    ctx: Import, data: Expr, *, op: str, count_include_pad: bool, attrs: PoolAttributes
) -> Expr:
    """What reaches beyond the padding is not counted, in Relay it is: then zeros are data."""
    given, x = attrs, data
    if count_include_pad and attrs.ceil_mode:
        x, given = _pad(ctx, data, attrs), replace(attrs, padding=(0,) * len(attrs.padding))
        count_include_pad = False
    build = getattr(relay.nn, op)
    found = build(x, count_include_pad=count_include_pad, **given.keywords())
    return _drop_windows(ctx, data, found, attrs)


def _pad(ctx: Import, data: Expr, attrs: PoolAttributes) -> Expr:
    """Return a tensor with the zeros around it that pooling pads."""
    if not any(attrs.padding):
        return data
    count = len(attrs.pool_size)
    widths = [(0, 0)] * ctx.rank(data)
    for number, letter in enumerate("DHW"[-count:]):
        before, after = attrs.padding[number], attrs.padding[count + number]
        widths[attrs.layout.index(letter)] = before, after
    return relay.nn.pad(data, widths, pad_value=ctx.like(data, 0))


def _drop_windows(ctx: Import, data: Expr, found: Expr, attrs: PoolAttributes) -> Expr:
    """Return pooling without the windows that begin behind all elements.

    With ``ceil_mode`` Relay has them, and TVM not, as PyTorch.
    """
    if not attrs.ceil_mode:
        return found
    count = len(attrs.pool_size)
    first, last = attrs.padding[:count], attrs.padding[count:]
    for number, letter in enumerate("DHW"[-count:]):
        step, axis = attrs.strides[number], attrs.layout.index(letter)
        reach = (attrs.pool_size[number] - 1) * attrs.dilation[number] + 1
        if step + last[number] <= reach:
            continue
        (length,) = ctx.static_lengths(data, [axis])
        kept = -(-(length + first[number]) // step)
        index = attrs.out_layout.index(letter)
        if ctx.static_lengths(found, [index])[0] > kept:
            found = relay.strided_slice(found, [0], [kept], axes=[index])
    return found


def _import_adaptive(
    ctx: Import,
    data: Expr,
    *,
    op: str,
    output_size: tuple[int, ...] | None,
    layout: str,
    out_layout: str,
) -> Expr:
    """Without a size the result has that of the tensor."""
    if output_size is None:
        return data
    out_layout = "" if out_layout == layout else out_layout
    return getattr(relay.nn, op)(data, output_size, layout=layout, out_layout=out_layout)


_IMPORTERS: Final[Mapping[str, Callable[..., Expr]]] = {
    "max_pool": _import_max_pool, "avg_pool": _import_avg_pool,
    "adaptive_avg_pool": _import_adaptive,
}  # fmt: skip

for _name, _rank in product(_IMPORTERS, SPATIAL):
    _op = f"{_name}{_rank}d"
    OPS.imports(f"relax.nn.{_op}")(partial(_IMPORTERS[_name], op=_op))
