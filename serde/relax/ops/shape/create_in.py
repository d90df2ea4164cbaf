"""Importers of what makes tensors of nothing."""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext, Scalar, Shape
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr, Tuple
from serde.weights import numpy_dtype

__all__: list[str] = []


def _fill(ctx: ImportContext, value: Expr, shape: Shape, dtype: str) -> Expr:
    known = ctx.dims_of(shape)
    return relay.full(value, ctx.shape_tensor(shape) if known is None else known, dtype)


@OPS.imports("relax.full")
def import_full(ctx: ImportContext, fill_value: Expr, *, shape: Shape, dtype: str | None) -> Expr:
    return _fill(ctx, fill_value, shape, dtype or ctx.dtype(fill_value))


@OPS.imports("relax.zeros")
def import_zeros(ctx: ImportContext, *, shape: Shape, dtype: str) -> Expr:
    return _fill(ctx, ctx.const(0, dtype), shape, dtype)


@OPS.imports("relax.ones")
def import_ones(ctx: ImportContext, *, shape: Shape, dtype: str) -> Expr:
    return _fill(ctx, ctx.const(1, dtype), shape, dtype)


@OPS.imports("relax.full_like")
def import_full_like(ctx: ImportContext, x: Expr, fill_value: Expr, *, dtype: str | None) -> Expr:
    like = x if dtype is None else relay.cast(x, dtype)
    return relay.full_like(like, _as(ctx, fill_value, ctx.dtype(like)))


@OPS.imports("relax.zeros_like")
def import_zeros_like(ctx: ImportContext, x: Expr, *, dtype: str | None) -> Expr:
    return relay.zeros_like(_as(ctx, x, dtype or ctx.dtype(x)))


@OPS.imports("relax.ones_like")
def import_ones_like(ctx: ImportContext, x: Expr, *, dtype: str | None) -> Expr:
    return relay.ones_like(_as(ctx, x, dtype or ctx.dtype(x)))


def _as(ctx: ImportContext, x: Expr, dtype: str) -> Expr:
    return x if ctx.dtype(x) == dtype else relay.cast(x, dtype)


@OPS.imports("relax.arange")
def import_arange(
    ctx: ImportContext, *, start: Scalar, end: Scalar, step: Scalar, dtype: str | None
) -> Expr:
    dtype = dtype or "int64"
    first, last, each = (ctx.tensor(bound, dtype) for bound in (start, end, step))
    return relay.arange(first, last, each, dtype=dtype)


@OPS.imports("relax.eye")
def import_eye(ctx: ImportContext, *, n: Scalar, m: Scalar, k: Scalar, dtype: str) -> Expr:
    rows, columns, diagonal = ctx.number(n), ctx.number(m), ctx.number(k)
    return ctx.const(allocation.eye(rows, columns, diagonal), dtype)


@OPS.imports("relax.eye_like")
def import_eye_like(ctx: ImportContext, x: Expr, *, k: Scalar, dtype: str | None) -> Expr:
    rows, columns = ctx.static_shape(x, 2)
    return ctx.const(allocation.eye(rows, columns, ctx.number(k)), dtype or ctx.dtype(x))


@OPS.imports("relax.hamming_window")
def import_hamming_window(
    ctx: ImportContext,
    *,
    window_size: Scalar,
    periodic: Scalar,
    alpha: Scalar,
    beta: Scalar,
    dtype: str,
) -> Expr:
    size = ctx.number(window_size)
    if size == 1:
        return ctx.const([1], dtype)
    steps = allocation.arange(size, dtype=numpy_dtype(dtype))
    angles = 2 * np.pi * steps / (size if ctx.number(periodic) else size - 1)
    return ctx.const(ctx.number(alpha) - ctx.number(beta) * np.cos(angles), dtype)


@OPS.imports("relax.tril")
def import_tril(ctx: ImportContext, x: Expr, *, k: Scalar) -> Expr:
    return relay.trilu(x, ctx.const(ctx.number(k), "int32"), upper=False)


@OPS.imports("relax.triu")
def import_triu(ctx: ImportContext, x: Expr, *, k: Scalar) -> Expr:
    return relay.trilu(x, ctx.const(ctx.number(k), "int32"), upper=True)


@OPS.imports("relax.one_hot")
def import_one_hot(
    ctx: ImportContext, indices: Expr, *, on_value: Scalar, off_value: Scalar, depth: int, axis: int
) -> Expr:
    if on_value.dtype != off_value.dtype:
        raise Unsupported(f"values of {on_value.dtype} and of {off_value.dtype}")
    on, off = ctx.tensor(on_value), ctx.tensor(off_value)
    return relay.one_hot(indices, on, off, depth, axis, on_value.dtype)


@OPS.imports("relax.meshgrid")
def import_meshgrid(
    ctx: ImportContext, tensors: Expr, *, indexing: Literal["ij", "xy"] | None
) -> list[Expr]:
    fields = ctx.fields(tensors)
    found = relay.meshgrid(Tuple(fields), indexing=indexing or "ij")
    return [found[place] for place in range(len(fields))]
