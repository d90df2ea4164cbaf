"""Transposed convolutions over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.framework import Framework
from serde.relax.ops.conv.windows import add_bias, cast, sum_dtype
from serde.relax.ops.table import OPS
from serde.relay.ir.shapes import split_padding
from serde.relay.lowering.conv import TRANSPOSED
from serde.relay.op.conv.windows import TransposedConvolution

__all__: list[str] = []


@OPS.exports(*TRANSPOSED)
def export_conv_transpose(
    ctx: ExportContext,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    conv: TransposedConvolution,
) -> Value:
    """Relax's own of one or two axes; TVM computes no others in all releases, nor dilated ones."""
    rank, dtype = len(conv.strides), ctx.type(data).dtype
    before, after = split_padding(conv.padding, rank)
    total = sum_dtype(dtype, conv.out_dtype)
    steps = zip(conv.output_padding, conv.strides, strict=True)
    spans = zip(ctx.type(weight).shape[2:], conv.dilation, before, after, strict=True)
    if (
        rank < 3
        and set(conv.dilation) == {1}
        and all(extra < step for extra, step in steps)
        and all(isinstance(n, int) and max(b, a) < n for n, _, b, a in spans)
    ):
        x, w = (cast(ctx, each, dtype, total) for each in (data, weight))
        made = ctx.emit(
            f"nn.conv{rank}d_transpose",
            x,
            w,
            strides=list(conv.strides),
            padding=[*before, *after],
            output_padding=list(conv.output_padding),
            dilation=list(conv.dilation),
            groups=conv.groups,
            data_layout=conv.data_layout,
            kernel_layout=conv.kernel_layout,
        )
    else:
        compute = conv_transpose(
            ctx.framework,
            conv.strides,
            before,
            after,
            conv.output_padding,
            conv.dilation,
            conv.groups,
            total,
        )
        made = ctx.emit_te(compute, data, weight)
    return add_bias(ctx, cast(ctx, made, total, ctx.result_type().dtype), bias, rank)


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
