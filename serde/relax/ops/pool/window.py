"""Maximum and mean over sliding windows, over all of an image and over adaptive parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any as AnyValue
from typing import Literal

import serde.relay as relay
from serde.relax.export_context import ExportContext, Value
from serde.relax.import_context import ImportContext
from serde.relax.ops.conv.windows import cast, sum_dtype
from serde.relax.ops.pool.expressions import PoolWindow, adaptive_pool
from serde.relax.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float
from serde.relay.op.conv.windows import SPATIAL
from serde.relay.op.pool.reduction import Pooling, Window
from serde.walk.expansion.pool import USUAL

__all__: list[str] = []


@OPS.exports("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")
def export_max_pool(ctx: ExportContext, data: Value, *, pool: Pooling) -> Value:
    """TVM takes infinity for the least number of bfloat16."""
    window, (_, _, *space), dtype = pool.window, ctx.type(data).shape, ctx.type(data).dtype
    if _is_relax_window(window, space) and dtype != "bfloat16":
        return _emit_pool(ctx, "max", data, window, space)
    return ctx.emit_te(_expression(ctx, window).maximum, data)


@OPS.exports("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d")
def export_avg_pool(
    ctx: ExportContext, data: Value, *, pool: Pooling, count_include_pad: bool
) -> Value:
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


def _expression(ctx: ExportContext, window: Window) -> PoolWindow:
    return PoolWindow(
        ctx.framework,
        window.size,
        window.strides,
        window.dilation,
        window.before,
        ctx.dims(ctx.result_type().shape[2:]),
    )


def _emit_pool(
    ctx: ExportContext,
    kind: str,
    x: Value,
    window: Window,
    space: Sequence[Dim],
    **attrs: AnyValue,
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
        f"nn.{kind}_pool{rank}d",
        x,
        pool_size=list(window.size),
        strides=list(window.strides),
        padding=[*window.before, *after],
        dilation=list(window.dilation),
        ceil_mode=ceil_mode,
        layout=USUAL[rank],
        **attrs,
    )


def _are_parts_right(ctx: ExportContext, data: Value, size: Sequence[int]) -> bool:
    """Whether TVM's own pooling takes the parts; before 0.27 it errs where one axis divides."""
    pairs = zip(ctx.type(data).shape[2:], size, strict=True)
    even = [count == 1 or (isinstance(n, int) and n % count == 0) for n, count in pairs]
    return all(even) or ctx.framework.version.startswith("0.27")


def _make_adaptive(kind: Literal["max", "avg"], rank: int) -> Callable[..., Value]:
    """Return what writes a pooling over parts of `rank` axes; Relax has one of means of floats."""

    def export_adaptive_pool(
        ctx: ExportContext, data: Value, *, output_size: tuple[int, ...]
    ) -> Value:
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

    return export_adaptive_pool


for _rank in SPATIAL:
    OPS.exports(f"nn.adaptive_max_pool{_rank}d")(_make_adaptive("max", _rank))
    OPS.exports(f"nn.adaptive_avg_pool{_rank}d")(_make_adaptive("avg", _rank))


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


def _import_max_pool(op: str) -> Callable[..., Expr]:
    build = getattr(relay.nn, op)

    def convert(
        ctx: ImportContext, data: Expr, *, count_include_pad: bool, attrs: PoolAttributes
    ) -> Expr:
        return _drop_windows(ctx, data, build(data, **attrs.keywords()), attrs)

    return convert


def _import_avg_pool(op: str) -> Callable[..., Expr]:
    build = getattr(relay.nn, op)

    def convert(
        ctx: ImportContext, data: Expr, *, count_include_pad: bool, attrs: PoolAttributes
    ) -> Expr:
        """What reaches beyond the padding is not counted, in Relay it is: then zeros are data."""
        given, x = attrs, data
        if count_include_pad and attrs.ceil_mode:
            x, given = _pad(ctx, data, attrs), replace(attrs, padding=(0,) * len(attrs.padding))
            count_include_pad = False
        found = build(x, count_include_pad=count_include_pad, **given.keywords())
        return _drop_windows(ctx, data, found, attrs)

    return convert


def _pad(ctx: ImportContext, data: Expr, attrs: PoolAttributes) -> Expr:
    """Return a tensor with the zeros around it that pooling pads."""
    if not any(attrs.padding):
        return data
    count = len(attrs.pool_size)
    widths = [(0, 0)] * ctx.rank(data)
    for number, letter in enumerate("DHW"[-count:]):
        before, after = attrs.padding[number], attrs.padding[count + number]
        widths[attrs.layout.index(letter)] = before, after
    return relay.nn.pad(data, widths, pad_value=ctx.like(data, 0))


def _drop_windows(ctx: ImportContext, data: Expr, found: Expr, attrs: PoolAttributes) -> Expr:
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
        place = attrs.out_layout.index(letter)
        if ctx.static_lengths(found, [place])[0] > kept:
            found = relay.strided_slice(found, [0], [kept], axes=[place])
    return found


def _import_adaptive(op: str) -> Callable[..., Expr]:
    build = getattr(relay.nn, op)

    def convert(
        ctx: ImportContext,
        data: Expr,
        *,
        output_size: tuple[int, ...] | None,
        layout: str,
        out_layout: str,
    ) -> Expr:
        """Without a size the result has that of the tensor."""
        if output_size is None:
            return data
        out_layout = "" if out_layout == layout else out_layout
        return build(data, output_size, layout=layout, out_layout=out_layout)

    return convert


for _ndim in (1, 2, 3):
    OPS.imports(f"relax.nn.max_pool{_ndim}d")(_import_max_pool(f"max_pool{_ndim}d"))
    OPS.imports(f"relax.nn.avg_pool{_ndim}d")(_import_avg_pool(f"avg_pool{_ndim}d"))
    _op = f"adaptive_avg_pool{_ndim}d"
    OPS.imports(f"relax.nn.{_op}")(_import_adaptive(_op))
