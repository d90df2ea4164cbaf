"""Numbers drawn by a seed, as ONNX has it: no version says which ones."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np
import onnx
from onnx import helper

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.shape.reshape import squeeze
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.op.random.seeded import RandomNormal, RandomUniform

DType = np.dtype[AnyValue]


def _emit_random(
    ctx: ExportContext,
    op: str,
    like: Value | None,
    shape: tuple[int, ...] | None,
    dtype: DType | None,
    **attrs: float | None,
) -> Value:
    kind = None if dtype is None else helper.np_dtype_to_tensor_dtype(dtype)
    if like is None and shape:
        return ctx.emit(op, shape=list(shape), dtype=kind, **attrs)
    if like is None:
        # An attribute without elements has no type that the checker knows.
        return squeeze(ctx, ctx.emit(op, shape=[1], dtype=kind, **attrs), [0])
    return ctx.emit(f"{op}Like", like, dtype=kind, **attrs)


@OPS.exports("serde.random_uniform")
def export_random_uniform(
    ctx: ExportContext, like: Value | None, *, random: RandomUniform
) -> Value:
    return _emit_random(
        ctx,
        "RandomUniform",
        like,
        random.shape,
        random.dtype,
        low=random.low,
        high=random.high,
        seed=random.seed,
    )


@OPS.imports("RandomUniform", since=(1, 22))
def import_random_uniform(
    ctx: ImportContext,
    *,
    shape: tuple[int, ...],
    dtype: int = onnx.TensorProto.FLOAT,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Expr:
    kind = ctx.dtype(dtype)
    return call("serde.random_uniform", shape=shape, low=low, high=high, dtype=kind, seed=seed)


@OPS.exports("serde.random_normal")
def export_random_normal(ctx: ExportContext, like: Value | None, *, random: RandomNormal) -> Value:
    return _emit_random(
        ctx,
        "RandomNormal",
        like,
        random.shape,
        random.dtype,
        mean=random.mean,
        scale=random.scale,
        seed=random.seed,
    )


@OPS.imports("RandomNormal", since=(1, 22))
def import_random_normal(
    ctx: ImportContext,
    *,
    shape: tuple[int, ...],
    dtype: int = onnx.TensorProto.FLOAT,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Expr:
    kind = ctx.dtype(dtype)
    return call("serde.random_normal", shape=shape, mean=mean, scale=scale, dtype=kind, seed=seed)


@OPS.exports("serde.bernoulli", since=15)
def export_bernoulli(
    ctx: ExportContext, x: Value, *, dtype: DType | None, seed: float | None
) -> Value:
    kind = None if dtype is None else helper.np_dtype_to_tensor_dtype(dtype)
    return ctx.emit("Bernoulli", x, dtype=kind, seed=seed)


@OPS.exports("serde.bernoulli", ignored=("dtype",))
def export_bernoulli_v1(ctx: ExportContext, x: Value, *, seed: float | None) -> Value:
    """What defines the operator from 15 on."""
    unit = ctx.emit("RandomUniformLike", x, seed=seed)
    return cast(ctx, ctx.emit("Less", unit, x), ctx.result_type().dtype)


@OPS.imports("Bernoulli", since=(15, 22))
def import_bernoulli(
    ctx: ImportContext, x: Expr, *, dtype: int | None = None, seed: float | None = None
) -> Expr:
    kind = None if dtype is None else ctx.dtype(dtype)
    return call("serde.bernoulli", x, dtype=kind, seed=seed)


@OPS.exports("serde.multinomial")
def export_serde_multinomial(
    ctx: ExportContext, x: Value, *, sample_size: int, dtype: DType, seed: float | None
) -> Value:
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    return ctx.emit("Multinomial", x, sample_size=sample_size, dtype=kind, seed=seed)


@OPS.imports("RandomUniformLike", since=(1, 22))
def import_random_uniform_like(
    ctx: ImportContext,
    x: Expr,
    *,
    dtype: int | None = None,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Expr:
    kind = None if dtype is None else ctx.dtype(dtype)
    return call("serde.random_uniform", x, low=low, high=high, dtype=kind, seed=seed)


@OPS.imports("RandomNormalLike", since=(1, 22))
def import_random_normal_like(
    ctx: ImportContext,
    x: Expr,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Expr:
    kind = None if dtype is None else ctx.dtype(dtype)
    return call("serde.random_normal", x, mean=mean, scale=scale, dtype=kind, seed=seed)


@OPS.imports("Multinomial", since=(7, 22))
def import_multinomial(
    ctx: ImportContext,
    x: Expr,
    *,
    dtype: int = onnx.TensorProto.INT32,
    sample_size: int = 1,
    seed: float | None = None,
) -> Expr:
    kind = ctx.dtype(dtype)
    return call("serde.multinomial", x, sample_size=sample_size, dtype=kind, seed=seed)
