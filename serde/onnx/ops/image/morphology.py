"""Greatest sums over windows of images."""

from __future__ import annotations

from functools import partial, reduce
from itertools import product
from math import prod

from serde.core.allocation import iterations
from serde.core.weights import numpy_dtype
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.conv.windows import to_onnx_pads
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS
from serde.relay.ir.precision import lowest
from serde.relay.ir.shapes import is_float


@OPS.exports("image.dilation2d", ignored=("out_dtype",))
def export_dilation2d(
    ctx: ExportContext,
    x: Value,
    weight: Value,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilations: tuple[int, ...],
) -> Value:
    """``y[i, j] = max(x[i + di, j + dj] + w[di, dj])``, a slice of the image for each (di, dj)."""
    dtype = ctx.result_type().dtype
    kernel, counts = ctx.static_lengths(weight, [1, 2]), ctx.result_type().shape[2:]
    image, sides = x, to_onnx_pads(padding, 2)
    if any(sides):
        least = ctx.const(lowest(numpy_dtype(ctx.type(x).dtype)))
        image = ctx.emit("Pad", image, ctx.ints([0, 0, *sides[:2], 0, 0, *sides[2:]]), least)
    window = ctx.emit("Transpose", weight, perm=[1, 2, 0])
    if ctx.type(x).dtype != dtype:
        image, window = cast(ctx, image, dtype), cast(ctx, window, dtype)
    iterations(prod(kernel), f"a window of {list(kernel)}")
    sums = []
    for position in product(*map(range, kernel)):
        starts = [at * step for at, step in zip(position, dilations, strict=True)]
        ends = [s + (n - 1) * by + 1 for s, n, by in zip(starts, counts, strides, strict=True)]
        region = ctx.emit(
            "Slice", image, ctx.ints(starts), ctx.shape(ends), ctx.ints([2, 3]), ctx.ints(strides)
        )
        element = ctx.emit("GatherND", window, ctx.ints(position))
        sums.append(ctx.emit("Add", region, unsqueeze(ctx, element, [1, 2])))
    if ctx.version >= 12 or is_float(dtype):
        return ctx.emit("Max", *sums)
    return reduce(partial(_emit_max, ctx), sums)


def _emit_max(ctx: ExportContext, a: Value, b: Value) -> Value:
    """Before 12, Max takes no integers."""
    return ctx.emit("Where", ctx.emit("Greater", a, b), a, b)
