"""Numbers drawn by a seed, as ONNX has it: no version says which ones."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np
import onnx
from onnx import helper

import serde.relay as relay
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.shape.reshape import squeeze
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call

DType = np.dtype[AnyValue]


def _drawn(
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
    ctx: ExportContext,
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
    ctx: ExportContext,
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
def export_bernoulli(
    ctx: ExportContext, x: Value, *, dtype: DType | None, seed: float | None
) -> Value:
    kind = None if dtype is None else helper.np_dtype_to_tensor_dtype(dtype)
    return ctx.emit("Bernoulli", x, dtype=kind, seed=seed)


@OPS.exports("serde.bernoulli")
def export_bernoulli_v1(
    ctx: ExportContext, x: Value, *, dtype: DType | None, seed: float | None
) -> Value:
    """What defines the operator from 15 on."""
    unit = ctx.emit("RandomUniformLike", x, seed=seed)
    return cast(ctx, ctx.emit("Less", unit, x), ctx.result_type().dtype)


@OPS.exports("serde.multinomial")
def export_multinomial_of_logits(
    ctx: ExportContext, x: Value, *, sample_size: int, dtype: DType, seed: float | None
) -> Value:
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    return ctx.emit("Multinomial", x, sample_size=sample_size, dtype=kind, seed=seed)


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


@OPS.imports("Bernoulli", since=(15, 22))
def import_bernoulli(
    ctx: ImportContext, x: Expr, *, dtype: int | None = None, seed: float | None = None
) -> Expr:
    kind = None if dtype is None else ctx.dtype(dtype)
    return call("serde.bernoulli", x, dtype=kind, seed=seed)


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


def _dropped(
    ctx: ImportContext, x: Expr, ratio: Expr, trains: Expr | None, seed: float | None
) -> list[Expr]:
    """Return what is left of `x`, scaled up by what is dropped, and which elements that are.

    Args:
        ctx: The context of the converter.
        x: What is dropped from.
        ratio: How much of it is, a scalar.
        trains: Whether anything is; that is sure if left out.
        seed: Of the numbers drawn.
    """
    type_ = ctx.type(x)
    share = relay.reshape(relay.cast(ratio, type_.dtype), newshape=())
    kept = relay.subtract(relay.const(1, type_.dtype), share)
    mask: Expr = call("serde.bernoulli", relay.full_like(x, kept), dtype="bool", seed=seed)
    scaled = relay.divide(x, kept)
    if trains is not None:
        asked = relay.reshape(trains, newshape=())
        mask = relay.logical_or(mask, relay.logical_not(asked))
        scaled = relay.where(asked, scaled, x)
    return [relay.where(mask, scaled, relay.zeros_like(x)), mask]


def _kept(ctx: ImportContext, x: Expr, dtype: str) -> list[Expr]:
    """Return `x` and a mask that keeps all of it."""
    return [x, relay.cast(relay.ones_like(x), dtype)] if ctx.wants(1) else [x]


@OPS.imports("Dropout", since=(1, 6), ignored=("consumed_inputs",))
def import_dropout_v1(
    ctx: ImportContext, x: Expr, *, is_test: bool = False, ratio: float = 0.5
) -> list[Expr]:
    dtype = ctx.type(x).dtype
    if is_test or ratio == 0:
        return _kept(ctx, x, dtype)
    found, mask = _dropped(ctx, x, relay.const(ratio, dtype), None, None)
    return [found, relay.cast(mask, dtype)]


@OPS.imports("Dropout", since=(7, 10), ignored=("ratio",))
def import_dropout_v7(ctx: ImportContext, x: Expr) -> list[Expr]:
    return _kept(ctx, x, ctx.type(x).dtype if ctx.version < 10 else "bool")


@OPS.imports("Dropout", since=(12, 13, 22))
def import_dropout(
    ctx: ImportContext,
    x: Expr,
    ratio: Expr | None = None,
    training_mode: Expr | None = None,
    *,
    seed: int | None = None,
) -> list[Expr]:
    """Training drops other elements each time, as long as no seed is given."""
    if training_mode is None:
        return _kept(ctx, x, "bool")
    known = ctx.is_constant(training_mode)
    none = ratio is not None and ctx.is_constant(ratio) and not ctx.constant(ratio).item()
    if none or (known and not ctx.constant(training_mode).item()):
        return _kept(ctx, x, "bool")
    share = relay.const(0.5, ctx.type(x).dtype) if ratio is None else ratio
    return _dropped(ctx, x, share, None if known else training_mode, seed)
