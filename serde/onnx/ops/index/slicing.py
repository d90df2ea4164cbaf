"""Rectangular regions, cut or overwritten."""

from __future__ import annotations

from typing import Literal

import numpy as np

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.shape.reshape import counting, integers
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import SymDim

END = int(np.iinfo(np.int64).max)


@OPS.exports("strided_slice")
def export_strided_slice(
    ctx: ExportContext,
    x: Value,
    *,
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...] | None,
    slice_mode: Literal["end", "size"],
    axes: tuple[int, ...] | None,
) -> Value:
    """In mode "size" the ends are lengths, and -1 means all that follows.

    Of a slice backwards, ONNX moves a start in front of the axis to its first element.
    """
    places = list(axes) if axes is not None else list(range(len(begin)))
    steps = [*(strides or ()), *[1] * len(places)][: len(places)]
    stops = list(end)
    if slice_mode == "size":
        steps = [1] * len(places)
        stops = [END if size < 0 else start + size for start, size in zip(begin, end, strict=True)]
    starts = list(begin)
    for index, (place, step) in enumerate(zip(places, steps, strict=True)):
        length = ctx.type(x).shape[place]
        if step < 0 and isinstance(length, int) and starts[index] < -length:
            starts[index], stops[index] = 0, 0
    return ctx.emit(
        "Slice", x, ctx.ints(starts), ctx.ints(stops), ctx.ints(places), ctx.ints(steps)
    )


@OPS.exports("slice_like")
def export_slice_like(
    ctx: ExportContext, x: Value, like: Value, *, axes: tuple[int, ...] | None
) -> Value:
    rank = ctx.type(x).rank
    places = [axis % rank for axis in axes] if axes else list(range(ctx.type(like).rank))
    wanted = [ctx.type(like).shape[axis] for axis in places]
    if not all(isinstance(dim, int) or (isinstance(dim, SymDim) and dim.name) for dim in wanted):
        ends = ctx.emit("Gather", ctx.emit("Shape", like), ctx.ints(places), axis=0)
    else:
        ends = ctx.shape(wanted)
    return ctx.emit("Slice", x, ctx.ints([0] * len(places)), ends, ctx.ints(places))


@OPS.exports("strided_set")
def export_strided_set(
    ctx: ExportContext, x: Value, region: Value, begin: Value, end: Value, strides: Value
) -> Value:
    """A Slice of the places of all elements tells where the region goes."""
    shape, flat = ctx.emit("Shape", x), ctx.ints([-1])
    steps = counting(ctx, ctx.emit("Reshape", ctx.emit("Size", x), ctx.ints([1])))
    places = ctx.emit("Reshape", steps, shape)
    (count,) = ctx.static_shape(begin)
    if count:
        bounds = [integers(ctx, each) for each in (begin, end)]
        axes = ctx.ints(range(count))
        places = ctx.emit("Slice", places, *bounds, axes, integers(ctx, strides))
    spread = ctx.emit("Expand", region, ctx.emit("Shape", places))
    operands = [ctx.emit("Reshape", each, flat) for each in (x, places, spread)]
    return ctx.emit("Reshape", ctx.emit("ScatterElements", *operands, axis=0), shape)
