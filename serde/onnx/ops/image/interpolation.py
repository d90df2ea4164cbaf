"""Resize emitted, axis by axis where it must be, or spelled out as weighted neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.allocation import zeros
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.conv.windows import require_fixed
from serde.onnx.ops.elementwise.convert import as_dtype, cast, emit_where
from serde.relay.ir.dims import Dim, product
from serde.relay.op.image.interpolation import Interpolation
from serde.weights import Array


def emit_resize(
    ctx: ExportContext,
    x: Value,
    *,
    sizes: Value | None = None,
    scales: Value | None = None,
    **attrs: AnyValue,
) -> Value:
    """Emit Resize; up to 12 its region and scales cannot be left out, only be empty."""
    empty = ctx.const(np.zeros(0, np.float32)) if ctx.version < 13 else None
    if scales is not None:
        return ctx.emit("Resize", x, empty, scales, **attrs)
    return ctx.emit("Resize", x, empty, empty, sizes, **attrs)


def interpolate(
    ctx: ExportContext,
    x: Value,
    how: Interpolation,
    ndim: int,
    roi: tuple[float, ...] | None,
    outside: float,
) -> Value:
    """Gather the neighbours along each axis and weigh them; lengths are fixed."""
    given, result = ctx.type(x), ctx.result_type()
    region = roi or (0.0,) * (2 * ndim)
    exact = how.method == "nearest_neighbor" or given.dtype == "float64"
    work = given.dtype if exact else "float32"
    found = as_dtype(ctx, x, work)
    beyond: list[Array] = []
    for i, axis in enumerate(range(2, given.rank)):
        shape = [-1 if each == axis else 1 for each in range(given.rank)]
        (length,), (size,) = (
            ctx.static_lengths(x, [axis]),
            require_fixed([result.shape[axis]], "size"),
        )
        how.draw(size)
        indices = how.places(length, size, region[i], region[ndim + i])
        beyond.append(((indices < 0) | (indices > length - 1)).reshape(shape))
        parts = []
        for index, weight in how.taps(indices, length):
            part = ctx.emit("Gather", found, ctx.const(index, np.int64), axis=axis)
            if weight is not None:
                part = ctx.emit("Mul", part, ctx.const(weight.reshape(shape), work))
            parts.append(part)
        found = parts[0]
        for part in parts[1:]:
            found = ctx.emit("Add", found, part)
    if how.mode == "tf_crop_and_resize" and any(each.any() for each in beyond):
        marks = zeros(np.broadcast_shapes(*(each.shape for each in beyond)), np.bool_)
        for each in beyond:
            marks |= each
        found = emit_where(ctx, ctx.const(marks), ctx.const(outside, work), found, work)
    return found if work == result.dtype else cast(ctx, found, result.dtype)


def resize_axis_by_axis(
    ctx: ExportContext,
    x: Value,
    lengths: Sequence[Dim],
    sizes: Sequence[Dim],
    how: Mapping[str, AnyValue],
) -> Value:
    """Resize the spatial axes in turn, each as the width of images one pixel high."""
    shape = list(lengths)
    for axis in range(2, len(shape)):
        rows = product(shape[1:axis])
        columns = product(shape[axis + 1 :])
        if columns == 1:
            folded = [shape[0], rows, 1, shape[axis]]
            grown: list[Dim] = [shape[0], rows, 1, sizes[axis]]
        else:
            folded = [shape[0], rows, shape[axis], columns]
            grown = [shape[0], rows, sizes[axis], columns]
        x = ctx.emit("Reshape", x, ctx.shape(folded))
        x = emit_resize(ctx, x, sizes=ctx.shape(grown), **how)
        shape[axis] = sizes[axis]
    return ctx.emit("Reshape", x, ctx.shape(shape))
