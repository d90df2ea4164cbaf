"""Forms whose positions or lengths are operands."""

from __future__ import annotations

from typing import Any as AnyValue
from typing import Literal

import numpy as np

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.elementwise.convert import cast, widened
from serde.onnx.ops.index.scatter import dense
from serde.onnx.ops.index.slicing import END
from serde.onnx.ops.index.sorting import ordered
from serde.onnx.ops.shape.reshape import integers, unsqueeze
from serde.onnx.ops.table import OPS


@OPS.exports("dyn.strided_slice")
def export_dyn_strided_slice(
    ctx: ExportContext,
    x: Value,
    begin: Value,
    end: Value,
    strides: Value,
    *,
    slice_mode: Literal["end", "size"],
    axes: tuple[int, ...] | None,
) -> Value:
    """In mode "size" the ends are lengths, and -1 means all that follows."""
    (count,) = ctx.static_shape(begin)
    places = ctx.ints(range(count) if axes is None else axes)
    first, last, steps = (integers(ctx, each) for each in (begin, end, strides))
    if slice_mode == "size":
        steps = ctx.ints([1] * count)
        rest = ctx.emit("Less", last, ctx.const(0, np.int64))
        last = ctx.emit("Where", rest, ctx.const(END, np.int64), ctx.emit("Add", first, last))
    return ctx.emit("Slice", x, first, last, places, steps)


@OPS.exports("dyn.one_hot")
def export_dyn_one_hot(
    ctx: ExportContext,
    indices: Value,
    on: Value,
    off: Value,
    depth: Value,
    *,
    axis: int,
    dtype: np.dtype[AnyValue] | None,
) -> Value:
    """Written as a comparison, as the static form is."""
    rank = ctx.result_type().rank
    shape = [1] * rank
    shape[axis % rank] = -1
    end = ctx.emit("Reshape", integers(ctx, depth), ctx.ints([]))
    steps = ctx.emit("Range", ctx.const(0, np.int64), end, ctx.const(1, np.int64))
    wide = unsqueeze(ctx, integers(ctx, indices), [axis % rank])
    marks = ctx.emit("Equal", wide, ctx.emit("Reshape", steps, ctx.ints(shape)))
    wanted = ctx.result_type().dtype
    return ctx.emit("Where", marks, widened(ctx, on, wanted), widened(ctx, off, wanted))


@OPS.exports("dyn.topk")
def export_dyn_topk(
    ctx: ExportContext,
    x: Value,
    k: Value,
    *,
    axis: int,
    ret_type: Literal["both", "values", "indices"],
    is_ascend: bool,
    dtype: np.dtype[AnyValue] | None,
) -> Value | tuple[Value, Value]:
    """A number below 1 means all. Equal elements keep their order in both."""
    asked = ctx.emit("Reshape", integers(ctx, k), ctx.ints([1]))
    length = ctx.emit("Gather", ctx.emit("Shape", x), ctx.ints([axis]), axis=0)
    every = ctx.emit("Less", asked, ctx.ints([1]))
    count = ctx.emit("Where", every, length, asked)
    values, places = ordered(ctx, x, count, axis, is_ascend)
    if ret_type == "values":
        return values
    found = cast(ctx, places, np.dtype(dtype))
    return found if ret_type == "indices" else (values, found)


@OPS.exports("dyn.sparse_to_dense")
def export_dyn_sparse_to_dense(
    ctx: ExportContext, indices: Value, values: Value, default: Value, shape: Value
) -> Value:
    return dense(ctx, indices, values, default, integers(ctx, shape))
