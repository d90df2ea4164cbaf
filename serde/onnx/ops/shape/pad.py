"""Padding and dilation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise import cast
from serde.onnx.ops.shape.reshape import counting, lengths, unsqueeze
from serde.onnx.ops.table import OPS
from serde.weights import numpy_dtype

PADDED = {"bool": "uint8", "int16": "int32", "uint16": "int32"}
"""Dtypes of which not every version of Pad is in ONNX Runtime, and one that holds each."""


def padded(
    ctx: Ctx, x: Value, dtype: str, widths: Value, value: Value | None, mode: str = "constant"
) -> Value:
    """Return `x`, of `dtype`, padded; `widths` has all before the axes first."""
    work = PADDED.get(dtype)
    if work is None:
        return ctx.emit("Pad", x, widths, value, mode=mode)
    filler = None if value is None else cast(ctx, value, work)
    return cast(ctx, ctx.emit("Pad", cast(ctx, x, work), widths, filler, mode=mode), dtype)


@OPS.exports("nn.pad")
def export_pad(
    ctx: Ctx, x: Value, value: Value, *, pad_width: tuple[tuple[int, int], ...], pad_mode: str
) -> Value:
    """ONNX lists all widths before the axes first, then those behind them."""
    widths = ctx.ints([w[0] for w in pad_width] + [w[1] for w in pad_width])
    dtype = ctx.type(x).dtype
    if pad_mode != "constant":
        return padded(ctx, x, dtype, widths, None, pad_mode)
    if ctx.type(value).dtype != dtype:
        value = ctx.scalar_like(x, ctx.constant(value).item())
    return padded(ctx, x, dtype, widths, value)


@OPS.exports("nn.mirror_pad")
def export_mirror_pad(
    ctx: Ctx, x: Value, *, mode: str, pad_width: tuple[tuple[int, int], ...]
) -> Value:
    if mode != "REFLECT":
        return _symmetric(ctx, x, pad_width)
    widths = ctx.ints([w[0] for w in pad_width] + [w[1] for w in pad_width])
    return padded(ctx, x, ctx.type(x).dtype, widths, None, "reflect")


def _symmetric(ctx: Ctx, x: Value, pad_width: tuple[tuple[int, int], ...]) -> Value:
    """Look each place up: one before the edge counts from it, one behind the last from there."""
    zero = ctx.const(0, np.int64)
    for axis, (before, after) in enumerate(pad_width):
        if not before and not after:
            continue
        length = lengths(ctx, x, [axis])
        total = ctx.emit("Add", length, ctx.const(before + after, np.int64))
        places = ctx.emit("Sub", counting(ctx, total), ctx.const(before, np.int64))
        mirrored = ctx.emit("Sub", ctx.const(-1, np.int64), places)
        places = ctx.emit("Where", ctx.emit("Less", places, zero), mirrored, places)
        last = ctx.emit("Sub", ctx.emit("Add", length, length), ctx.const(1, np.int64))
        inside = ctx.emit("Less", places, length)
        places = ctx.emit("Where", inside, places, ctx.emit("Sub", last, places))
        x = replace(ctx.emit("Gather", x, places, axis=axis), type=ctx.type(x))
    return x


@OPS.exports("nn.dilate")
def export_dilate(ctx: Ctx, x: Value, *, strides: tuple[int, ...], dilation_value: float) -> Value:
    """Each element gets an axis of its own to be padded on; what follows the last is cut off."""
    type_ = ctx.type(x)
    wide = [axis for axis, stride in enumerate(strides) if stride != 1]
    if not wide:
        return x
    value = np.asarray(dilation_value).astype(numpy_dtype(type_.dtype))
    single = unsqueeze(ctx, x, [axis + 1 + number for number, axis in enumerate(wide)])
    behind = []
    for stride in strides:
        behind += [0] if stride == 1 else [0, stride - 1]
    widths = ctx.ints([*[0] * len(behind), *behind])
    apart = padded(ctx, single, type_.dtype, widths, ctx.const(value, type_.dtype))
    shape = ctx.emit("Mul", lengths(ctx, x, range(type_.rank)), ctx.ints(strides))
    joined = ctx.emit("Reshape", apart, shape)
    starts, ends = ctx.ints([0] * len(wide)), ctx.ints(1 - strides[axis] for axis in wide)
    return ctx.emit("Slice", joined, starts, ends, ctx.ints(wide))
