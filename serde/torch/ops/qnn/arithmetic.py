"""Arithmetic of quantised tensors, their means, and edges around them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.relay.ir import Expr, limits
from serde.torch.ops.linalg.product import build_matmul
from serde.torch.ops.pool.adaptive import make_adaptive_avg_pool
from serde.torch.ops.pool.geometry import PoolAttributes
from serde.torch.ops.pool.window import make_avg_pool, make_max_pool
from serde.torch.ops.qnn.parameters import (
    ACTIVATIONS,
    OUTPUT,
    Function,
    Result,
    dequantize,
    dequantize_fused,
    fixed_number,
    quantize,
    quantize_number,
    round_levels,
    single,
)
from serde.torch.ops.reduce.plain import Axes, DType, import_mean
from serde.torch.ops.shape.pad import import_pad
from serde.torch.ops.table import OPS, Import, Scalar, SymInt
from serde.torch.quantization import Quantization


def _import_binary(
    ctx: Import, qa: Expr, qb: Expr, *, result: Result, build: Function, activate: Function | None
) -> Expr:
    found = build(ctx, qa, qb)
    return result.quantize(ctx, activate(found) if activate else found, qa)


def _add(ctx: Import, qa: Expr, qb: Expr) -> Expr:
    return relay.add(dequantize_fused(ctx, qa), dequantize_fused(ctx, qb))


def _multiply(ctx: Import, qa: Expr, qb: Expr) -> Expr:
    """Integers less their zero points are multiplied, then the scales."""
    return relay.multiply(dequantize(ctx, qa), dequantize(ctx, qb))


def _import_cat(
    ctx: Import,
    *qx: Expr,
    dim: int,
    scale: float | None,
    zero_point: int | None,
    activate: Function | None,
) -> Expr:
    """Without a scale that of the first tensor holds."""
    result = ctx.quantization(ctx.first(qx))
    if scale is not None and zero_point is not None:
        result = Quantization(scale, zero_point)
    parts = [_bring(ctx, x, result, activate) for x in qx]
    return ctx.quantized(relay.concatenate(parts, axis=ctx.axis(qx[0], dim)), result)


def _bring(ctx: Import, x: Expr, result: Quantization, activate: Function | None) -> Expr:
    """Return the integers of a tensor in another scale."""
    given = ctx.quantization(x)
    own, wanted = (given.scale, given.zero_point), (result.scale, result.zero_point)
    if given.axis is None and own == wanted and activate is None:
        return x
    real = dequantize(ctx, x)
    return quantize(ctx, activate(real) if activate else real, result, ctx.dtype(x))


for _suffix, _activate in ACTIVATIONS.items():
    for _name, _build in (("add", _add), ("mul", _multiply)):
        _binary = partial(_import_binary, build=_build, activate=_activate)
        OPS.imports(f"quantized::{_name}{_suffix}", renamed=OUTPUT)(_binary)
    OPS.imports(f"quantized::cat{_suffix}")(partial(_import_cat, activate=_activate))


@OPS.imports("quantized_tensor::cat", "quantized_tensor::concat")
def import_cat_of_tensors(ctx: Import, *tensors: Expr, dim: int = 0) -> Expr:
    return _import_cat(ctx, *tensors, dim=dim, scale=None, zero_point=None, activate=None)


def _ends(dtype: str) -> tuple[int, int]:
    return int(limits(dtype).min), int(limits(dtype).max)


def _add_number(ctx: Import, x: Expr, number: float, clamp: bool) -> Expr:
    """The zero point moves; where it would leave the dtype, integers are brought to a new scale."""
    scale, zero = single(ctx.quantization(x))
    dtype = ctx.dtype(x)
    low, high = _ends(dtype)
    steps = int(np.rint(number / scale))
    moved = zero - steps
    if not low <= moved <= high:
        return _widen_range(ctx, x, scale, moved, clamp)
    found = relay.maximum(x, ctx.scalar(moved, dtype)) if clamp else relay.copy(x)
    return ctx.quantized(found, Quantization(scale, moved))


def _widen_range(ctx: Import, x: Expr, scale: float, zero: int, clamp: bool) -> Expr:
    """Return a tensor whose zero point has left the dtype, in a scale that holds it again.

    Source: ``_add_scalar_out`` of PyTorch's ``qadd.cpp``.
    """
    dtype = ctx.dtype(x)
    low, high = _ends(dtype)
    past = zero > high
    length = zero - low if past else high - zero
    wider = length / (high - low) * scale
    edge = high if past else low
    steps = relay.subtract(relay.cast(x, "int32"), relay.const(np.int32(zero)))
    level = relay.multiply(relay.cast(steps, "float32"), ctx.scalar(scale / wider, "float32"))
    level = relay.nn.relu(level) if clamp else level
    return ctx.quantized(round_levels(level, dtype, edge), Quantization(wider, edge))


def _multiply_number(ctx: Import, x: Expr, factor: float, clamp: bool) -> Expr:
    """The scale is multiplied; below zero integers are mirrored, and zero leaves zeros."""
    scale, zero = single(ctx.quantization(x))
    dtype = ctx.dtype(x)
    if factor == 0:
        return ctx.quantized(relay.zeros_like(x), Quantization(1.0, 0))
    if factor < 0:
        low, high = _ends(dtype)
        mirrored = relay.subtract(relay.const(np.int32(low + high)), relay.cast(x, "int32"))
        x, zero = relay.cast(mirrored, dtype), low + high - zero
    found = relay.maximum(x, ctx.scalar(zero, dtype)) if clamp else relay.copy(x)
    return ctx.quantized(found, Quantization(abs(factor) * scale, zero))


def _import_with_number(
    ctx: Import, qa: Expr, *, b: Scalar, run: Callable[..., Expr], clamp: bool
) -> Expr:
    return run(ctx, qa, fixed_number(ctx, b), clamp)


for _suffix, _clamp in (("", False), ("_relu", True)):
    for _name, _run in (("add", _add_number), ("mul", _multiply_number)):
        _forms = (f"_scalar{_suffix}", f"{_suffix}.Scalar", f"{_suffix}.Scalar2")
        _names = [f"quantized::{_name}{form}" for form in (*_forms, f"_scalar{_suffix}.Tensor")]
        OPS.imports(*_names)(partial(_import_with_number, run=_run, clamp=_clamp))


@OPS.imports("quantized::matmul", renamed=OUTPUT)
def import_matmul(ctx: Import, qa: Expr, qb: Expr, *, result: Result) -> Expr:
    """Sums of integers, which float64 holds exactly, are brought to the scale of the result."""
    factors = []
    parts: list[Expr] = []
    for x in (qa, qb):
        own_scale, zero = single(ctx.quantization(x))
        factors.append(np.float32(own_scale))
        parts.append(relay.subtract(relay.cast(x, "float64"), ctx.scalar(zero, "float64")))
    sums = relay.cast(build_matmul(ctx, *parts), "float32")
    real = relay.multiply(sums, ctx.scalar(float(factors[0] * factors[1]), "float32"))
    return result.quantize(ctx, real, qa)


def _of_levels(function: Callable[..., Expr]) -> Callable[..., Expr]:
    """Return what applies a mean to integers less their zero point, and rounds once at the end."""

    @functools.wraps(function)
    def run(ctx: Import, self: Expr, *rest: Expr, **attributes: AnyValue) -> Expr:
        given = ctx.quantization(self)
        zero = ctx.scalar(single(given)[1], "float32")
        steps = relay.subtract(relay.cast(self, "float32"), zero)
        level = relay.add(function(ctx, steps, *rest, **attributes), zero)
        return ctx.quantized(round_levels(level, ctx.dtype(self)), given)

    return run


_mean_of_levels = _of_levels(import_mean)


@OPS.imports("quantized_tensor::mean")
def import_mean_of_tensor(
    ctx: Import, self: Expr, *, dim: Axes = None, keepdim: bool = False, dtype: DType = None
) -> Expr:
    """Over the last axes integers are summed; over others what they stand for."""
    axes, rank = ctx.axes(self, dim), ctx.type(self).rank
    if axes == tuple(range(rank - len(axes), rank)):
        return _mean_of_levels(ctx, self, dim=dim, keepdim=keepdim, dtype=dtype)
    real = import_mean(ctx, dequantize(ctx, self), dim=dim, keepdim=keepdim, dtype=dtype)
    return quantize(ctx, real, ctx.quantization(self), ctx.dtype(self))


for _ndim in (1, 2, 3):
    OPS.imports(f"quantized_tensor::avg_pool{_ndim}d")(_of_levels(make_avg_pool(_ndim)))
    _adaptive = _of_levels(make_adaptive_avg_pool(_ndim))
    _names = ["adaptive_avg_pool"] if _ndim == 1 else ["adaptive_avg_pool", "_adaptive_avg_pool"]
    OPS.imports(*(f"quantized_tensor::{each}{_ndim}d" for each in _names))(_adaptive)


def _import_max_pool(
    ctx: Import, qx: Expr, *, pool: PoolAttributes, greatest: Callable[..., Expr]
) -> Expr:
    return ctx.quantized(greatest(ctx, qx, pool=pool), ctx.quantization(qx))


for _ndim in (1, 2):
    OPS.imports(f"quantized::max_pool{_ndim}d")(
        partial(_import_max_pool, greatest=make_max_pool(_ndim))
    )


@OPS.imports("quantized_tensor::pad")
def import_pad_of_tensor(
    ctx: Import,
    self: Expr,
    *,
    pad: tuple[SymInt, ...],
    mode: str = "constant",
    value: Scalar | None = None,
) -> Expr:
    """The edge holds a quantised number, in the scale of the tensor."""
    given = ctx.quantization(self)
    number = fixed_number(ctx, 0.0 if value is None else value)
    level = quantize_number(number, given, ctx.dtype(self))
    return ctx.quantized(import_pad(ctx, self, pad=pad, mode=mode, value=level), given)


@OPS.imports("quantized_tensor::constant_pad_nd")
def import_constant_pad_of_tensor(
    ctx: Import, self: Expr, *, pad: tuple[SymInt, ...], value: Scalar = 0
) -> Expr:
    return import_pad_of_tensor(ctx, self, pad=pad, value=value)
