"""Numbers drawn by a seed, as ONNX has it: no version says which ones."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np
from onnx import helper

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise import cast
from serde.onnx.ops.table import OPS

DType = np.dtype[AnyValue]


def _drawn(
    ctx: Ctx,
    op: str,
    like: Value | None,
    shape: tuple[int, ...] | None,
    dtype: DType | None,
    **attrs: float | None,
) -> Value:
    kind = None if dtype is None else helper.np_dtype_to_tensor_dtype(dtype)
    if like is None:
        return ctx.emit(op, shape=list(shape or ()), dtype=kind, **attrs)
    return ctx.emit(f"{op}Like", like, dtype=kind, **attrs)


@OPS.exports("serde.random_uniform")
def export_random_uniform(
    ctx: Ctx,
    like: Value | None,
    *,
    shape: tuple[int, ...] | None,
    low: float,
    high: float,
    dtype: DType | None,
    seed: float | None,
) -> Value:
    return _drawn(ctx, "RandomUniform", like, shape, dtype, low=low, high=high, seed=seed)


@OPS.exports("serde.random_normal")
def export_random_normal(
    ctx: Ctx,
    like: Value | None,
    *,
    shape: tuple[int, ...] | None,
    mean: float,
    scale: float,
    dtype: DType | None,
    seed: float | None,
) -> Value:
    return _drawn(ctx, "RandomNormal", like, shape, dtype, mean=mean, scale=scale, seed=seed)


@OPS.exports("serde.bernoulli", since=15)
def export_bernoulli(ctx: Ctx, x: Value, *, dtype: DType | None, seed: float | None) -> Value:
    kind = None if dtype is None else helper.np_dtype_to_tensor_dtype(dtype)
    return ctx.emit("Bernoulli", x, dtype=kind, seed=seed)


@OPS.exports("serde.bernoulli")
def export_bernoulli_v1(ctx: Ctx, x: Value, *, dtype: DType | None, seed: float | None) -> Value:
    """What defines the operator from 15 on."""
    unit = ctx.emit("RandomUniformLike", x, seed=seed)
    return cast(ctx, ctx.emit("Less", unit, x), ctx.result_type().dtype)


@OPS.exports("serde.multinomial")
def export_multinomial_of_logits(
    ctx: Ctx, x: Value, *, sample_size: int, dtype: DType, seed: float | None
) -> Value:
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    return ctx.emit("Multinomial", x, sample_size=sample_size, dtype=kind, seed=seed)
