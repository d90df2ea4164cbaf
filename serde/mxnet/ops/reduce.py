"""Reductions. Reducing every axis without keeping them leaves one axis of length 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.converters import ImportContext as Ctx
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.exporter import ExportContext as Out
from serde.mxnet.ops.table import OPS
from serde.relay.expr import Expr
from serde.relay.shapes import normalize_axes

FLOAT32 = np.dtype("float32")

Axes = int | tuple[int, ...] | None


def reduced_axes(rank: int, axis: Axes, exclude: bool = False) -> tuple[int, ...]:
    """Return the axes that MXNet reduces; none named means all."""
    if axis is None or axis == ():
        return tuple(range(rank))
    named = normalize_axes((axis,) if isinstance(axis, int) else axis, rank)
    return tuple(a for a in range(rank) if a not in named) if exclude else named


def with_axis(ctx: Ctx, data: Expr, result: Expr, axes: tuple[int, ...], keepdims: bool) -> Expr:
    """Return `result` as MXNet shapes it: never a scalar."""
    if keepdims or len(axes) < ctx.type(data).rank:
        return result
    return relay.expand_dims(result, 0)


def _reduction(target: str) -> Callable[..., AnyValue]:
    def import_reduction(
        ctx: Ctx, data: Expr, *, axis: Axes = None, keepdims: bool = False, exclude: bool = False
    ) -> Expr:
        axes = reduced_axes(ctx.type(data).rank, axis, exclude)
        result = getattr(relay, target)(data, axis=axes, keepdims=keepdims)
        return with_axis(ctx, data, result, axes, keepdims)

    return import_reduction


for _target in ("sum", "mean", "max", "min", "prod"):
    OPS.imports(_target)(_reduction(_target))


@OPS.imports("norm", ignored=("out_dtype",))
def import_norm(
    ctx: Ctx, data: Expr, *, ord: int = 2, axis: Axes = None, keepdims: bool = False
) -> Expr:
    axes = reduced_axes(ctx.type(data).rank, axis)
    if ord == 1:
        result = relay.sum(relay.abs(data), axis=axes, keepdims=keepdims)
    elif ord == 2:
        result = relay.sqrt(relay.sum(relay.multiply(data, data), axis=axes, keepdims=keepdims))
    else:
        raise Unsupported(f"ord={ord}; MXNet has 1 and 2")
    return with_axis(ctx, data, result, axes, keepdims)


def _arg_reduction(target: str) -> Callable[..., AnyValue]:
    def import_arg_reduction(
        ctx: Ctx, data: Expr, *, axis: int | None = None, keepdims: bool = False
    ) -> Expr:
        """The index comes as float32; without an axis it counts through the flat tensor."""
        if axis is None:
            flat = relay.reshape(data, (-1,))
            result = relay.expand_dims(getattr(relay, target)(flat, axis=(0,)), 0)
        else:
            result = getattr(relay, target)(data, axis=(axis,), keepdims=keepdims)
            result = with_axis(ctx, data, result, (axis,), keepdims)
        return relay.cast(result, FLOAT32)

    return import_arg_reduction


for _target in ("argmax", "argmin"):
    OPS.imports(_target)(_arg_reduction(_target))


@OPS.imports("argmax_channel")
def import_argmax_channel(ctx: Ctx, data: Expr) -> Expr:
    return relay.cast(relay.argmax(data, axis=(1,)), FLOAT32)


def _declare_reduction_export(name: str) -> None:
    @OPS.exports(name)
    def export_reduction(
        ctx: Out, data: Value, *, axis: Axes, keepdims: bool, exclude: bool
    ) -> Value:
        rank = ctx.type(data).rank
        axes = reduced_axes(rank, axis, exclude)
        if axis == () and not exclude:
            return data
        if rank == 0:
            return data
        if len(axes) == rank and not keepdims and ctx.np_shape:
            kept = ctx.emit(name, data, axis=axes, keepdims=True)
            return ctx.emit("_npx_reshape", kept, newshape=())
        return ctx.emit(name, data, axis=axes, keepdims=keepdims)


for _name in ("sum", "mean", "max", "min", "prod"):
    _declare_reduction_export(_name)
