"""Elements in order.

What is sorted are whole numbers in the order of the elements, in which all that is no number
comes last and the zeros are equal; so the order is that of Relay for any elements.
"""

from __future__ import annotations

from typing import Any as AnyValue
from typing import Final

import serde.relay as relay
from serde.relax.export_context import ExportContext, Value
from serde.relax.import_context import ImportContext
from serde.relax.ops.index.select import read_scalar
from serde.relax.ops.index.slicing import cut
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.op.index.dynamic import DynamicTopK
from serde.relay.op.index.sorting import TopK

__all__ = ["argsort", "pick", "sort_keys"]

_KEYS: Final = {
    "bool": "int32",
    "int8": "int32",
    "int16": "int32",
    "uint8": "int32",
    "uint16": "int32",
    "uint32": "int64",
    "float16": "float32",
    "bfloat16": "float32",
}
"""What holds all numbers of a narrower dtype in their order."""


def sort_keys(ctx: ExportContext, data: Value) -> Value:
    """Return whole numbers in the order of the elements."""
    dtype = ctx.type(data).dtype
    wide = _KEYS.get(dtype, dtype)
    given = data if wide == dtype else ctx.emit("astype", data, wide)
    if wide in ("int32", "int64"):
        return given
    te, tir = ctx.framework.te, ctx.framework.tir
    bits = 32 if wide == "float32" else 64
    whole = f"int{bits}"
    greatest = tir.const(2 ** (bits - 1) - 1, whole)

    def keys(x: AnyValue) -> AnyValue:
        def one(*places: AnyValue) -> AnyValue:
            own = x(*places)
            number = tir.reinterpret(whole, own)
            if wide == "uint64":
                return number ^ tir.const(-(2**63), whole)
            number = tir.Select(number < 0, number ^ greatest, number)
            number = tir.Select(own == tir.const(0, wide), tir.const(0, whole), number)
            return tir.Select(tir.isnan(own), greatest, number)

        return te.compute(x.shape, one, name="keys")

    return ctx.emit_te(keys, given)


def argsort(ctx: ExportContext, data: Value, axis: int, *, ascending: bool) -> Value:
    """Return the places that put the elements in order along an axis, of int64."""
    keys = sort_keys(ctx, data)
    return ctx.emit("argsort", keys, axis, descending=not ascending, dtype="int64")


def pick(ctx: ExportContext, data: Value, places: Value, axis: int) -> Value:
    """Return the elements at places along an axis, which are inside of it."""
    if 0 in ctx.extents(places):  # Relax reads no empty indices.
        return ctx.emit(
            "zeros",
            ctx.framework.relax.ShapeExpr(ctx.wide(ctx.extents(places))),
            ctx.type(data).dtype,
        )
    return ctx.emit("gather_elements", data, places, axis)


@OPS.exports("sort", ignored=("dtype",))
def export_sort(ctx: ExportContext, data: Value, *, axis: int, is_ascend: bool) -> Value:
    along = axis % ctx.type(data).rank
    return pick(ctx, data, argsort(ctx, data, along, ascending=is_ascend), along)


@OPS.imports("relax.sort")
def import_sort(ctx: ImportContext, data: Expr, *, axis: int, descending: bool) -> Expr:
    return relay.sort(data, axis=axis, is_ascend=not descending)


@OPS.exports("argsort")
def export_argsort(
    ctx: ExportContext, data: Value, *, axis: int, is_ascend: bool, dtype: AnyValue
) -> Value:
    order = argsort(ctx, data, axis % ctx.type(data).rank, ascending=is_ascend)
    return order if dtype == "int64" else ctx.emit("astype", order, str(dtype))


@OPS.imports("relax.argsort")
def import_argsort(
    ctx: ImportContext, data: Expr, *, axis: int, descending: bool, dtype: str | None
) -> Expr:
    return relay.argsort(data, axis=axis, is_ascend=not descending, dtype=dtype or "int32")


@OPS.exports("topk")
def export_topk(ctx: ExportContext, data: Value, *, topk: TopK) -> Value | tuple[Value, ...]:
    return _topk(ctx, data, topk.k or 0, topk.axis, topk.ret_type, topk.is_ascend, topk.dtype)


@OPS.exports("dyn.topk")
def export_dyn_topk(
    ctx: ExportContext, data: Value, k: Value, *, topk: DynamicTopK
) -> Value | tuple[Value, ...]:
    tir = ctx.framework.tir
    count = read_scalar(ctx, k)
    if not isinstance(count, int):
        (length,) = ctx.wide([ctx.extents(data)[topk.axis]])
        count = tir.Select(count < 1, length, count)
    return _topk(ctx, data, count, topk.axis, topk.ret_type, topk.is_ascend, topk.dtype)


def _topk(
    ctx: ExportContext,
    data: Value,
    k: AnyValue,
    axis: int,
    ret_type: str,
    is_ascend: bool,
    dtype: AnyValue,
) -> Value | tuple[Value, ...]:
    along = axis % ctx.type(data).rank
    order = argsort(ctx, data, along, ascending=is_ascend)
    if not (isinstance(k, int) and k < 1):
        order = cut(ctx, order, [along], [0], [1], [k])
    indices = order
    if ret_type != "values" and dtype != "int64":
        indices = ctx.emit("astype", order, str(dtype))
    if ret_type == "indices":
        return indices
    values = pick(ctx, data, order, along)
    return values if ret_type == "values" else (values, indices)


@OPS.imports("relax.topk")
def import_topk(
    ctx: ImportContext,
    data: Expr,
    *,
    k: int,
    axis: int,
    ret_type: str,
    largest: bool,
    dtype: str | None,
) -> list[Expr]:
    found: AnyValue = relay.topk(
        data, k=k, axis=axis, ret_type=ret_type, is_ascend=not largest, dtype=dtype or "int32"
    )
    return [found[0], found[1]] if ret_type == "both" else [found]


@OPS.exports("searchsorted")
def export_searchsorted(
    ctx: ExportContext,
    sorted_sequence: Value,
    values: Value,
    *,
    right: bool,
    dtype: AnyValue,
) -> Value:
    rows, wanted = (sort_keys(ctx, each) for each in (sorted_sequence, values))
    own = str(dtype) if dtype in ("int32", "int64") else "int64"
    made = ctx.emit_te(ctx.framework.topi.searchsorted, rows, wanted, right, own)
    return made if own == dtype else ctx.emit("astype", made, str(dtype))


@OPS.imports("relax.bucketize")
def import_bucketize(
    ctx: ImportContext, input_tensor: Expr, boundaries: Expr, *, out_int32: bool, right: bool
) -> Expr:
    dtype = "int32" if out_int32 else "int64"
    return relay.searchsorted(boundaries, input_tensor, right=right, dtype=dtype)
