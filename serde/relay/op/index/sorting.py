"""Operators that order elements. Equal elements keep their order, ascending and descending."""

from __future__ import annotations

from typing import Any as AnyValue, Literal, overload

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, TupleWrapper, join_dim, normalize_axis, require_same_dtype
from serde.relay.ir.registry import Arguments, Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.traits import Float32, Ordering, SameAxes, SameType, Values
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import times
from serde.relay.op.shape.reshape import integers

__all__ = ["TopK"]


@dataclass(frozen=True, kw_only=True)
class TopK:
    """Attributes of ``topk``."""

    k: int | None
    axis: int = -1
    ret_type: Literal["both", "values", "indices"] = "both"
    is_ascend: bool = False
    dtype: np.dtype[AnyValue] | None = None


def _order(data: Array, axis: int, ascending: bool) -> Array:
    """Return the indices that sort along `axis`."""
    if ascending:
        return np.argsort(data, axis=axis, kind="stable")
    last = data.shape[axis] - 1
    mirrored = np.argsort(np.flip(data, axis), axis=axis, kind="stable")
    return last - np.flip(mirrored, axis)


def _index_dtype(dtype: AnyValue) -> AnyValue:
    if dtype is None:
        raise TypeInferenceError("attribute dtype must name the dtype of the indices")
    return dtype


def _sort_type(data: TensorType, *, axis: int, **_: AnyValue) -> TensorType:
    normalize_axis(axis, data.rank)
    return data


_TIES = tensor((4, 7), "int32", low=0, high=3)


@relay_op(
    "sort",
    traits=(SameAxes(("axis",)), SameType, Values(0), Ordering),
    infer=_sort_type,
    samples=[sample((2, 9), axis=0), sample(_TIES, is_ascend=False)],
    arguments=Arguments(hidden=("dtype",)),
)
def sort(
    data: Array, *, axis: int = -1, is_ascend: bool = True, dtype: np.dtype[AnyValue] | None = None
) -> Array:
    """The elements in order along `axis`; `dtype`, shared with argsort, has no meaning here."""
    return np.take_along_axis(data, _order(data, axis, is_ascend), axis)


def _argsort_type(data: TensorType, *, axis: int, is_ascend: bool, dtype: AnyValue) -> TensorType:
    normalize_axis(axis, data.rank)
    return TensorType(data.shape, _index_dtype(dtype))


@relay_op(
    "argsort",
    traits=(SameAxes(("axis",)), Ordering),
    infer=_argsort_type,
    samples=[
        sample((2, 9), axis=0, dtype="int32"),
        sample(_TIES, dtype="int64"),
        sample(_TIES, is_ascend=False, dtype="float32"),
    ],
    arguments=Arguments(defaults={"dtype": "int32"}),
)
def argsort(
    data: Array, *, axis: int = -1, is_ascend: bool = True, dtype: np.dtype[AnyValue] | None = None
) -> Array:
    """The indices that put the elements in order along `axis`."""
    return _order(data, axis, is_ascend).astype(dtype)


def _topk_type(data: TensorType, *, topk: TopK) -> TensorType | list[TensorType]:
    along = normalize_axis(topk.axis, data.rank)
    if topk.k is None:
        raise TypeInferenceError("attribute k must be given")
    length = data.shape[along]
    if isinstance(length, int) and topk.k > length:
        raise TypeInferenceError(f"k {topk.k} is more than the length {length} of axis {along}")
    count: Dim = length if topk.k < 1 else topk.k
    shape = (*data.shape[:along], count, *data.shape[along + 1 :])
    if topk.ret_type == "values":
        return TensorType(shape, data.dtype)
    indices = TensorType(shape, _index_dtype(topk.dtype))
    return indices if topk.ret_type == "indices" else [TensorType(shape, data.dtype), indices]


@relay_op(
    "topk",
    traits=(times(4), Values(0), Float32("reductions"), Ordering),
    infer=_topk_type,
    samples=[
        sample((2, 9), k=3, dtype="int32"),
        sample((2, 9), k=2, axis=0, ret_type="values", is_ascend=True),
        sample(_TIES, k=0, ret_type="indices", dtype="int64"),
    ],
)
def topk(data: Array, *, topk: TopK) -> Array | tuple[Array, ...]:
    """The `k` greatest (or smallest) elements along `axis` in order, and their indices.

    A `k` below 1 means all.
    """
    count = topk.k if topk.k is not None and topk.k > 0 else data.shape[topk.axis]
    order = np.take(_order(data, topk.axis, topk.is_ascend), np.arange(count), topk.axis)
    if topk.ret_type == "indices":
        return order.astype(topk.dtype)
    values = np.take_along_axis(data, order, topk.axis)
    return values if topk.ret_type == "values" else (values, order.astype(topk.dtype))


@overload
def build_topk(
    data: Expr, k: AnyValue = 1, axis: int = -1, ret_type: Literal["both"] = "both",
    is_ascend: bool = False, dtype: AnyValue = "int32",
) -> TupleWrapper: ...  # fmt: skip
@overload
def build_topk(
    data: Expr, k: AnyValue = 1, axis: int = -1, *, ret_type: Literal["values", "indices"],
    is_ascend: bool = False, dtype: AnyValue = "int32",
) -> Expr: ...  # fmt: skip
@overload
def build_topk(
    data: Expr, k: AnyValue = 1, axis: int = -1, ret_type: str = "both",
    is_ascend: bool = False, dtype: AnyValue = "int32",
) -> Expr | TupleWrapper: ...  # fmt: skip
@builder("topk")
def build_topk(
    data: Expr,
    k: AnyValue = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: AnyValue = "int32",
) -> Expr | TupleWrapper:
    """Return the `k` (an integer or an expression) greatest elements along `axis`."""
    attrs = {"axis": axis, "ret_type": ret_type, "is_ascend": is_ascend, "dtype": dtype}
    count = integers(k)
    if isinstance(count, Expr):
        result = call("dyn.topk", data, count, **attrs)
    else:
        result = call("topk", data, k=count, **attrs)
    return TupleWrapper(result, 2) if ret_type == "both" else result


def _searchsorted_type(
    sorted_sequence: TensorType, values: TensorType, *, right: bool, dtype: AnyValue
) -> TensorType:
    require_same_dtype(sorted_sequence, values)
    if not sorted_sequence.rank or sorted_sequence.rank not in (1, values.rank):
        raise TypeInferenceError(f"{sorted_sequence!r} is no sequence for {values!r}")
    if sorted_sequence.rank > 1:
        for a, b in zip(sorted_sequence.shape[:-1], values.shape[:-1], strict=True):
            join_dim(a, b)
    return TensorType(values.shape, _index_dtype(dtype))


_ROWS = np.array([[0.0, 1.0, 1.0, 3.0], [-2.0, -1.0, 0.0, 0.5]], np.float32)


@relay_op(
    "searchsorted",
    infer=_searchsorted_type,
    samples=[
        sample(_ROWS[0], (2, 3)),
        sample(_ROWS[0], (), right=True, dtype="int64"),
        sample(_ROWS, (2, 5)),
    ],
)
def searchsorted(
    sorted_sequence: Array,
    values: Array,
    *,
    right: bool = False,
    dtype: np.dtype[AnyValue] = np.dtype("int32"),
) -> Array:
    """Where each value goes in the innermost axis: before its equals, or after them."""
    side: Literal["left", "right"] = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.asarray(np.searchsorted(sorted_sequence, values, side)).astype(dtype)
    rows = sorted_sequence.reshape(-1, sorted_sequence.shape[-1])
    wanted = values.reshape(-1, values.shape[-1])
    found = [np.searchsorted(row, keys, side) for row, keys in zip(rows, wanted, strict=True)]
    return np.array(found, dtype).reshape(values.shape)


def _unique_type(data: TensorType, *, sorted: bool, return_counts: bool) -> list[TensorType]:
    if data.rank != 1:
        raise TypeInferenceError(f"expected a vector, found {data!r}")
    places = TensorType(data.shape, "int32")
    fields = [data, places, places, TensorType((1,), "int32")]
    return [*fields, places] if return_counts else fields


@relay_op(
    "unique",
    traits=(times(8), Values(0), Ordering),
    infer=_unique_type,
    meta_class="relay.attrs.UniqueAttrs",
    samples=[
        sample(tensor((9,), "int32")),
        sample(tensor((9,), "int64"), sorted=False, return_counts=True),
    ],
)
def unique(data: Array, *, sorted: bool = True, return_counts: bool = False) -> tuple[Array, ...]:
    """Values, their first places, for each element the place of its value, and how many there are.

    Values are in order, or in the order of their first appearance. Values,
    places and counts are as long as `data`, with zeros after the last.
    """
    values, places, inverse, counts = np.unique(
        data, return_index=True, return_inverse=True, return_counts=True
    )
    if not sorted:
        order = np.argsort(places, kind="stable")
        values, places, counts = values[order], places[order], counts[order]
        inverse = np.argsort(order, kind="stable")[inverse]
    pad = (0, data.size - values.size)
    number = np.array([values.size], np.int32)
    result = (
        np.pad(values, pad),
        np.pad(places, pad).astype(np.int32),
        inverse.reshape(data.shape).astype(np.int32),
        number,
    )
    return (*result, np.pad(counts, pad).astype(np.int32)) if return_counts else result


@builder("unique")
def build_unique(data: Expr, is_sorted: bool = True, return_counts: bool = False) -> TupleWrapper:
    """Return values, first places, inverse, number and, if asked, counts of a vector."""
    result = call("unique", data, sorted=is_sorted, return_counts=return_counts)
    return TupleWrapper(result, 5 if return_counts else 4)
