"""Convolution at learned places, and the correlation of two images."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.framework import Framework
from serde.relax.ops.conv.windows import arrange, arrange_weight, cast, sum_dtype
from serde.relax.ops.table import OPS
from serde.relay.ir.shapes import split_padding

__all__: list[str] = []


def _read_between(
    framework: Framework,
    image: AnyValue,
    before: Sequence[AnyValue],
    places: Sequence[AnyValue],
    dtype: str,
) -> AnyValue:
    """Return what lies between pixels: zero before the first, fading to zero after the last."""
    tir = framework.tir
    zero, one = tir.const(0.0, dtype), tir.const(1.0, dtype)
    lengths = image.shape[2:]
    ends = [tir.const(float(n), dtype) if isinstance(n, int) else n.astype(dtype) for n in lengths]
    near = [tir.all(p >= zero, p < end) for p, end in zip(places, ends, strict=True)]
    total = zero
    for corner in product((0, 1), repeat=2):
        index, weight, inside = [], one, list(near)
        for place, end, length, offset in zip(places, ends, lengths, corner, strict=True):
            low = tir.floor(place)
            weight = weight * (place - low if offset else one - (place - low))
            inside.append(low + tir.const(float(offset), dtype) < end)
            held = tir.max(tir.min(low, end), zero).astype("int64") + offset
            index.append(tir.min(held, length - 1))
        read = image[(*before, *index)] * weight
        total = total + tir.if_then_else(tir.all(*inside), read, zero)
    return total


@OPS.exports("nn.deformable_conv2d", ignored=("channels", "kernel_size", "out_dtype"))
def export_deformable_conv2d(
    ctx: ExportContext,
    data: Value,
    offset: Value,
    weight: Value,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    deformable_groups: int,
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
) -> Value:
    """What all taps read is a stage of its own."""
    framework, dtype = ctx.framework, ctx.type(data).dtype
    te, tir = framework.te, framework.tir
    wide = sum_dtype(dtype, None)
    before, _ = split_padding(padding, 2)

    def deformable_conv2d(image: AnyValue, shifts: AnyValue, filters: AnyValue) -> AnyValue:
        batch, inputs = image.shape[:2]
        outputs, part, height, width = filters.shape
        rows, columns = shifts.shape[2:]
        some = tir.floordiv(inputs, deformable_groups)

        def read(n: AnyValue, c: AnyValue, k: AnyValue, y: AnyValue, x: AnyValue) -> AnyValue:
            tap = (tir.floordiv(c, some) * (height * width) + k) * 2
            steps = (tir.floordiv(k, width), tir.floormod(k, width))
            places = []
            for axis, (at, step) in enumerate(zip((y, x), steps, strict=True)):
                regular = at * strides[axis] + step * dilation[axis] - before[axis]
                places.append(regular.astype(wide) + shifts[n, tap + axis, y, x])
            return _read_between(framework, image, (n, c), places, wide)

        shape = (batch, inputs, height * width, rows, columns)
        taps = te.compute(shape, read, name="taps")
        channel = te.reduce_axis((0, part), name="c")
        tap = te.reduce_axis((0, height * width), name="k")

        def add_up(n: AnyValue, o: AnyValue, y: AnyValue, x: AnyValue) -> AnyValue:
            group = tir.floordiv(o, tir.floordiv(outputs, groups))
            factor = filters[o, channel, tir.floordiv(tap, width), tir.floormod(tap, width)]
            found = taps[n, group * part + channel, tap, y, x]
            return te.sum(found * factor, axis=[channel, tap])

        return te.compute((batch, outputs, rows, columns), add_up, name="deformable_conv2d")

    w, _ = arrange_weight(ctx, weight, kernel_layout, "OI", 2)
    operands = [arrange(ctx, each, data_layout, "NCHW") for each in (data, offset)]
    operands = [cast(ctx, each, dtype, wide) for each in (*operands, w)]
    made = cast(ctx, ctx.emit_te(deformable_conv2d, *operands), wide, ctx.result_type().dtype)
    return arrange(ctx, made, "NCHW", out_layout or data_layout)


@OPS.exports("nn.correlation", ignored=("layout",))
def export_correlation(
    ctx: ExportContext,
    data1: Value,
    data2: Value,
    *,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: tuple[int, ...],
    is_multiply: bool,
) -> Value:
    framework, dtype = ctx.framework, ctx.type(data1).dtype
    te, tir = framework.te, framework.tir
    wide = sum_dtype(dtype, None)
    before, after = split_padding(padding, 2)
    border, reach = max_displacement + kernel_size // 2, max_displacement // stride2
    count = 2 * reach + 1

    def correlation(one: AnyValue, other: AnyValue) -> AnyValue:
        batch, channels, *space = one.shape
        lengths = [
            tir.floordiv(n + b + a - 2 * border + stride1 - 1, stride1)
            for n, b, a in zip(space, before, after, strict=True)
        ]
        channel = te.reduce_axis((0, channels), name="c")
        taps = [te.reduce_axis((0, kernel_size), name=f"k{axis}") for axis in (0, 1)]

        def read(image: AnyValue, n: AnyValue, places: Sequence[AnyValue]) -> AnyValue:
            inner = [p - b for p, b in zip(places, before, strict=True)]
            inside = [tir.all(p >= 0, p < end) for p, end in zip(inner, space, strict=True)]
            value = image[(n, channel, *inner)]
            return tir.if_then_else(tir.all(*inside), value, tir.const(0, wide))

        def add_up(n: AnyValue, d: AnyValue, *at: AnyValue) -> AnyValue:
            moves = (tir.floordiv(d, count) - reach, tir.floormod(d, count) - reach)
            axes = zip(at, taps, strict=True)
            places = [max_displacement + p * stride1 + k for p, k in axes]
            moved = [p + m * stride2 for p, m in zip(places, moves, strict=True)]
            first, second = read(one, n, places), read(other, n, moved)
            likeness = first * second if is_multiply else tir.abs(first - second)
            return te.sum(likeness, axis=[channel, *taps])

        sums = te.compute((batch, count * count, *lengths), add_up, name="likeness")
        size = channels * (kernel_size * kernel_size)
        divisor = tir.const(float(size), wide) if isinstance(size, int) else size.astype(wide)
        return te.compute(sums.shape, lambda *at: sums[at] / divisor, name="correlation")

    operands = [cast(ctx, each, dtype, wide) for each in (data1, data2)]
    return cast(ctx, ctx.emit_te(correlation, *operands), wide, dtype)
