"""Tensors filled with one value, and ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.table import OPS
from serde.relay.ir.dims import Any, Dim

__all__ = ["fill"]


def fill(ctx: ExportContext, value: Value, lengths: list[AnyValue], dtype: str) -> Value:
    """Write one value everywhere.

    Args:
        ctx: The context.
        value: A scalar.
        lengths: Lengths of the result, as TVM takes them.
        dtype: Dtype of the result.
    """
    te = ctx.framework.te
    shape = ctx.wide(lengths)

    def full(x: AnyValue) -> AnyValue:
        return te.compute(shape, lambda *_: x().astype(dtype), name="full")

    return ctx.emit_te(full, value)


def _make_exporter(op: str) -> Callable[..., Value]:
    def export(ctx: ExportContext, *, shape: tuple[Dim, ...] | None, dtype: AnyValue) -> Value:
        return ctx.emit(op, ctx.shape_expr(shape or ()), str(dtype))

    return export


OPS.exports("zeros")(_make_exporter("zeros"))
OPS.exports("ones")(_make_exporter("ones"))


@OPS.exports("full", ignored=("dtype",))
def export_full(ctx: ExportContext, fill_value: Value, *, shape: tuple[Dim, ...] | None) -> Value:
    return _full(ctx, fill_value, ctx.dims(shape or ()), ctx.result_type().dtype)


@OPS.exports("full_like")
def export_full_like(ctx: ExportContext, data: Value, fill_value: Value) -> Value:
    return _full(ctx, fill_value, ctx.extents(data), ctx.type(data).dtype)


def _full(ctx: ExportContext, value: Value, lengths: list[AnyValue], dtype: str) -> Value:
    if value.data is None:
        return fill(ctx, value, lengths, dtype)
    own = ctx.const(value.data.astype(ctx.const(0, dtype).data.dtype))  # type: ignore[union-attr]
    shape = ctx.framework.relax.ShapeExpr(ctx.wide(lengths))
    return ctx.emit("full", shape, own, dtype)


@OPS.exports("arange")
def export_arange(
    ctx: ExportContext, start: Value, end: Value, step: Value, *, dtype: AnyValue
) -> Value:
    """The number of values is computed in the widest numbers, and read back."""
    te, tir = ctx.framework.te, ctx.framework.tir
    own = str(dtype)
    is_float = "float" in own
    wide = "float64" if is_float else "int64"

    def count(first: AnyValue, last: AnyValue, by: AnyValue) -> AnyValue:
        a, b, s = (each().astype(wide) for each in (first, last, by))
        if is_float:
            number = tir.ceil((b - a) / s).astype("int64")
        else:
            number = tir.const(0, "int64") - tir.floordiv(a - b, s)
        none = tir.const(0, "int64")
        return te.compute((1,), lambda _: tir.max(number, none), name="count")

    operands = [start, end, step]
    (known,) = ctx.result_type().shape
    if isinstance(known, Any):
        (length,) = ctx.read_shape(ctx.emit_te(count, *operands))
    else:
        length = ctx.dim(known)

    def arange(first: AnyValue, by: AnyValue) -> AnyValue:
        def one(place: AnyValue) -> AnyValue:
            return (first().astype(wide) + place.astype(wide) * by().astype(wide)).astype(own)

        return te.compute(ctx.wide([length]), one, name="arange")

    return ctx.emit_te(arange, start, step)
