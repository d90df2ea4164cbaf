"""Order. MXNet sorts equal elements in any order, Relay keeps theirs."""

from __future__ import annotations

from typing import Any as AnyValue, Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TensorType
from serde.relay.op.index.sorting import TopK

FLOAT32 = np.dtype("float32")


UNSORTED = {"float16": "float32", "bool": "uint8"}
"""dtypes that MXNet does not sort: those that hold the same values and that it does."""


FAR = 2**31
"""More than an axis has elements, and its square fits int64."""


def _sortable(ctx: Export, data: Value) -> Value:
    return ctx.cast(data, UNSORTED.get(ctx.type(data).dtype, ctx.type(data).dtype))


@OPS.exports("sort", ignored=("dtype",))
def export_sort(ctx: Export, data: Value, *, axis: int, is_ascend: bool) -> Value:
    type_ = ctx.type(data)
    result = ctx.emit("sort", _sortable(ctx, data), axis=axis % type_.rank, is_ascend=is_ascend)
    return ctx.cast(ctx.typed(result, type_), type_.dtype) if type_.dtype in UNSORTED else result


def _group_keys(ordered: Expr, indices: Expr, axis: int) -> tuple[Expr, Expr]:
    """Return the first place of each group of equals as a key, and that key with the place."""
    type_ = ordered.checked_type
    if not isinstance(type_, TensorType):
        raise Unsupported(f"expected a tensor, found {type_!r}")
    before = relay.strided_slice(ordered, [0], [-1], [1], axes=[axis])
    after = relay.strided_slice(ordered, [1], [FAR - 1], [1], axes=[axis])
    changes = relay.cast(relay.not_equal(before, after), "int64")
    first = relay.strided_slice(indices, [0], [1], [1], axes=[axis])
    groups = relay.cumsum(relay.concatenate([relay.zeros_like(first), changes], axis), axis=axis)
    length = type_.shape[axis]  # small keys are exact where another format has 32 bits for them
    base = relay.multiply(groups, relay.const(length if isinstance(length, int) else FAR, "int64"))
    return base, relay.add(base, indices)


def stable_order(ctx: Export, data: Value, axis: int, is_ascend: bool) -> Value:
    """Return the indices of the elements in order, those of equals as they were, in int64.

    Equals that MXNet has put in any order are sorted by their indices.
    """
    type_ = ctx.type(data)
    keyed = _sortable(ctx, data)
    indices = ctx.typed(
        ctx.emit("argsort", keyed, axis=axis, is_ascend=is_ascend, dtype="int64"),
        TensorType(type_.shape, "int64"),
    )
    if type_.shape[axis] == 1:
        return indices
    ordered = ctx.typed(ctx.emit("sort", keyed, axis=axis, is_ascend=is_ascend), ctx.type(keyed))
    pair = ctx.spell_tuple(
        lambda values, at: relay.Tuple(list(_group_keys(values, at, axis))), ordered, indices
    )
    base, keys = pair if isinstance(pair, tuple) else (pair, pair)
    return ctx.spell(lambda whole, part: relay.subtract(relay.sort(whole, axis), part), keys, base)


def _flat_if(data: Expr, axis: int | None) -> tuple[Expr, int]:
    """Return the data and the axis; without an axis the flat tensor."""
    return (relay.reshape(data, (-1,)), 0) if axis is None else (data, axis)


@OPS.imports("sort")
def import_sort(ctx: Import, data: Expr, *, axis: int | None = -1, is_ascend: bool = True) -> Expr:
    given, along = _flat_if(data, axis)
    return relay.sort(given, along, is_ascend)


@OPS.imports("argsort")
def import_argsort(
    ctx: Import,
    data: Expr,
    *,
    axis: int | None = -1,
    is_ascend: bool = True,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    given, along = _flat_if(data, axis)
    return relay.argsort(given, along, is_ascend, dtype)


@OPS.imports("topk")
def import_topk(
    ctx: Import, data: Expr,
    *, axis: int | None = -1, k: int = 1,
    ret_typ: Literal["both", "indices", "mask", "value"] = "indices", is_ascend: bool = False,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr | list[Expr]:  # fmt: skip
    """A mask has ones, in the data's dtype, at the indices that would be returned."""
    given, along = _flat_if(data, axis)
    if ret_typ == "indices":
        return relay.topk(given, k, along, ret_type="indices", is_ascend=is_ascend, dtype=dtype)
    if ret_typ == "value":
        return relay.topk(given, k, along, ret_type="values", is_ascend=is_ascend)
    if ret_typ == "both":
        return list(relay.topk(given, k, along, "both", is_ascend, dtype))
    values, indices = relay.topk(given, k, along, "both", is_ascend, "int64")
    zeros, ones = relay.zeros_like(given), relay.ones_like(values)
    mask = relay.scatter_elements(zeros, indices, ones, along)
    return relay.reshape_like(mask, data) if axis is None else mask


@OPS.exports("argsort", ignored=("dtype",))
def export_argsort(ctx: Export, data: Value, *, axis: int, is_ascend: bool) -> Value:
    order = stable_order(ctx, data, axis % ctx.type(data).rank, is_ascend)
    return ctx.cast(order, ctx.result_type().dtype)


@OPS.exports("topk")
def export_topk(ctx: Export, data: Value, *, topk: TopK) -> Value | tuple[Value, ...]:
    """Values alone are MXNet's; indices must tell equals apart."""
    type_ = ctx.type(data)
    along = topk.axis % type_.rank
    number = type_.shape[along] if topk.k is None or topk.k < 1 else topk.k
    if not isinstance(number, int):
        raise Unsupported(f"all of an axis of length {number}, in order")
    results = ctx.result_types()

    def values() -> Value:
        keyed = ctx.cast(data, "uint8") if type_.dtype == "bool" else data
        result = ctx.emit(
            "topk", keyed, axis=along, k=number, ret_typ="value", is_ascend=topk.is_ascend
        )
        return ctx.cast(ctx.typed(result, results[0]), "bool") if keyed is not data else result

    def indices() -> Value:
        order = stable_order(ctx, data, along, topk.is_ascend)
        kept = ctx.spell(lambda x: relay.strided_slice(x, [0], [number], [1], axes=[along]), order)
        return ctx.cast(kept, results[-1].dtype)

    if topk.ret_type == "values":
        return values()
    return indices() if topk.ret_type == "indices" else (values(), indices())
