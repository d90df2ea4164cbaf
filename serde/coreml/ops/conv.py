"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue
from typing import Literal

import serde.relay as relay
from serde.coreml.builder import Value
from serde.coreml.context import ImportContext as Ctx
from serde.coreml.exporter import ExportContext as Out
from serde.coreml.ops.table import OPS
from serde.relay.expr import Expr

Padding = Literal["valid", "same", "same_lower", "custom"]


def padding(
    lengths: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pad_type: Padding,
    pad: Sequence[int],
) -> tuple[int, ...]:
    """Return the padding of windows as Relay has it: before each axis, then after each."""
    rank = len(kernel)
    if pad_type == "valid":
        return (0,) * (2 * rank)
    if pad_type == "custom":
        return (*pad[0::2], *pad[1::2])
    before, after = [], []
    for length, size, stride, dilation in zip(lengths, kernel, strides, dilations, strict=True):
        reach = (size - 1) * dilation + 1
        total = max(0, (-(-length // stride) - 1) * stride + reach - length)
        small, large = total // 2, total - total // 2
        before.append(small if pad_type == "same" else large)
        after.append(large if pad_type == "same" else small)
    return (*before, *after)


@OPS.imports("conv", since=(1, 17))
def import_conv(
    ctx: Ctx,
    x: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    strides: tuple[int, ...] = (),
    pad_type: Padding = "valid",
    pad: tuple[int, ...] = (),
    dilations: tuple[int, ...] = (),
    groups: int = 1,
) -> Expr:
    """Padding that keeps the length over the stride depends on the length where there is one."""
    channels, _, *kernel = ctx.static_shape(weight)
    rank = len(kernel)
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    pad = pad or (0,) * (2 * rank)
    spatial = range(2, 2 + rank)
    lengths = (0,) * rank
    if pad_type in ("same", "same_lower") and any(stride != 1 for stride in strides):
        lengths = ctx.static_lengths(x, spatial)
    build = {1: relay.nn.conv1d, 2: relay.nn.conv2d, 3: relay.nn.conv3d}[rank]
    result = build(
        x,
        weight,
        strides=strides,
        padding=padding(lengths, kernel, strides, dilations, pad_type, pad),
        dilation=dilations,
        groups=groups,
        channels=channels,
        kernel_size=tuple(kernel),
    )
    return result if bias is None else relay.nn.bias_add(result, bias, axis=1)


@OPS.exports("nn.conv1d", "nn.conv2d", "nn.conv3d")
def export_conv(
    ctx: Out,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    channels: AnyValue,
    kernel_size: AnyValue,
    data_layout: str,
    kernel_layout: str,
    out_dtype: AnyValue,
) -> Value:
    """Padding goes pair by pair, before and after each axis."""
    rank = ctx.type(data).rank - 2
    pad = [each for pair in zip(padding[:rank], padding[rank:], strict=True) for each in pair]
    return ctx.emit(
        "conv",
        x=data,
        weight=weight,
        bias=bias,
        strides=strides,
        pad_type="custom",
        pad=pad,
        dilations=dilation,
        groups=groups,
    )
