"""Tensors made of a value and a shape; triangles, bands and diagonals of matrices."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.coreml.mlprogram.operators import (
    NUMBERS,
    NUMBERS_OR_BOOL,
    cast_to,
    compute_dtype,
    emit_in,
)
from serde.coreml.mlprogram.ops.shape.arrange import spread
from serde.coreml.mlprogram.ops.shape.reshape import reshape
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Any, Call, Constant, Dim, Expr, TensorType, call, tensor_type


def positions(length: Dim, like: Expr, axis: int, dtype: str) -> Expr:
    """Return the numbers from 0 to before `length`, which is that of an axis of `like`."""
    if isinstance(length, int):
        return relay.const(allocation.arange(length), dtype)
    shape = relay.shape_of(like, dtype="int32")
    end = relay.take(shape, relay.const(np.array(axis, np.int32)), axis=0, mode="fast")
    bounds = relay.const(np.int32(0)), end, relay.const(np.int32(1))
    found: Expr = call("arange", *bounds, dtype="int32")
    if not isinstance(length, Any):
        found = relay.reshape(found, [length])
    return found if dtype == "int32" else relay.cast(found, dtype)


@OPS.imports("fill")
def import_fill(ctx: Import, shape: Expr, value: Expr | None = None) -> Expr:
    filler = relay.const(np.float32(0)) if value is None else value
    dims = ctx.dims(shape)
    if dims is None:
        return call("dyn.full", filler, shape)
    return relay.full(filler, dims)


@OPS.imports("fill_like", since=16)
def import_fill_like(ctx: Import, ref_tensor: Expr, value: Expr | None = None) -> Expr:
    filler = relay.const(np.float32(0)) if value is None else value
    dims = ctx.type(ref_tensor).shape
    if any(isinstance(dim, Any) for dim in dims):
        return call("dyn.full", filler, relay.shape_of(ref_tensor, dtype="int32"))
    return relay.full(filler, dims)


def fill(ctx: Export, value: AnyValue, shape: Value) -> Value:
    """Return one value everywhere, in the dtype and with the rank of the node's result."""
    type_ = ctx.result_type()
    work = compute_dtype(ctx, type_.dtype, NUMBERS_OR_BOOL)
    number = ctx.const(value, work)
    found = ctx.emit("fill", TensorType(type_.shape, work), shape=shape, value=number)
    return cast_to(ctx, found, type_.dtype)


@OPS.exports("full", ignored=("shape", "dtype"))
def _everywhere(ctx: Export, value: Value) -> Value:
    type_ = ctx.result_type()
    if not type_.shape:
        return cast_to(ctx, value, type_.dtype)
    if value.data is not None:
        return fill(ctx, value.data, ctx.shape(type_.shape))
    return spread(ctx, cast_to(ctx, value, type_.dtype), type_.shape)


@OPS.exports("full_like")
def _like(ctx: Export, data: Value, value: Value) -> Value:
    """Return one value in the shape of a tensor."""
    dims = ctx.result_type().shape
    if value.data is None or not any(isinstance(dim, Any) for dim in dims):
        return _everywhere(ctx, value)
    shape = ctx.emit("shape", TensorType((len(dims),), "int32"), x=data)
    return fill(ctx, value.data, shape)


@OPS.exports("dyn.full", ignored=("dtype",))
def _dyn_filled(ctx: Export, value: Value, shape: Value) -> Value:
    if value.data is not None:
        return fill(ctx, value.data, shape)
    type_ = ctx.result_type()
    work = compute_dtype(ctx, type_.dtype, NUMBERS_OR_BOOL)
    number = reshape(ctx, cast_to(ctx, value, work), [1] * type_.rank)
    found = ctx.emit("tile", TensorType(type_.shape, work), x=number, reps=shape)
    return cast_to(ctx, found, type_.dtype)


def _export_number(name: str, number: int) -> None:
    """Register the exporters of the operators that give one number everywhere."""

    @OPS.exports(name)
    def export_fixed(ctx: Export, *, shape: AnyValue, dtype: AnyValue) -> Value:
        return _everywhere(ctx, ctx.const(number))

    @OPS.exports(f"{name}_like")
    def export_like(ctx: Export, data: Value) -> Value:
        return _like(ctx, data, ctx.const(number))

    @OPS.exports(f"dyn.{name}")
    def export_dyn(ctx: Export, shape: Value, *, dtype: AnyValue) -> Value:
        return _dyn_filled(ctx, ctx.const(number), shape)


_export_number("zeros", 0)
_export_number("ones", 1)


@OPS.imports("range_1d")
def import_range_1d(ctx: Import, end: Expr, start: Expr, step: Expr) -> Expr:
    return call("arange", start, end, step, dtype=ctx.type(start).dtype)


@OPS.exports("arange", ignored=("dtype",))
def export_arange(ctx: Export, start: Value, end: Value, step: Value) -> Value:
    type_ = ctx.result_type()
    work = compute_dtype(ctx, type_.dtype, NUMBERS)
    bounds = [cast_to(ctx, each, work) for each in (start, end, step)]
    made = TensorType(type_.shape, work)
    found = ctx.emit("range_1d", made, start=bounds[0], end=bounds[1], step=bounds[2])
    return cast_to(ctx, found, type_.dtype)


@OPS.imports("band_part")
def import_band_part(ctx: Import, x: Expr, *, lower: int = -1, upper: int = -1) -> Expr:
    """A negative number keeps the whole triangle."""
    if lower >= 0:
        x = relay.trilu(x, -lower, upper=True)
    return relay.trilu(x, upper, upper=False) if upper >= 0 else x


def _is_band(node: Call) -> bool:
    """Whether the triangle holds the main diagonal, for MIL cannot leave that out."""
    k = node.args[1]
    if not isinstance(k, Constant):
        return False
    return bool(k.data <= 0 if node.attrs["upper"] else k.data >= 0)


@OPS.exports("trilu", when=_is_band)
def export_trilu(ctx: Export, data: Value, k: Value, *, upper: bool) -> Value:
    number = int(ctx.constant(k))
    bounds = {"lower": -number, "upper": -1} if upper else {"lower": -1, "upper": number}
    return emit_in(ctx, NUMBERS_OR_BOOL, "band_part", {"x": data}, **bounds)


@OPS.expands("trilu")
def expand_trilu(data: Expr, k: Expr, *, upper: bool) -> Expr:
    """As for all, with positions that networks before iOS14 can count."""
    type_ = tensor_type(data)
    rank = type_.rank
    rows = positions(type_.shape[-2], data, rank - 2, "int32")
    columns = positions(type_.shape[-1], data, rank - 1, "int32")
    bound = relay.add(relay.expand_dims(rows, axis=1), relay.cast(k, "int32"))
    compare = relay.greater_equal if upper else relay.less_equal
    inside = compare(relay.expand_dims(columns, axis=0), bound)
    return relay.where(inside, data, relay.const(0, type_.dtype))
