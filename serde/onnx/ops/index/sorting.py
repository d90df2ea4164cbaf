"""Elements put in order.

TopK gives equal elements in the order of their indices, as Relay does, ascending and
descending; where NaN goes, neither of the two says.
"""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.onnx.ops.elementwise.convert import as_dtype, cast, to_int64
from serde.onnx.ops.reduce import emit_reduce
from serde.onnx.ops.shape.reshape import emit_lengths, unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, is_float, normalize_axis
from serde.relay.op.index.dynamic import DynamicTopK
from serde.relay.op.index.sorting import TopK

TOPK_DTYPES = {
    "bool": "int32",
    "uint8": "int32",
    "int8": "int32",
    "uint16": "int32",
    "int16": "int32",
    "uint32": "int64",
    "float16": "float32",
    "bfloat16": "float32",
}
"""Dtypes that not every version of TopK orders in ONNX Runtime, and one that holds each."""


def emit_topk(
    ctx: Export, x: Value, count: Value, axis: int, ascending: bool
) -> tuple[Value, Value]:
    """Return the first `count` elements along `axis` in order, and their indices as int64."""
    dtype = ctx.type(x).dtype
    wide = TOPK_DTYPES.get(dtype, dtype)
    values, indices = ctx.emit_tuple(
        "TopK", as_dtype(ctx, x, wide), count, outputs=2, axis=axis, largest=int(not ascending)
    )
    return values if wide == dtype else cast(ctx, values, dtype), indices


@OPS.exports("sort", ignored=("dtype",))
def export_sort(ctx: Export, x: Value, *, axis: int, is_ascend: bool) -> Value:
    """The attribute dtype has no meaning here."""
    return emit_topk(ctx, x, emit_lengths(ctx, x, [axis]), axis, is_ascend)[0]


@OPS.exports("argsort", ignored=("dtype",))
def export_argsort(ctx: Export, x: Value, *, axis: int, is_ascend: bool) -> Value:
    indices = emit_topk(ctx, x, emit_lengths(ctx, x, [axis]), axis, is_ascend)[1]
    return cast(ctx, indices, ctx.result_type().dtype)


@OPS.exports("topk")
def export_topk(ctx: Export, x: Value, *, topk: TopK) -> Value | tuple[Value, Value]:
    """A number below 1 means all."""
    count = (
        ctx.ints([topk.k])
        if topk.k is not None and topk.k > 0
        else emit_lengths(ctx, x, [topk.axis])
    )
    values, indices = emit_topk(ctx, x, count, topk.axis, topk.is_ascend)
    if topk.ret_type == "values":
        return values
    found = cast(ctx, indices, np.dtype(topk.dtype))
    return found if topk.ret_type == "indices" else (values, found)


@OPS.imports("TopK", since=1)
def import_topk_v1(ctx: Import, x: Expr, *, k: int, axis: int = -1) -> list[Expr]:
    return _build_topk(ctx, x, relay.const(k, "int64"), axis, is_ascend=False)


@OPS.imports("TopK", since=10)
def import_topk_v10(ctx: Import, x: Expr, k: Expr, *, axis: int = -1) -> list[Expr]:
    return _build_topk(ctx, x, k, axis, is_ascend=False)


@OPS.imports("TopK", since=(11, 24), ignored=("sorted",))
def import_topk(
    ctx: Import, x: Expr, k: Expr, *, axis: int = -1, largest: bool = True
) -> list[Expr]:
    """What is not asked to be sorted may be."""
    return _build_topk(ctx, x, k, axis, is_ascend=not largest)


def _build_topk(ctx: Import, x: Expr, k: Expr, axis: int, is_ascend: bool) -> list[Expr]:
    """Return values and indices; to Relay a number below 1 means all, so none is cut off."""
    known = ctx.ints(k)[0] if ctx.is_constant(k) and ctx.type(k).shape in ((), (1,)) else None
    found = list(relay.topk(x, k if known is None else known, axis, "both", is_ascend, "int64"))
    if known is not None and known > 0:
        return found
    end = relay.reshape(relay.cast(k, "int64"), newshape=(1,))
    position = normalize_axis(axis, ctx.type(x).rank)
    return [relay.strided_slice(each, [0], end, axes=[position]) for each in found]


def _cast_from_int64(ctx: Export, indices: Value, dtype: str) -> Value:
    """Return indices, which are int64 in ONNX, in `dtype`."""
    return indices if dtype == "int64" else cast(ctx, indices, dtype)


@OPS.exports("searchsorted", ignored=("dtype",))
def export_searchsorted(ctx: Export, sequence: Value, values: Value, *, right: bool) -> Value:
    """``y = sum(sequence < value)``, or ``<=`` if `right`: each value is compared with all.

    NaN comes after all numbers.
    """
    rank = ctx.type(values).rank
    given = ctx.type(values).dtype
    work = TOPK_DTYPES.get(given, given)
    keys = unsqueeze(ctx, as_dtype(ctx, values, work), [rank])
    whole = as_dtype(ctx, sequence, work)
    own = ctx.type(sequence).rank
    row = unsqueeze(ctx, whole, [own - 1]) if own > 1 else whole
    before = ctx.emit("Less", row, keys)
    if right:
        before = ctx.emit("Or", before, ctx.emit("Equal", row, keys))
    if is_float(work):
        last = ctx.emit("IsNaN", keys)
        if not right:
            number = ctx.emit("Not", ctx.emit("IsNaN", row))
            last = ctx.emit("And", last, number)
        before = ctx.emit("Or", before, last)
    count = emit_reduce(ctx, "ReduceSum", cast(ctx, before, np.int64), [rank], keepdims=False)
    return _cast_from_int64(ctx, count, ctx.result_type().dtype)


@OPS.exports("unique")
def export_unique(ctx: Export, x: Value, *, sorted: bool, return_counts: bool) -> tuple[Value, ...]:
    """Relay's results are as long as the data, with zeros behind the last."""
    dtype = ctx.type(x).dtype
    wide = "float32" if dtype in ("float16", "bfloat16") else "int64"
    work = dtype if dtype in ("float32", "float64", "int64", "uint64") else wide
    found = ctx.emit_tuple("Unique", as_dtype(ctx, x, work), outputs=4, sorted=int(sorted))
    values, indices, inverse, counts = found
    number = ctx.emit("Shape", values)
    rest = ctx.emit("Sub", ctx.emit("Shape", x), number)
    sides = ctx.emit("Concat", ctx.ints([0]), rest, axis=0)
    full = ctx.emit("Pad", values, sides)
    result = (
        full if work == dtype else cast(ctx, full, dtype),
        cast(ctx, ctx.emit("Pad", indices, sides), np.int32),
        cast(ctx, inverse, np.int32),
        cast(ctx, number, np.int32),
    )
    if not return_counts:
        return result
    return (*result, cast(ctx, ctx.emit("Pad", counts, sides), np.int32))


@OPS.exports("dyn.topk")
def export_dyn_topk(
    ctx: Export, x: Value, k: Value, *, topk: DynamicTopK
) -> Value | tuple[Value, Value]:
    """A number below 1 means all. Equal elements keep their order in both."""
    asked = ctx.emit("Reshape", to_int64(ctx, k), ctx.ints([1]))
    length = ctx.emit("Gather", ctx.emit("Shape", x), ctx.ints([topk.axis]), axis=0)
    every = ctx.emit("Less", asked, ctx.ints([1]))
    count = ctx.emit("Where", every, length, asked)
    values, indices = emit_topk(ctx, x, count, topk.axis, topk.is_ascend)
    if topk.ret_type == "values":
        return values
    found = cast(ctx, indices, np.dtype(topk.dtype))
    return found if topk.ret_type == "indices" else (values, found)
