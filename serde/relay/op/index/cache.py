"""Rows written into a cache, each batch entry at a place of its own."""

from __future__ import annotations

from typing import Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Constant, Expr, InRange, TensorType, Values, ranges, tensor_type
from serde.relay.ir.expr import const
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import join_dim, normalize_axis, require_same_dtype
from serde.relay.lowering.lengths import length_of


def _scatter_type(
    data: TensorType, update: TensorType, write_indices: TensorType | None, *, axis: int, mode: str
) -> TensorType:
    """The update may be shorter along `axis` only."""
    require_same_dtype(data, update)
    along = normalize_axis(axis, data.rank)
    if update.rank != data.rank or not along:
        raise TypeInferenceError(f"axis {axis} of {data!r} does not take {update!r}")
    for index, (a, b) in enumerate(zip(data.shape, update.shape, strict=True)):
        if index != along:
            join_dim(a, b)
        elif isinstance(a, int) and isinstance(b, int) and b > a:
            raise TypeInferenceError(f"{b} rows do not fit a cache of {a}")
    if write_indices is not None:
        if write_indices.rank != 1 or write_indices.dtype != "int64":
            raise TypeInferenceError(f"expected a vector of int64, found {write_indices!r}")
        join_dim(write_indices.shape[0], data.shape[0])
    return data


def _decompose_scatter(
    data: Expr, update: Expr, write_indices: Expr | None, *, axis: int, mode: str
) -> Expr:
    rank = tensor_type(data).rank
    along = axis % rank
    length = tensor_type(update).shape[along]
    bounds = (const(0, "int64"), length_of(update, along), const(1, "int64"))
    rows: Expr = call("arange", *bounds, dtype="int64")
    if isinstance(length, int):
        rows = Constant(np.arange(length, dtype=np.int64))
    elif not isinstance(length, Any):
        rows = call("reshape", rows, newshape=(length,))
    if write_indices is not None:
        rows = call("add", call("expand_dims", write_indices, axis=1), rows)
    else:
        rows = call("expand_dims", rows, axis=0)
    if mode == "circular":
        rows = call("floor_mod", rows, length_of(data, along))
    if along > 1:
        rows = call("expand_dims", rows, axis=1, num_newaxis=along - 1)
    if along < rank - 1:
        rows = call("expand_dims", rows, axis=along + 1, num_newaxis=rank - 1 - along)
    places = call("broadcast_to_like", rows, update)
    return call("scatter_elements", data, places, update, axis=along, reduction="update")


@relay_op(
    "serde.tensor_scatter",
    traits=(Values(0, 1), InRange(ranges.cache_positions)),
    infer=_scatter_type,
    decompose=_decompose_scatter,
    samples=[
        sample((2, 5, 3), (2, 2, 3), tensor((2,), "int64", low=0, high=3)),
        sample((2, 3, 5, 4), (2, 3, 2, 4)),
        sample((2, 3, 5, 4), (2, 3, 3, 4), tensor((2,), "int64", low=3, high=4), mode="circular"),
        sample((2, 5, 3, 2), (2, 2, 3, 2), tensor((2,), "int64", low=0, high=3), axis=1),
        sample(
            tensor((3, 4), "int32"),
            tensor((3, 4), "int32"),
            np.array([1, 0, 3], np.int64),
            axis=-1,
            mode="circular",
        ),
    ],
)
def tensor_scatter(
    data: Array,
    update: Array,
    write_indices: Array | None,
    *,
    axis: int = -2,
    mode: Literal["linear", "circular"] = "linear",
) -> Array:
    """A cache with rows written along `axis`, as keys and values of attention are appended.

    Source: TensorScatter of ONNX 24.

    Args:
        data: The cache, its first axis the batch.
        update: The rows: of the shape of `data`, but shorter along `axis`.
        write_indices: Where the first row goes, for each entry of the batch; 0 if absent.
        axis: The axis, not that of the batch.
        mode: Whether rows that would be beyond the end must not occur, or begin again at 0.
    """
    first = np.zeros(len(data), np.int64) if write_indices is None else write_indices
    along = axis % data.ndim
    rows = first[:, None] + np.arange(update.shape[along])
    if mode == "circular":
        rows = rows % data.shape[along]
    if rows.size and not 0 <= rows.min() <= rows.max() < data.shape[along]:
        raise IndexError(f"rows {rows.tolist()} are outside a cache of {data.shape[along]}")
    result = data.copy()
    moved, given = np.moveaxis(result, along, 1), np.moveaxis(update, along, 1)
    moved[np.arange(len(data))[:, None], rows] = given
    return result
