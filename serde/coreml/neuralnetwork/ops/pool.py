"""Pooling."""

from __future__ import annotations

from functools import partial
from typing import Any as AnyValue, Literal

import serde.relay as relay
from serde.coreml.mlprogram.export_context import ExportContext as ProgramContext
from serde.coreml.mlprogram.ops.pool import PoolAttributes
from serde.coreml.neuralnetwork.import_context import images
from serde.coreml.neuralnetwork.message_view import MessageView
from serde.coreml.neuralnetwork.ops.conv import (
    Window,
    WindowAttributes3d,
    border_amounts,
    borders,
    image_type,
    lifted_line,
    lowered_line,
    pad_type,
    volume_fields,
)
from serde.coreml.neuralnetwork.ops.table import DIRECT, LAYERS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Expr, call
from serde.walk.takes import FLOATS, Takes

Pool = Literal["MAX", "AVERAGE", "L2"]


def _global_pool(x: Expr, kind: Pool, axes: tuple[int, ...]) -> Expr:
    if kind == "MAX":
        return relay.max(x, axis=axes, keepdims=True)
    if kind == "AVERAGE":
        return relay.mean(x, axis=axes, keepdims=True)
    return relay.serde.reduce_l2(x, axis=axes, keepdims=True)


@LAYERS.imports("pooling")
def import_pooling(
    ctx: Import, x: Expr,
    *, type: Pool = "MAX", kernel_size: tuple[int, ...] = (3, 3), stride: tuple[int, ...] = (1, 1),
    valid: MessageView | None = None, same: MessageView | None = None,
    include_last_pixel: MessageView | None = None, avg_pool_exclude_padding: bool = False,
    global_pooling: bool = False,
) -> Expr:  # fmt: skip
    """Of a window that reaches beyond the padding, only what is in the padding counts."""
    ctx.at_least(x, 4)
    data, restore = images(ctx, x)
    if global_pooling:
        return restore(_global_pool(data, type, (2, 3)))
    counts_all = not avg_pool_exclude_padding
    if include_last_pixel is not None:
        pad = tuple(map(int, include_last_pixel.message.paddingAmounts)) or (0, 0)
        ends = _last_ends(ctx, data, kernel_size, stride, pad)
        around: tuple[int, ...] = (*pad, *ends)
        if type == "AVERAGE" and counts_all:
            height, width = pad
            if any(pad):
                data = relay.nn.pad(data, ((0, 0), (0, 0), (height, height), (width, width)))
            further = [max(0, end - each) for end, each in zip(ends, pad, strict=True)]
            around, counts_all = (0, 0, *further), False
    else:
        amounts = borders(None if valid is None else valid.submessage("paddingAmounts"))
        around = Window(kernel_size, stride, (1, 1), pad_type(same), amounts).padding(ctx, data)
    if not 1 <= len(kernel_size) <= 3:
        raise Unsupported(f"a window {list(kernel_size)}")
    return restore(_pool(data, type, kernel_size, stride, around, counts_all))


def _pool(
    x: Expr,
    kind: Pool,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    around: tuple[int, ...],
    counts_padding: bool,
) -> Expr:
    attrs: dict[str, AnyValue] = {"pool_size": kernel, "strides": stride, "padding": around}
    if kind == "L2":
        return relay.serde.lp_pool(x, **attrs)
    if kind == "MAX":
        return call(f"nn.max_pool{len(kernel)}d", x, **attrs)
    return call(f"nn.avg_pool{len(kernel)}d", x, count_include_pad=counts_padding, **attrs)


def _last_ends(
    ctx: Import, x: Expr, kernel: tuple[int, ...], stride: tuple[int, ...], pad: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the padding at the far ends that makes the last window hold the last pixel."""
    ends = []
    lengths = ctx.static_lengths(x, (2, 3))
    for length, size, step, before in zip(lengths, kernel, stride, pad, strict=True):
        count = -(-(length + 2 * before - size) // step) + 1
        if any(pad) and (count - 1) * step >= length + before:
            count -= 1
        ends.append(max(0, (count - 1) * step + size - length - before))
    return tuple(ends)


@LAYERS.imports("pooling3d")
def import_pooling3d(
    ctx: Import,
    x: Expr,
    *,
    type: Pool = "MAX",
    spatial: WindowAttributes3d,
    count_exclude_padding: bool = False,
) -> Expr:
    """Axes are batch, channel, depth, height and width."""
    window = spatial.window()
    around = window.padding(ctx, x)
    return _pool(x, type, window.kernel, window.stride, around, not count_exclude_padding)


@LAYERS.imports("globalPooling3d")
def import_global_pooling3d(ctx: Import, x: Expr, *, type: Pool = "MAX") -> Expr:
    return _global_pool(x, type, (2, 3, 4))


POOLS: dict[str, Pool] = {"avg_pool": "AVERAGE", "l2_pool": "L2", "max_pool": "MAX"}
"""Operators of MIL, and the kinds of a layer."""


def _export_pool(
    ctx: Export,
    x: Value,
    *,
    kind: Pool,
    pool: PoolAttributes,
    exclude_padding_from_average: bool = False,
) -> Value:
    """A line is an image of one row; a stride less one at the end rounds lengths up."""
    excludes = exclude_padding_from_average
    pad, strides = pool.pad, pool.strides
    if pool.ceil_mode:
        pad = tuple(
            sides + (strides[index // 2] - 1 if index % 2 else 0) for index, sides in enumerate(pad)
        )
    if len(strides) == 3:
        ctx.since(14, "pooling along three axes")
        fields = volume_fields(pool.kernel_sizes, strides, pad)
        return ctx.layer("pooling3d", x, type=kind, count_exclude_padding=excludes, **fields)
    line = [1] * (2 - len(strides))
    found = ctx.layer(
        "pooling",
        lifted_line(ctx, x) if line else x,
        of=image_type(ctx),
        type=kind,
        kernel_size=[*line, *pool.kernel_sizes],
        stride=[*line, *strides],
        valid={"padding_amounts": border_amounts([*[0] * 2 * len(line), *pad])},
        avg_pool_exclude_padding=excludes,
    )
    return lowered_line(ctx, found)


for _name, _kind in POOLS.items():
    LAYERS.exports(_name)(partial(_export_pool, kind=_kind))


def _export_global(ctx: ProgramContext, data: Value, *, kind: Pool) -> Value:
    return ctx.emit("global_pool", x=data, kind=kind)


GLOBAL: dict[str, Pool] = {"nn.global_avg_pool2d": "AVERAGE", "nn.global_max_pool2d": "MAX"}

for _name, _kind in GLOBAL.items():
    DIRECT.exports(_name, takes=Takes(data=FLOATS))(partial(_export_global, kind=_kind))


@LAYERS.exports("global_pool")
def export_global_pool(ctx: Export, x: Value, *, kind: Pool) -> Value:
    return ctx.layer("pooling", x, type=kind, global_pooling=True, valid={"padding_amounts": {}})
