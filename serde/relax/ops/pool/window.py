"""Maximum and mean over sliding windows, over all of an image and over adaptive parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue
from typing import Literal

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.conv.windows import cast, sum_dtype
from serde.relax.ops.pool.expressions import PoolWindow, adaptive_pool
from serde.relax.ops.table import OPS
from serde.relay.ir.dims import Dim
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
