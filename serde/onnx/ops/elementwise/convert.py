"""Conversion of element types."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np
import onnx
from onnx import helper

import serde.relay as relay
from serde.core.allocation import full
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TensorType, is_float
from serde.relay.transform.fold_shape import MAX_VALUES

FLOAT8 = {
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2": 57344.0,
    "float8_e5m2fnuz": 57344.0,
}
"""Types to which a cast saturates unless told otherwise, with their greatest values."""


def cast(ctx: Export, x: Value, dtype: AnyValue) -> Value:
    """Return `x` in another dtype; Relay's float8 do not saturate, ONNX's do unless told."""
    wanted = np.dtype(dtype)
    saturate = 0 if wanted.name in FLOAT8 else None
    return ctx.emit("Cast", x, to=helper.np_dtype_to_tensor_dtype(wanted), saturate=saturate)


def compute_dtype(dtype: str) -> str:
    """Return a dtype that holds `dtype`, and in which ONNX and its runtimes sum and multiply.

    Integers that overflow there have the same low bits, so that casting them back wraps alike.
    """
    if dtype in ("int32", "int64", "float32", "float64"):
        return dtype
    return "float32" if is_float(dtype) else "int64"


def emit_wide(ctx: Export, op: str, *operands: Value, **attrs: AnyValue) -> Value:
    """Return what an operator gives, in a wider dtype where it does not take the operands'."""
    dtype = ctx.type(operands[0]).dtype
    if ctx.takes(op, dtype):
        return ctx.emit(op, *operands, **attrs)
    work = compute_dtype(dtype)
    return cast(ctx, ctx.emit(op, *[cast(ctx, x, work) for x in operands], **attrs), dtype)


def cast_to_bool(ctx: Export, x: Value) -> Value:
    """Return whether each element differs from zero."""
    return x if ctx.type(x).dtype == "bool" else cast(ctx, x, np.bool_)


@OPS.exports("cast")
def export_cast(ctx: Export, x: Value, *, dtype: np.dtype[AnyValue]) -> Value:
    """ONNX says nothing of floats beyond an integer's range, and Relay neither."""
    return cast(ctx, x, dtype)


@OPS.imports("Cast", since=(6, 9, 13, 19, 21, 23, 24, 25, 28))
def import_cast(
    ctx: Import, x: Expr, *, to: int, saturate: bool = True, round_mode: str = "up"
) -> Expr:
    dtype = ctx.dtype(to)
    if dtype == "float8_e8m0fnu" and round_mode != "nearest":
        raise Unsupported(f"a cast to float8_e8m0fnu with round_mode={round_mode!r}")
    return convert_dtype(ctx, x, dtype, saturate)


@OPS.imports("Cast", since=1)
def import_cast_v1(ctx: Import, x: Expr, *, to: str) -> Expr:
    """The first version names the type."""
    names = dict(onnx.TensorProto.DataType.items())
    if to.upper() not in names:
        raise Unsupported(f"element type {to!r} is unknown")
    return relay.cast(x, ctx.dtype(names[to.upper()]))


@OPS.imports("CastLike", since=(15, 19, 21, 23, 24, 25))
def import_cast_like(
    ctx: Import, x: Expr, target: Expr, *, saturate: bool = True, round_mode: str = "up"
) -> Expr:
    dtype = ctx.type(target).dtype
    if dtype == "float8_e8m0fnu" and round_mode != "nearest":
        raise Unsupported(f"a cast to float8_e8m0fnu with round_mode={round_mode!r}")
    return convert_dtype(ctx, x, dtype, saturate)


@OPS.exports("reinterpret")
def export_reinterpret(ctx: Export, x: Value, *, dtype: np.dtype[AnyValue]) -> Value:
    """BitCast came with 26; among integers of one width a Cast keeps the bits, too."""
    given = np.dtype(numpy_dtype(ctx.type(x).dtype))
    if given == dtype:
        return x
    if given.kind in "iu" and dtype.kind in "iu":
        return cast(ctx, x, dtype)
    if ctx.version < 26:
        raise Unsupported(f"the bits of {given.name} as {dtype.name} need version 26")
    return ctx.emit("BitCast", x, to=helper.np_dtype_to_tensor_dtype(dtype))


@OPS.imports("BitCast", since=26)
def import_bit_cast(ctx: Import, x: Expr, *, to: int) -> Expr:
    return relay.reinterpret(x, ctx.dtype(to))


def comparison_dtype(dtype: str) -> str:
    """Return a dtype that holds `dtype`, and in which ONNX compares and takes the greatest."""
    return dtype if dtype == "uint64" else compute_dtype(dtype)


WHERE_DTYPES = {"bool": "uint8", "int16": "int32", "uint16": "int32", "uint64": "int64"}
"""Dtypes of which ONNX Runtime has no Where, and one of the same values or bits that it has."""


def emit_where(ctx: Export, condition: Value, x: Value, y: Value, dtype: str) -> Value:
    """Return `x` where the condition holds, else `y`; both are of `dtype`."""
    work = WHERE_DTYPES.get(dtype)
    if work is None:
        return ctx.emit("Where", condition, x, y)
    return cast(ctx, ctx.emit("Where", condition, cast(ctx, x, work), cast(ctx, y, work)), dtype)


def as_dtype(ctx: Export, x: Value, dtype: str) -> Value:
    """Return `x` in `dtype`; itself where it is that already."""
    return x if ctx.type(x).dtype == dtype else cast(ctx, x, dtype)


@OPS.imports("Identity", since=(1, 13, 14, 16, 19, 21, 23, 24, 25))
def import_identity(ctx: Import, x: Expr) -> Expr:
    return x


def retype(ctx: Export, x: Value, like: Value, dtype: str) -> Value:
    """Return a value with a Relay type: the shape of `like`, and `dtype`."""
    return Value(x.name, TensorType(ctx.type(like).shape, dtype), x.data)


def fill(ctx: Export, shape: Value, value: float, dtype: str) -> Value:
    """Return a tensor of the shape held by `shape`, every element `value`.

    One of few elements is a constant where the shape is.
    """
    lengths = shape.data if np.dtype(dtype).isbuiltin == 1 else None
    if lengths is not None and lengths.prod() <= MAX_VALUES:
        return ctx.const(full([*map(int, lengths)], value), dtype)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    tensor = helper.make_tensor("value", element, [1], [value])
    return ctx.emit("ConstantOfShape", shape, value=tensor)


def scalar_like(ctx: Import, x: Expr, value: float) -> Expr:
    """Return a scalar constant of the dtype of `x`."""
    return relay.Constant(np.array(value).astype(numpy_dtype(ctx.type(x).dtype)))


def const_int64(value: int) -> Expr:
    """Return a scalar constant of int64."""
    return _const_integer(value, np.int64)


def const_int32(value: int) -> Expr:
    """Return a scalar constant of int32."""
    return _const_integer(value, np.int32)


def _const_integer(value: int, dtype: type[np.signedinteger[AnyValue]]) -> Expr:
    limits = np.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise Unsupported(f"{value} is beyond {limits.dtype}")
    return relay.Constant(np.array(value, dtype))


def convert_dtype(ctx: Import, x: Expr, dtype: str, saturate: bool) -> Expr:
    """Return `x` in another dtype; beyond the range of a float8, its greatest value if asked."""
    if saturate and dtype in FLOAT8 and is_float(ctx.type(x).dtype):
        limit = FLOAT8[dtype]
        x = relay.clip(x, -limit, limit)
    return relay.cast(x, dtype)


def to_int64(ctx: Export, x: Value) -> Value:
    """Return a tensor of integers as int64, which ONNX takes for shapes."""
    return x if ctx.type(x).dtype == "int64" else cast(ctx, x, np.int64)
