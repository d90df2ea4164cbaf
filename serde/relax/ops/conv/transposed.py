"""Transposed convolutions over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.relax.export_context import ExportContext, Value
from serde.relax.framework import Framework
from serde.relax.ops.conv.windows import (
    add_bias,
    arrange,
    arrange_weight,
    cast,
    has_plain_layouts,
    sum_dtype,
)
from serde.relax.ops.table import OPS
from serde.relay.ir.shapes import split_padding
from serde.relay.op.conv.windows import SPATIAL

__all__: list[str] = []


@OPS.exports("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose",
             when=has_plain_layouts, ignored=("channels", "kernel_size"))  # fmt: skip
def export_conv_transpose(
    ctx: ExportContext,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    strides: tuple[int, ...],
    output_padding: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    """Relax's own of one or two axes; TVM computes no others in all releases, nor dilated ones."""
    rank, dtype = len(strides), ctx.type(data).dtype
    plain, filters = "NC" + SPATIAL[rank], "IO" + SPATIAL[rank]
    x = arrange(ctx, data, data_layout, plain)
    w, shape = arrange_weight(ctx, weight, kernel_layout, "IO", rank)
    before, after = split_padding(padding, rank)
    total = sum_dtype(dtype, out_dtype)
    steps = zip(output_padding, strides, strict=True)
    spans = zip(shape[2:], dilation, before, after, strict=True)
    if (
        rank < 3
        and set(dilation) == {1}
        and all(extra < step for extra, step in steps)
        and all(isinstance(n, int) and max(b, a) < n for n, _, b, a in spans)
    ):
        x, w = (cast(ctx, each, dtype, total) for each in (x, w))
        made = ctx.emit(
            f"nn.conv{rank}d_transpose",
            x,
            w,
            strides=list(strides),
            padding=[*before, *after],
            output_padding=list(output_padding),
            dilation=list(dilation),
            groups=groups,
            data_layout=plain,
            kernel_layout=filters,
        )
    else:
        compute = conv_transpose(
            ctx.framework, strides, before, after, output_padding, dilation, groups, total
        )
        made = ctx.emit_te(compute, x, w)
    made = cast(ctx, made, total, ctx.result_type().dtype)
    return arrange(ctx, add_bias(ctx, made, bias, rank), plain, out_layout or data_layout)


def conv_transpose(
    framework: Framework,
    strides: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
    output_padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    dtype: str,
) -> Callable[..., AnyValue]:
    """Return what computes a transposed convolution: one of data spread out by its strides."""
    te, tir = framework.te, framework.tir
    rank = len(strides)

    def conv_transpose(data: AnyValue, weight: AnyValue) -> AnyValue:
        batch, inputs, *space = data.shape
        outputs, kernel = weight.shape[1], weight.shape[2:]
        fronts = [(k - 1) * d - b for k, d, b in zip(kernel, dilation, before, strict=True)]
        lengths = [
            (n - 1) * s + (k - 1) * d + 1 + e - b - a
            for n, s, k, d, e, b, a in zip(
                space, strides, kernel, dilation, output_padding, before, after, strict=True
            )
        ]

        def spread(n: AnyValue, c: AnyValue, *places: AnyValue) -> AnyValue:
            moved = [p - front for p, front in zip(places, fronts, strict=True)]
            held = [tir.floordiv(m, s) for m, s in zip(moved, strides, strict=True)]
            hits = [m >= 0 for m in moved]
            hits += [tir.floormod(m, s) == 0 for m, s in zip(moved, strides, strict=True)]
            hits += [each < length for each, length in zip(held, space, strict=True)]
            read = data[(n, c, *held)].astype(dtype)
            return tir.if_then_else(tir.all(*hits), read, tir.const(0, dtype))

        spans = [n + (k - 1) * d for n, k, d in zip(lengths, kernel, dilation, strict=True)]
        wide = te.compute((batch, inputs, *spans), spread, name="spread")
        part = tir.floordiv(inputs, groups)
        channel = te.reduce_axis((0, part), name="c")
        taps = [te.reduce_axis((0, kernel[i]), name=f"k{i}") for i in range(rank)]

        def add_up(n: AnyValue, o: AnyValue, *places: AnyValue) -> AnyValue:
            source = tir.floordiv(o, outputs) * part + channel
            read = [p + k * d for p, k, d in zip(places, taps, dilation, strict=True)]
            turned = [length - 1 - k for length, k in zip(kernel, taps, strict=True)]
            factor = weight[(source, tir.floormod(o, outputs), *turned)].astype(dtype)
            return te.sum(wide[(n, source, *read)] * factor, axis=[channel, *taps])

        return te.compute((batch, outputs * groups, *lengths), add_up, name="conv_transpose")

    return conv_transpose
