"""Tensors made of values and shapes, identity matrices, and triangles of matrices."""

from __future__ import annotations

from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.relax.ops.table import OPS, Export, Import, Scalar, Shape, Value
from serde.relay.ir import Any, Dim, Expr, call
from serde.walk.takes import CONSTANT, Takes

__all__ = ["fill"]


def fill(ctx: Export, value: Value, lengths: list[AnyValue], dtype: str) -> Value:
    """Write one value everywhere.

    Args:
        ctx: The context.
        value: A scalar.
        lengths: Lengths of the result, as TVM takes them.
        dtype: Dtype of the result.
    """
    te = ctx.framework.te

    def full(x: AnyValue, shape: list[AnyValue]) -> AnyValue:
        return te.compute(shape, lambda *_: x().astype(dtype), name="full")

    return ctx.emit_te(full, value, ctx.wide(lengths))


def _export_constant(
    ctx: Export, *, op: str, shape: tuple[Dim, ...] | None, dtype: AnyValue
) -> Value:
    return ctx.emit(op, ctx.shape_expr(shape or ()), str(dtype))


@OPS.exports("full", ignored=("dtype",))
def export_full(ctx: Export, fill_value: Value, *, shape: tuple[Dim, ...] | None) -> Value:
    return _full(ctx, fill_value, ctx.dims(shape or ()), ctx.result_type().dtype)


@OPS.exports("full_like")
def export_full_like(ctx: Export, data: Value, fill_value: Value) -> Value:
    return _full(ctx, fill_value, ctx.extents(data), ctx.type(data).dtype)


def _full(ctx: Export, value: Value, lengths: list[AnyValue], dtype: str) -> Value:
    if value.data is None:
        return fill(ctx, value, lengths, dtype)
    own = ctx.const(value.data.astype(ctx.const(0, dtype).data.dtype))  # type: ignore[union-attr]
    shape = ctx.framework.relax.ShapeExpr(ctx.wide(lengths))
    return ctx.emit("full", shape, own, dtype)


@OPS.imports("relax.full")
def import_full(ctx: Import, fill_value: Expr, *, shape: Shape, dtype: str | None) -> Expr:
    return _fill(ctx, fill_value, shape, dtype or ctx.dtype(fill_value))


@OPS.imports("relax.full_like")
def import_full_like(ctx: Import, x: Expr, fill_value: Expr, *, dtype: str | None) -> Expr:
    like = x if dtype is None else relay.cast(x, dtype)
    return relay.full_like(like, _as(ctx, fill_value, ctx.dtype(like)))


@OPS.exports("arange")
def export_arange(ctx: Export, start: Value, end: Value, step: Value, *, dtype: AnyValue) -> Value:
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

    def arange(first: AnyValue, by: AnyValue, shape: list[AnyValue]) -> AnyValue:
        def one(place: AnyValue) -> AnyValue:
            return (first().astype(wide) + place.astype(wide) * by().astype(wide)).astype(own)

        return te.compute(shape, one, name="arange")

    return ctx.emit_te(arange, start, step, ctx.wide([length]))


def _fill(ctx: Import, value: Expr, shape: Shape, dtype: str) -> Expr:
    known = ctx.dims_of(shape)
    return relay.full(value, ctx.shape_tensor(shape) if known is None else known, dtype)


def _as(ctx: Import, x: Expr, dtype: str) -> Expr:
    return x if ctx.dtype(x) == dtype else relay.cast(x, dtype)


def _import_constant(ctx: Import, *, value: int, shape: Shape, dtype: str) -> Expr:
    return _fill(ctx, ctx.const(value, dtype), shape, dtype)


def _import_constant_like(ctx: Import, x: Expr, *, op: str, dtype: str | None) -> Expr:
    return call(op, _as(ctx, x, dtype or ctx.dtype(x)))


for _name, _value in {"zeros": 0, "ones": 1}.items():
    OPS.exports(_name)(partial(_export_constant, op=_name))
    OPS.imports(f"relax.{_name}")(partial(_import_constant, value=_value))
    OPS.imports(f"relax.{_name}_like")(partial(_import_constant_like, op=f"{_name}_like"))


@OPS.imports("relax.arange")
def import_arange(
    ctx: Import, *, start: Scalar, end: Scalar, step: Scalar, dtype: str | None
) -> Expr:
    dtype = dtype or "int64"
    first, last, each = (ctx.tensor(bound, dtype) for bound in (start, end, step))
    return relay.arange(first, last, each, dtype=dtype)


@OPS.imports("relax.hamming_window")
def import_hamming_window(
    ctx: Import, *, window_size: Scalar, periodic: Scalar, alpha: Scalar, beta: Scalar, dtype: str
) -> Expr:
    size = ctx.number(window_size)
    if size == 1:
        return ctx.const([1], dtype)
    steps = allocation.arange(size, dtype=numpy_dtype(dtype))
    angles = 2 * np.pi * steps / (size if ctx.number(periodic) else size - 1)
    return ctx.const(ctx.number(alpha) - ctx.number(beta) * np.cos(angles), dtype)


@OPS.imports("relax.one_hot")
def import_one_hot(
    ctx: Import, indices: Expr, *, on_value: Scalar, off_value: Scalar, depth: int, axis: int
) -> Expr:
    if on_value.dtype != off_value.dtype:
        raise Unsupported(f"values of {on_value.dtype} and of {off_value.dtype}")
    on, off = ctx.tensor(on_value), ctx.tensor(off_value)
    return relay.one_hot(indices, on, off, depth, axis, on_value.dtype)


@OPS.exports("trilu", takes=Takes(k=CONSTANT))
def export_trilu(ctx: Export, data: Value, k: Value, *, upper: bool) -> Value:
    return ctx.emit("triu" if upper else "tril", data, int(ctx.constant(k)))


@OPS.imports("relax.eye")
def import_eye(ctx: Import, *, n: Scalar, m: Scalar, k: Scalar, dtype: str) -> Expr:
    known = ctx.dims_of([n, m, k]) or [None]
    if all(isinstance(each, int) for each in known):
        return ctx.const(allocation.eye(*known), dtype)
    rows, columns, diagonal = (ctx.tensor(each, "int64") for each in (n, m, k))
    zero, one = ctx.const(0, "int64"), ctx.const(1, "int64")
    places, reach = (relay.arange(zero, each, one, "int64") for each in (rows, columns))
    moved = relay.add(relay.expand_dims(places, 1), diagonal)
    return relay.cast(relay.equal(moved, reach), dtype)


@OPS.imports("relax.eye_like")
def import_eye_like(ctx: Import, x: Expr, *, k: Scalar, dtype: str | None) -> Expr:
    rows, columns = ctx.static_shape(x, 2)
    return ctx.const(allocation.eye(rows, columns, ctx.number(k)), dtype or ctx.dtype(x))


def _import_triangle(ctx: Import, x: Expr, *, k: Scalar, upper: bool) -> Expr:
    return relay.trilu(x, ctx.tensor(k, "int32"), upper)


OPS.imports("relax.tril")(partial(_import_triangle, upper=False))
OPS.imports("relax.triu")(partial(_import_triangle, upper=True))
