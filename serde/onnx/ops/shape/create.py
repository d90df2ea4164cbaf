"""Tensors that are made: shapes, filled with one value, counting, diagonals and triangles."""

from __future__ import annotations

from functools import partial
from typing import Any as AnyValue

import numpy as np
import onnx

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import (
    as_dtype,
    cast,
    compute_dtype,
    const_int64,
    fill,
    to_int64,
)
from serde.onnx.ops.shape.reshape import as_scalar
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, call
from serde.walk.pairs import reads


@OPS.exports("shape_of", ignored=("dtype",))
def export_shape_of(ctx: Export, x: Value) -> Value:
    return _cast_to_result(ctx, ctx.emit("Shape", x))


@OPS.imports("Shape", since=(15, 19, 21, 23, 24, 25))
def import_shape(ctx: Import, x: Expr, *, start: int = 0, end: int | None = None) -> Expr:
    """ONNX clamps both ends to the axes there are."""
    rank = ctx.type(x).rank
    first, last = (max(0, e + rank if e < 0 else e) for e in (start, rank if end is None else end))
    shape = relay.shape_of(x, dtype="int64")
    if (first, last) == (0, rank):
        return shape
    return relay.strided_slice(shape, [min(first, rank)], [max(min(last, rank), first)])


@OPS.exports("ndarray_size", ignored=("dtype",))
def export_ndarray_size(ctx: Export, x: Value) -> Value:
    return _cast_to_result(ctx, ctx.emit("Size", x))


def _cast_to_result(ctx: Export, x: Value) -> Value:
    """Return int64 in the dtype that Relay says."""
    dtype = ctx.result_type().dtype
    return x if dtype == "int64" else cast(ctx, x, dtype)


def _export_constant(ctx: Export, *, value: int) -> Value:
    result = ctx.result_type()
    return fill(ctx, ctx.shape(result.shape), value, result.dtype)


def _export_computed(ctx: Export, shape: Value, *, value: int) -> Value:
    return fill(ctx, to_int64(ctx, shape), value, ctx.result_type().dtype)


for _name, _value in {"zeros": 0, "ones": 1}.items():
    OPS.exports(_name, ignored=("shape", "dtype"))(partial(_export_constant, value=_value))
    OPS.exports(f"dyn.{_name}", ignored=("dtype",))(partial(_export_computed, value=_value))


@OPS.exports("full", ignored=("shape", "dtype"))
def export_full(ctx: Export, value: Value) -> Value:
    result = ctx.result_type()
    if value.data is not None:
        return fill(ctx, ctx.shape(result.shape), value.data.item(), result.dtype)
    return ctx.emit("Expand", cast(ctx, value, result.dtype), ctx.shape(result.shape))


@OPS.imports("ConstantOfShape", since=(9, 20, 21, 23, 24, 25))
def import_constant_of_shape(
    ctx: Import, shape: Expr, *, value: onnx.TensorProto | None = None
) -> Expr:
    filler: Expr = relay.const(np.zeros((), np.float32))
    if value is not None:
        filler = relay.reshape(ctx.tensor(value), newshape=())
    return _build_full(ctx, ctx.fold(filler), shape)


@OPS.imports("Constant", since=(1, 9))
def import_constant_v1(ctx: Import, *, value: onnx.TensorProto) -> Expr:
    return ctx.tensor(value)


@OPS.imports("Constant", since=(11, 12, 13, 19, 21, 23, 24, 25))
def import_constant(
    ctx: Import,
    *, value: onnx.TensorProto | None = None, sparse_value: onnx.SparseTensorProto | None = None,
    value_float: float | None = None, value_floats: tuple[float, ...] | None = None,
    value_int: int | None = None, value_ints: tuple[int, ...] | None = None,
    value_string: str | None = None, value_strings: tuple[str, ...] | None = None,
) -> Expr:  # fmt: skip
    if value is not None:
        return ctx.tensor(value)
    if sparse_value is not None:
        return ctx.sparse_tensor(sparse_value)
    if value_string is not None or value_strings is not None:
        raise Unsupported("a tensor of strings has no counterpart in Relay")
    for number, dtype in (
        (value_float, "float32"),
        (value_floats, "float32"),
        (value_int, "int64"),
        (value_ints, "int64"),
    ):
        if number is not None:
            return relay.Constant(np.array(number, dtype))
    raise Unsupported("a constant without a value")


def _build_full(ctx: Import, value: Expr, shape: Expr) -> Expr:
    """Return a tensor whose shape a tensor holds and whose elements are a scalar."""
    dims = ctx.dims(shape)
    if dims is not None:
        return relay.full(value, dims, ctx.type(value).dtype)
    return call("dyn.full", value, shape, dtype=ctx.type(value).dtype)


@OPS.exports("arange")
def export_arange(
    ctx: Export, start: Value, end: Value, step: Value, *, dtype: np.dtype[AnyValue]
) -> Value:
    """Floats are counted and computed in float64: a Range adds the step up in their own dtype."""
    if dtype.kind not in "iu":
        first, last, by = (cast(ctx, each, np.float64) for each in (start, end, step))
        ratio = ctx.emit("Ceil", ctx.emit("Div", ctx.emit("Sub", last, first), by))
        zero, one = ctx.const(0, np.int64), ctx.const(1, np.int64)
        steps = ctx.emit("Range", zero, cast(ctx, ratio, np.int64), one)
        size = ctx.emit("Mul", cast(ctx, steps, np.float64), by)
        return cast(ctx, ctx.emit("Add", first, size), dtype)
    work = compute_dtype(dtype.name)
    bounds = [as_dtype(ctx, each, work) for each in (start, end, step)]
    found = ctx.emit("Range", *bounds)
    return found if work == dtype.name else cast(ctx, found, dtype)


def build_arange(count: Expr) -> Expr:
    """Return 0, 1, ... below a scalar of int64."""
    return call("arange", const_int64(0), count, const_int64(1), dtype="int64")


@OPS.imports("Range", since=(11, 27), ignored=("stash_type",))
def import_range(ctx: Import, start: Expr, limit: Expr, delta: Expr) -> Expr:
    """``y[i] = start + i * delta``, rounded once."""
    bounds = [as_scalar(ctx, each) for each in (start, limit, delta)]
    return call("arange", *bounds, dtype=ctx.type(start).dtype)


@OPS.exports("full_like")
def export_full_like(ctx: Export, x: Value, value: Value) -> Value:
    return ctx.emit("Expand", as_dtype(ctx, value, ctx.type(x).dtype), ctx.emit("Shape", x))


@OPS.exports("dyn.full", ignored=("dtype",))
def export_dyn_full(ctx: Export, value: Value, shape: Value) -> Value:
    wanted = ctx.result_type().dtype
    whole = value if ctx.type(value).dtype == wanted else cast(ctx, value, wanted)
    return ctx.emit("Expand", whole, to_int64(ctx, shape))


OPS.pairs(
    reads("Shape", "shape_of", since=(1, 13), fixed={"dtype": "int64"}),
    reads("Size", "ndarray_size", since=(1, 13, 19, 21, 23, 24, 25), fixed={"dtype": "int64"}),
)


TRIANGLES = ("float32", "float64", "int32", "int64")
"""Dtypes of which ONNX Runtime has a Trilu of every version; int64 holds the other integers."""


@OPS.exports("trilu", since=14)
def export_trilu(ctx: Export, x: Value, k: Value, *, upper: bool) -> Value:
    dtype = ctx.type(x).dtype
    work = dtype
    if dtype not in TRIANGLES:
        work = "int64" if dtype in ("bool", "uint64") or "int" in dtype else "float32"
    result = ctx.emit("Trilu", as_dtype(ctx, x, work), to_int64(ctx, k), upper=int(upper))
    return result if work == dtype else cast(ctx, result, dtype)


@OPS.imports("Trilu", since=14)
def import_trilu(ctx: Import, x: Expr, k: Expr | None = None, *, upper: bool = True) -> Expr:
    diagonal = relay.Constant(np.int64(0)) if k is None else k
    return relay.trilu(x, as_scalar(ctx, diagonal), upper=upper)
