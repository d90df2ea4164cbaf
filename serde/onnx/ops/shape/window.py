"""Windows that slide over a tensor."""

from __future__ import annotations

import numpy as np

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.shape.reshape import along, counting
from serde.onnx.ops.table import OPS


@OPS.exports("sliding_window")
def export_sliding_window(
    ctx: Ctx, x: Value, *, axis: int, window_shape: tuple[int, ...], strides: tuple[int, ...]
) -> Value:
    """Each axis becomes two, places and steps within the window; the steps then go to the end."""
    rank = ctx.type(x).rank
    first = axis % rank
    count = rank - first
    for number in reversed(range(count)):
        starts = counting(ctx, ctx.shape([ctx.result_type().shape[first + number]]))
        scaled = ctx.emit("Mul", starts, ctx.const(strides[number], np.int64))
        steps = ctx.const(np.arange(window_shape[number]), np.int64)
        places = ctx.emit("Add", along(ctx, scaled, 0, 2), steps)
        x = ctx.emit("Gather", x, places, axis=first + number)
    places_first = [*range(first, rank + count, 2), *range(first + 1, rank + count, 2)]
    return ctx.emit("Transpose", x, perm=[*range(first), *places_first])
