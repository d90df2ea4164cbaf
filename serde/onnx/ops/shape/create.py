"""Tensors that are made: shapes, filled with one value, or counting."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise import cast, filled, widened, working
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim


@OPS.exports("shape_of")
def export_shape_of(ctx: Ctx, x: Value, *, dtype: np.dtype[AnyValue] | None) -> Value:
    return _as_result(ctx, ctx.emit("Shape", x))


@OPS.exports("ndarray_size")
def export_ndarray_size(ctx: Ctx, x: Value, *, dtype: np.dtype[AnyValue] | None) -> Value:
    return _as_result(ctx, ctx.emit("Size", x))


def _as_result(ctx: Ctx, x: Value) -> Value:
    """Return int64 in the dtype that Relay says."""
    dtype = ctx.result_type().dtype
    return x if dtype == "int64" else cast(ctx, x, dtype)


@OPS.exports("zeros")
def export_zeros(
    ctx: Ctx, *, shape: tuple[Dim, ...] | None, dtype: np.dtype[AnyValue] | None
) -> Value:
    result = ctx.result_type()
    return filled(ctx, ctx.shape(result.shape), 0, result.dtype)


@OPS.exports("ones")
def export_ones(
    ctx: Ctx, *, shape: tuple[Dim, ...] | None, dtype: np.dtype[AnyValue] | None
) -> Value:
    result = ctx.result_type()
    return filled(ctx, ctx.shape(result.shape), 1, result.dtype)


@OPS.exports("full")
def export_full(
    ctx: Ctx, value: Value, *, shape: tuple[Dim, ...] | None, dtype: np.dtype[AnyValue] | None
) -> Value:
    result = ctx.result_type()
    if value.data is not None:
        return filled(ctx, ctx.shape(result.shape), value.data.item(), result.dtype)
    return ctx.emit("Expand", cast(ctx, value, result.dtype), ctx.shape(result.shape))


@OPS.exports("arange")
def export_arange(
    ctx: Ctx, start: Value, end: Value, step: Value, *, dtype: np.dtype[AnyValue]
) -> Value:
    """Floats are counted and computed in float64: a Range adds the step up in their own dtype."""
    if dtype.kind not in "iu":
        first, last, by = (cast(ctx, each, np.float64) for each in (start, end, step))
        ratio = ctx.emit("Ceil", ctx.emit("Div", ctx.emit("Sub", last, first), by))
        zero, one = ctx.const(0, np.int64), ctx.const(1, np.int64)
        steps = ctx.emit("Range", zero, cast(ctx, ratio, np.int64), one)
        size = ctx.emit("Mul", cast(ctx, steps, np.float64), by)
        return cast(ctx, ctx.emit("Add", first, size), dtype)
    work = working(dtype.name)
    bounds = [widened(ctx, each, work) for each in (start, end, step)]
    found = ctx.emit("Range", *bounds)
    return found if work == dtype.name else cast(ctx, found, dtype)
