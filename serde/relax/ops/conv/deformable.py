"""Convolution at learned places, and the correlation of two images."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.framework import Framework
from serde.relax.ops.conv.windows import cast, sum_dtype
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

    operands = [cast(ctx, each, dtype, wide) for each in (data, offset, weight)]
    made = ctx.emit_te(deformable_conv2d, *operands)
    return cast(ctx, made, wide, ctx.result_type().dtype)
