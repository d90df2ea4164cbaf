"""Elements in order."""

from __future__ import annotations

from functools import partial

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Constant, Expr
from serde.relay.op.index.sorting import TopK
from serde.torch.ops.index.slicing import cut
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value
from serde.torch.ops.written import DType, cast, in_signed

__all__ = ["order_along"]


def order_along(ctx: Import, x: Expr, axis: int, *, descending: bool) -> tuple[Expr, Expr]:
    """Return the elements in order along an axis, equal ones as they were, and their places."""
    found = relay.topk(x, 0, axis, "both", not descending, "int64")
    return found[0], found[1]


@OPS.imports("aten::sort", ignored=("stable",))
def import_sort(
    ctx: Import, self: Expr, *, dim: int = -1, descending: bool = False
) -> tuple[Expr, Expr]:
    axis = ctx.axis(self, dim)
    if not ctx.type(self).rank:
        return self, Constant(np.zeros((), np.int64))
    return order_along(ctx, self, axis, descending=descending)


@OPS.imports("aten::argsort", ignored=("stable",))
def import_argsort(ctx: Import, self: Expr, *, dim: int = -1, descending: bool = False) -> Expr:
    axis = ctx.axis(self, dim)
    if not ctx.type(self).rank:
        return Constant(np.zeros((), np.int64))
    return relay.argsort(self, axis=axis, is_ascend=not descending, dtype="int64")


@OPS.imports("aten::msort")
def import_msort(ctx: Import, self: Expr) -> Expr:
    return import_sort(ctx, self, dim=0)[0]


@OPS.imports("aten::topk", ignored=("sorted",))
def import_topk(
    ctx: Import, self: Expr, *, k: SymInt, dim: int = -1, largest: bool = True
) -> tuple[Expr, Expr]:
    """Elements that nobody wants sorted may come sorted, too."""
    axis, count = ctx.axis(self, dim), ctx.dim(k)
    if not ctx.type(self).rank:
        if count not in (0, 1):
            raise Unsupported(f"{count} elements of a scalar")
        places = Constant(np.zeros((), np.int64))
        return self, places
    if count == 0:
        nothing = cut(ctx, self, axis, 0, 0)
        return nothing, relay.cast(nothing, "int64")
    wanted = k if isinstance(count, int) else ctx.shape_vector([k])
    found = relay.topk(self, wanted, axis, "both", not largest, "int64")
    return found[0], found[1]


def _search(ctx: Import, sequence: Expr, values: Expr, *, right: bool, out_int32: bool) -> Expr:
    dtype = ctx.result_dtype(sequence, values)
    row, wanted = ctx.cast(sequence, dtype), ctx.cast(values, dtype)
    return relay.searchsorted(row, wanted, right, "int32" if out_int32 else "int64")


@OPS.imports("aten::bucketize")
def import_bucketize(
    ctx: Import, self: Expr, boundaries: Expr, *, out_int32: bool = False, right: bool = False
) -> Expr:
    return _search(ctx, boundaries, self, right=right, out_int32=out_int32)


@OPS.imports("aten::searchsorted")
def import_searchsorted(
    ctx: Import, sorted_sequence: Expr, self: Expr, sorter: Expr | None = None,
    *, out_int32: bool = False, right: bool = False, side: str | None = None,
) -> Expr:  # fmt: skip
    """The side counts where it is told; a sorter is what sorts the sequence."""
    row = sorted_sequence
    if sorter is not None:
        row = relay.gather(row, -1, sorter)
    return _search(ctx, row, self, right=right or side == "right", out_int32=out_int32)


def _sort(ctx: Export, data: Value, axis: int, is_ascend: bool) -> tuple[Value, ...]:
    """Return elements in order and their places, equal ones in their own order."""
    options = {} if is_ascend else {"descending": True}
    return ctx.call_tuple("torch.sort", data, dim=axis, stable=True, **options, outputs=2)


@OPS.exports("sort")
@partial(in_signed, ordered=True)
def export_sort(
    ctx: Export, data: Value, *, axis: int, is_ascend: bool, dtype: DType | None
) -> Value:
    return _sort(ctx, data, axis, is_ascend)[0]


@OPS.exports("argsort")
@partial(in_signed, ordered=True)
def export_argsort(
    ctx: Export, data: Value, *, axis: int, is_ascend: bool, dtype: DType | None
) -> Value:
    options = {} if is_ascend else {"descending": True}
    places = ctx.call("torch.argsort", data, dim=axis, stable=True, **options)
    return cast(ctx, places, ctx.result_type().dtype, "int64")


@OPS.exports("topk")
@partial(in_signed, ordered=True)
def export_topk(ctx: Export, data: Value, *, topk: TopK) -> Value | tuple[Value, ...]:
    """``torch.topk`` leaves open which of equal elements it names; their order tells it."""
    axis = topk.axis
    type_, axis = ctx.type(data), axis % ctx.type(data).rank
    whole = topk.k is None or topk.k < 1
    if topk.ret_type == "values" and not whole and type_.dtype != "bool":
        options = {} if not topk.is_ascend else {"largest": False}
        return ctx.call_tuple("torch.topk", data, topk.k, dim=axis, **options, outputs=2)[0]
    found = _sort(ctx, data, axis, topk.is_ascend)
    if not whole and type_.shape[axis] != topk.k:
        cut = (*[slice(None)] * axis, slice(None, topk.k))
        found = tuple(ctx.index(each, cut if axis else cut[0]) for each in found)
    if topk.ret_type == "values":
        return found[0]
    places = cast(ctx, found[1], ctx.result_types()[-1].dtype, "int64")
    return places if topk.ret_type == "indices" else (found[0], places)


@OPS.exports("searchsorted")
def export_searchsorted(
    ctx: Export, sorted_sequence: Value, values: Value, *, right: bool, dtype: DType
) -> Value:
    options = {"right": True} if right else {}
    if dtype.name == "int32":
        options["out_int32"] = True
    found = ctx.call("torch.searchsorted", sorted_sequence, values, **options)
    return found if dtype.name == "int32" else cast(ctx, found, dtype.name, "int64")
