"""Some of the entries of an axis: one-hot codes, masks, and the indices of what is not zero."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np
from onnx import helper

import serde.relay as relay
from serde.onnx.ops.elementwise.convert import cast, cast_to_bool, fill
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, TensorType, call
from serde.relay.lowering.index import from_start
from serde.walk import Takes, dtypes, pair, reads


@OPS.exports("argwhere")
def export_argwhere(ctx: Export, x: Value) -> Value:
    """NonZero gives a column for each element; of a scalar, as many rows without elements."""
    marks = cast_to_bool(ctx, x)
    if ctx.type(x).rank:
        rows = ctx.emit("Transpose", ctx.emit("NonZero", marks), perm=[1, 0])
        return cast(ctx, rows, np.int32)
    count = ctx.emit("Reshape", cast(ctx, marks, np.int64), ctx.ints([1]))
    return fill(ctx, ctx.emit("Concat", count, ctx.ints([0]), axis=0), 0, "int32")


_ONE_HOT = {"int32": ("float16", "float32"), "int64": ("float16", "float32", "int64")}
"""For each dtype of indices the values that ONNX Runtime has a OneHot for."""


def _is_one_hot(node: Call) -> bool:
    """A OneHot of ONNX takes no scalar."""
    indices, values = (each.type for each in node.args)
    if not isinstance(indices, TensorType) or not isinstance(values, TensorType):
        return False
    return indices.rank > 0 and values.dtype in _ONE_HOT.get(indices.dtype, ())


@OPS.exports("serde.one_hot", when=_is_one_hot)
def export_serde_one_hot(
    ctx: Export, indices: Value, values: Value, *, depth: int, axis: int
) -> Value:
    return ctx.emit("OneHot", indices, ctx.const(depth, ctx.type(indices).dtype), values, axis=axis)


@OPS.imports("OneHot", since=(9, 11, 28))
def import_one_hot(
    ctx: Import, indices: Expr, depth: Expr, values: Expr, *, axis: int = -1
) -> Expr:
    if "int" not in ctx.type(indices).dtype:
        indices = relay.cast(indices, "int64")
    if ctx.is_constant(depth):
        count = int(ctx.item(depth))
        return call("serde.one_hot", indices, values, depth=count, axis=axis)
    wide = relay.cast(indices, "int64")
    end = relay.reshape(relay.cast(depth, "int64"), newshape=())
    positions = from_start(wide, end)
    off, on = (relay.take(values, relay.Constant(np.int64(each)), axis=0) for each in (0, 1))
    at = axis % (ctx.type(indices).rank + 1)
    return call("dyn.one_hot", positions, on, off, end, axis=at, dtype=ctx.type(values).dtype)


@OPS.exports("serde.eye_like")
def export_eye_like(ctx: Export, x: Value, *, k: int, dtype: np.dtype[AnyValue] | None) -> Value:
    kind = None if dtype is None else helper.np_dtype_to_tensor_dtype(dtype)
    return ctx.emit("EyeLike", x, k=k, dtype=kind)


@OPS.imports("EyeLike", since=(9, 22))
def import_eye_like(ctx: Import, x: Expr, *, dtype: int | None = None, k: int = 0) -> Expr:
    return call("serde.eye_like", x, k=k, dtype=None if dtype is None else ctx.dtype(dtype))


OPS.pairs(pair("NonZero", "serde.nonzero", since=(9, 13), target=1))


@OPS.exports("serde.compress")
def export_compress(ctx: Export, x: Value, condition: Value, *, axis: int | None) -> Value:
    """Before 28 it takes no bfloat16."""
    if ctx.type(x).dtype != "bfloat16" or ctx.version >= 28:
        return ctx.emit("Compress", x, condition, axis=axis)
    found = ctx.emit("Compress", cast(ctx, x, "float32"), condition, axis=axis)
    return cast(ctx, found, "bfloat16")


UNIQUE_DTYPES = {
    **dict.fromkeys(("float32", "float64", "int64", "int8")),
    **dict.fromkeys(("float16", "bfloat16"), "float32"),
    **dict.fromkeys(("int16", "int32", "uint8", "uint16", "uint32"), "int64"),
    "bool": "int8",
}
"""Dtypes of Unique in ONNX Runtime, None, and those that hold what other dtypes do."""


@OPS.exports("serde.unique", takes=Takes(data=dtypes(*UNIQUE_DTYPES)))
def export_serde_unique(
    ctx: Export, x: Value, *, axis: int | None, sorted: bool
) -> tuple[Value, ...]:
    dtype = ctx.type(x).dtype
    wide = UNIQUE_DTYPES[dtype]
    given = x if wide is None else cast(ctx, x, wide)
    values, *rest = ctx.emit_tuple("Unique", given, outputs=4, axis=axis, sorted=int(sorted))
    return (values if wide is None else cast(ctx, values, dtype), *rest)


@OPS.imports("Unique", since=(11, 28))
def import_unique(
    ctx: Import, x: Expr, *, axis: int | None = None, sorted: bool = True
) -> list[Expr]:
    found = call("serde.unique", x, axis=axis, sorted=sorted)
    return [relay.TupleGetItem(found, each) for each in range(4)]


OPS.pairs(reads("Compress", "serde.compress", since=(9, 11, 28), axis=None))
